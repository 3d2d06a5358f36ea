"""The commands and their options."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tcuda._base.version import __version__
from tcuda.cli import demo, doctor, graph_viz, info, memory_viz, sanitize

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    for command in (info, doctor, demo, sanitize, memory_viz, graph_viz):
        command.add_to(commands)
    # The arguments of a program may look like options of the command, so argparse does not see the program.
    given, program = sanitize.split(sys.argv[1:] if argv is None else argv)
    options = parser.parse_args(given)
    options.program = program
    return options


__all__ = ["parse"]
