"""The commands and their options."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from tcuda._base.version import __version__
from tcuda._base.wings import has_wing, wing_module
from tcuda.cli import demo, doctor, graph_viz, info, memory_viz

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the options in ``argv``, with the name of the command in ``command`` and its function in ``run``.

    Args:
        argv: The arguments; those of the process if None.

    Raises:
        SystemExit: The arguments are bad usage, with code 2, or ask for help or the version.
    """
    parser = argparse.ArgumentParser(prog="tcuda", description="The surface of torch.cuda for CuPy arrays.")
    parser.add_argument("--version", action="version", version=f"tcuda {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    given, program = list(sys.argv[1:] if argv is None else argv), []
    for command in _commands():
        command.add_to(commands)
        if hasattr(command, "split"):
            # The arguments of a program may look like options of the command, so argparse does not see the program.
            given, program = command.split(given)
    options = parser.parse_args(given)
    options.program = program
    return options


def _commands() -> Iterator[Any]:
    """Yield the modules of the commands, in the order of the help."""
    yield from (info, doctor, demo)
    if has_wing("sanitizer"):
        yield wing_module("sanitizer._command")
    yield from (memory_viz, graph_viz)


__all__ = ["parse"]
