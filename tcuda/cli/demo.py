"""``tcuda demo``: train a small network on handwritten digits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import tcuda
from tcuda.cli import report
from tcuda.cli.terminal import console
from tcuda.demo import digits
from tcuda.demo.config import Config
from tcuda.demo.devices import emulate_for_want_of_gpu

if TYPE_CHECKING:
    import argparse


_HISTORY = 100_000
"""Events that the page of the memory shows at most, the newest of them."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "demo",
        help="train a small network on handwritten digits, with streams and events",
        description="Train a two-layer network on 1,437 handwritten digits and examine it on 360 others, with streams, "
        "events and as many devices as asked for. Runs on emulated devices where there is no GPU.",
    )
    parser.add_argument("--epochs", type=int, default=Config.epochs, help="how often each digit is shown (%(default)s)")
    parser.add_argument("--seed", type=int, default=Config.seed, help="decides every bit of the result (%(default)s)")
    parser.add_argument("--devices", type=int, default=Config.devices, help="devices that share a batch (%(default)s)")
    parser.add_argument("--no-overlap", dest="overlap", action="store_false", help="do everything on one stream")
    parser.add_argument(
        "--memory-viz", metavar="PAGE", type=Path, help="record what happens to memory, and write a page that shows it"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout, all else on stderr")
    parser.set_defaults(run=run, usage_error=parser.error)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    try:
        config = Config(options.epochs, options.seed, options.devices, options.overlap)
    except ValueError as error:
        options.usage_error(str(error))
    screen = console(stderr=options.json)
    told = emulate_for_want_of_gpu(config.devices)
    if told:
        screen.print(told)

    # Only now: it takes tcuda.xp, which settles the runtime that is in use.
    from tcuda.demo.train import train

    if options.memory_viz:
        tcuda.memory._record_memory_history(max_entries=_HISTORY)
    with report.progress(screen, config) as on_epoch:
        result = train(config, digits.load(), on_epoch)
    if options.json:
        print(json.dumps(report.as_dict(result), indent=2))
    else:
        report.show(screen, result)
    if options.memory_viz:
        _write_page(options.memory_viz)


def _write_page(output: Path) -> None:
    """Write a page of the memory as it is, and of what happened to it, and record no more.

    Raises:
        RuntimeError: The file cannot be written.
    """
    from tcuda._memory_viz import page

    snapshot = tcuda.memory._snapshot()
    tcuda.memory._record_memory_history(None)
    try:
        output.write_text(page(snapshot, title="tcuda demo"), encoding="utf-8")
    except OSError as error:
        raise RuntimeError(f"{error.strerror}: {str(error.filename)!r}") from error
