"""``tcuda sanitize``: run a program under the race detector."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tcuda._base.program import add_program, split_program
from tcuda._runtime import command_devices
from tcuda.sanitizer._command.defaults import STDOUT

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

_NAME = "sanitize"
_WITH_VALUE = ("--html", "--junit", "--sarif", "--suppress")
"""The options that take the next argument as their value. All other options take a value only after ``=``."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        _NAME,
        usage="tcuda sanitize [options] (PROGRAM | -m MODULE | -c CODE | -) [ARGUMENT ...]",
        help="run a program, and find missing waits between streams, and races in kernels",
        description="Run a program as python does, and report each race: two operations on the same memory, one of "
        "them a write, that no wait orders. Reads of unwritten memory in kernels are reported, too. The exit status is "
        "1 if something was found, else the status of the program, or 3 if no operation was watched. On emulated "
        "devices, 'import cupy' imports their arrays.",
        epilog="The options of the command come before the program. All later arguments are the program's.",
        allow_abbrev=False,
    )
    add_program(parser)
    reaction = parser.add_mutually_exclusive_group()
    reaction.add_argument(
        "--raise",
        dest="mode",
        action="store_const",
        const="raise",
        help="raise CUDASanitizerErrors in the operation that makes a race",
    )
    reaction.add_argument(
        "--warn", dest="mode", action="store_const", const="warn", help="also warn at each race while the program runs"
    )
    parser.add_argument(
        "--possible",
        action="store_true",
        help="treat possible races as exact ones: the exit status is 1, and --warn and --raise report them",
    )
    parser.add_argument(
        "--suppress", metavar="FILE", type=Path, action="append", default=[], help="leave out the races that FILE names"
    )
    parser.add_argument(
        "--kernels",
        action="store_true",
        help="also find races between the threads of a kernel, which needs emulated devices",
    )
    parser.add_argument("--syncs", action="store_true", help="count the calls that make the host wait, by line")
    parser.add_argument(
        "--json",
        metavar="FILE",
        nargs="?",
        const=STDOUT,
        help="write the report as JSON to FILE, with '=' before FILE; without FILE to stdout, and the output of the "
        "program to stderr",
    )
    parser.add_argument("--html", metavar="PAGE", type=Path, help="write a page that shows the races on a timeline")
    parser.add_argument(
        "--sarif", metavar="FILE", type=Path, help="write the races as SARIF 2.1.0, which code hosts and editors show"
    )
    parser.add_argument("--junit", metavar="FILE", type=Path, help="write the races as failed tests of JUnit's format")
    command_devices.add_option(parser)
    parser.set_defaults(run=run, mode="collect", usage_error=parser.error)


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments of the command, and the program with its arguments; for other commands no program."""
    return split_program(arguments, _NAME, _WITH_VALUE)


def run(options: argparse.Namespace) -> int:
    """Run the command, and return the exit status.

    Raises:
        OSError: The report cannot be written.
        RuntimeError: The devices in use cannot be watched.
    """
    from tcuda.sanitizer._command import watched_run  # here, because the other commands do not need the detector

    return watched_run.run(options)
