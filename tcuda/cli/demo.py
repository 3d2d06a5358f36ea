"""``tcuda demo``: train a small network on handwritten digits."""

from __future__ import annotations

import argparse
import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import tcuda
from tcuda._base.console import console
from tcuda._base.files import write_file
from tcuda._base.outputs import PAGE, Kind, check_output, remove_earlier
from tcuda.cli import demo_workers, report
from tcuda.demo import digits
from tcuda.demo.checkpoint import MARK, Checkpoint
from tcuda.demo.config import KERNELS, Config
from tcuda.demo.devices import emulate_for_want_of_gpu

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from tcuda.demo.result import Result

_CHECKPOINT = Path("tcuda-demo.npz")
_KIND = Kind("checkpoint", b"PK", MARK)

_LONGEST_NUMBER = 40

_HISTORY = 100_000
"""The most events that the page of the memory shows; older events are left out."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "demo",
        help="train a small network on handwritten digits, with streams and events",
        description="Train a two-layer network on 1,437 handwritten digits and test it on 360 other digits, with "
        "streams, events and one or more devices. If there is no GPU, the demo runs on emulated devices.",
    )
    # An option that is not given is None, because its default comes from the checkpoint, if there is one.
    parser.add_argument("--epochs", type=_whole_number, help=f"the number of epochs ({Config.epochs})")
    parser.add_argument("--seed", type=_whole_number, help=f"the seed of the random numbers ({Config.seed})")
    parser.add_argument("--devices", type=_whole_number, help=f"the number of devices ({Config.devices})")
    demo_workers.add_to(parser, _whole_number)
    parser.add_argument("--no-overlap", dest="overlap", action="store_false", help="do all work on one stream")
    parser.add_argument("--graph", action="store_true", help="capture the training step once, and replay it")
    parser.add_argument(
        "--kernel",
        choices=KERNELS,
        help="compute by operations on arrays; or the forward pass by raw kernels of CUDA C++; or by sums without "
        f"rounding, whose result does not depend on --devices; all reach the same accuracy ({Config.kernel})",
    )
    parser.add_argument("--save-at", metavar="N", type=_whole_number, help="save a checkpoint after epoch N, and go on")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on from the checkpoint, with its settings; the result is the same to the bit",
    )
    parser.add_argument("--checkpoint", metavar="FILE", type=Path, help=f"the file of the checkpoint ({_CHECKPOINT})")
    parser.add_argument(
        "--memory-viz", metavar="PAGE", type=Path, help="record the memory history, and write a page that shows it"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout, and the rest on stderr")
    parser.set_defaults(run=run, usage_error=parser.error)


def run(options: argparse.Namespace) -> None:
    """Run the command.

    Raises:
        OSError: A file cannot be read or written.
        RuntimeError: There are fewer devices or workers than the options ask for, kernels of CUDA C++ cannot be
            compiled, or Dask is not installed.
        ValueError: The file is not a checkpoint, or the options do not fit the checkpoint.
    """
    if options.checkpoint and not options.resume and options.save_at is None:
        options.usage_error("--checkpoint names the file of --save-at and --resume; give one of them")
    path = options.checkpoint or _CHECKPOINT
    checkpoint = Checkpoint.load(path) if options.resume else None
    try:
        if demo_workers.are_given(options):
            demo_workers.require_fitting(options)
        config = _config(options, checkpoint)
    except ValueError as error:
        options.usage_error(str(error))
    if checkpoint:
        checkpoint.require_fitting(config)
    # The files are written late in the training, so a path that cannot be written is refused before the training.
    if config.save_at is not None:
        Checkpoint.require_writable(path)
        check_output(options, path, _KIND)
    if options.memory_viz:
        check_output(options, options.memory_viz, PAGE, [path] if checkpoint or config.save_at is not None else [])
        remove_earlier(options.memory_viz)
    screen = console(stderr=options.json)

    def save(made: Checkpoint) -> None:
        try:
            made.save(path)
        except OSError as error:  # The error names the temporary file, which the user does not know.
            raise OSError(error.errno, error.strerror, str(path)) from error
        report.show_saved(screen, made, path)

    on_workers = demo_workers.are_given(options)
    start = demo_workers.trainer(options, screen) if on_workers else _trainer(config, screen)
    with start as train, _page_of_memory(options.memory_viz, screen):
        if checkpoint:
            report.show_resumed(screen, checkpoint, path)
        with report.progress(screen, config, checkpoint) as on_epoch:
            result = train(
                config=config, digits=digits.load(), on_epoch=on_epoch, on_checkpoint=save, resume_from=checkpoint
            )
        if options.json:
            print(json.dumps(report.as_dict(result), indent=2))
        else:
            report.show(screen, result)


def _whole_number(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise argparse.ArgumentTypeError(f"a number of {len(text):,} characters is too long")
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def _config(options: argparse.Namespace, checkpoint: Checkpoint | None) -> Config:
    """Return the settings of the options; options that are not given come from the checkpoint, if there is one."""
    others = checkpoint.config if checkpoint else Config()
    names = ("epochs", "seed", "devices", "kernel")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if demo_workers.are_given(options):
        given |= demo_workers.SETTINGS
    return replace(others, overlap=options.overlap, graph=options.graph, save_at=options.save_at, **given)


@contextlib.contextmanager
def _trainer(config: Config, screen: Console) -> Iterator[Callable[..., Result]]:
    """Give the function that trains in this process."""
    told = emulate_for_want_of_gpu(config.devices)
    if told:
        screen.print(told)
    # This module imports tcuda.xp, which chooses the runtime. The emulation must be enabled before.
    from tcuda.demo.train import train

    yield train


@contextlib.contextmanager
def _page_of_memory(output: Path | None, screen: Console) -> Iterator[None]:
    """Record the memory history of the scope and write a page of it at the end; do nothing if ``output`` is None.

    Raises:
        OSError: The file cannot be written.
    """
    if output is None:
        yield
        return
    from tcuda._viz.memory import page

    tcuda.memory._record_memory_history(max_entries=_HISTORY)
    try:
        yield
        snapshot = tcuda.memory._snapshot()
    finally:
        tcuda.memory._record_memory_history(None)
    write_file(output, page(snapshot, title="tcuda demo").encode())
    report.show_page(screen, output)
