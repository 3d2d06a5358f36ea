"""The commands and their options."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from tcuda._base.messages import printable, similar
from tcuda._base.version import __version__
from tcuda._base.wings import has_wing, wing_module
from tcuda.cli import completion, demo, doctor, graph_viz, info, memory_viz, stubs, trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_BAD_USAGE = 2
_WITHOUT_GPU = "A program that says 'import cupy' runs without a GPU by: tcuda run PROGRAM"


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the options in ``argv``, with the name of the command in ``command`` and its function in ``run``.

    Args:
        argv: The arguments; those of the process if None.

    Raises:
        SystemExit: The arguments are bad usage, with code 2, or ask for help or the version.
    """
    parser = argparse.ArgumentParser(
        prog="tcuda",
        description="The surface of torch.cuda for CuPy arrays.",
        epilog=_WITHOUT_GPU if has_wing("emulation") else None,
    )
    parser.add_argument("--version", action="version", version=f"tcuda {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, title="commands", metavar="COMMAND")
    given = list(sys.argv[1:] if argv is None else argv)
    program: list[str] = []
    for command in _commands():
        command.add_to(commands)
        if hasattr(command, "split"):
            # The arguments of a program may look like options of the command, so argparse does not see the program.
            given, found = command.split(given)
            program = program or found
    if not given:
        parser.print_help(sys.stderr)
        sys.exit(_BAD_USAGE)
    first = given[0]
    known = [*parser._option_string_actions] if first.startswith("-") else [*commands.choices]
    if first not in known and not (first.startswith("--") and any(name.startswith(first) for name in known)):
        kind = "option" if first.startswith("-") else "command"
        parser.error(f"there is no {kind} {first[:40]!r}.{similar(first, known)} tcuda --help lists the commands.")
    options, unknown = parser.parse_known_args(given)
    if unknown:
        chosen = commands.choices[options.command]
        found = similar(unknown[0].partition("=")[0], chosen._option_string_actions)
        chosen.error(f"unrecognized arguments: {printable(' '.join(unknown))}.{found}")
    options.program = program
    return options


def _commands() -> Iterator[Any]:
    """Yield the modules of the commands, in the order of the help."""
    yield from (info, doctor, demo)
    if has_wing("emulation"):
        yield wing_module("emulation.as_cupy.command")
    if has_wing("sanitizer"):
        yield wing_module("sanitizer._command")
    yield from (trace, memory_viz, graph_viz, stubs, completion)


__all__ = ["parse"]
