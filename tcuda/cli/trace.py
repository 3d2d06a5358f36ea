"""``tcuda trace``: run a program, and write a timeline of its work."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tcuda._base.console import console
from tcuda._base.files import write_file
from tcuda._base.messages import in_one_line, printable
from tcuda._base.outputs import Kind, require_free
from tcuda._base.program import Ending, add_program, before_abrupt_exit, named_program, split_program
from tcuda._runtime import command_devices

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

_NAME = "trace"
_WITH_VALUE = ("-o", "--output")
_NO_TRACE = 3
"""The exit status if the program has used no device."""

_TIMELINE = Kind("timeline", b'{"displayTimeUnit"', b'"producer":"tcuda ')


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        _NAME,
        usage="tcuda trace [options] (PROGRAM | -m MODULE | -c CODE | -) [ARGUMENT ...]",
        help="run a program, and write a timeline of its streams",
        description="Run a program as python does, and write a timeline: streams, kernels, copies, waits, NVTX ranges "
        "and memory. https://ui.perfetto.dev shows the file. On emulated devices, the times are those of the emulated "
        "clock. The exit status is that of the program, or 3 if the program has used no device.",
        epilog="The options of the command come before the program. All later arguments are the program's.",
        allow_abbrev=False,
    )
    add_program(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, default=Path("trace.json"), help="the file to write (%(default)s)"
    )
    command_devices.add_option(parser)
    parser.set_defaults(run=run, usage_error=parser.error)


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments of the command, and the program with its arguments; for other commands no program."""
    return split_program(arguments, _NAME, _WITH_VALUE)


def run(options: argparse.Namespace) -> int:
    """Run the command, and return the exit status.

    Raises:
        AcceleratorError: Work of the program failed, and the program itself did not hear of that.
        OSError: The timeline cannot be written.
        RuntimeError: The devices in use cannot be traced.
    """
    if not options.program:
        options.usage_error("give the program to run, or -m and a module, or -c and code")
    try:
        start = named_program(options.program)
        require_free(options.output, _TIMELINE, [Path(word) for word in options.program])
        told = command_devices.choose(options.emulated)
    except (OSError, RuntimeError, ValueError) as error:
        options.usage_error(in_one_line(error))
    screen = console(stderr=True)
    if told:
        screen.print(told)
    output, owner = options.output.absolute(), os.getpid()  # the program may change to another folder

    from tcuda.profiler._trace import trace_from_initialization  # here, because the other commands need no devices

    with trace_from_initialization() as record:

        def finish(ending: Ending) -> int:
            content = record.end()
            if content is None:
                earlier = f" {printable(str(options.output))} is that of an earlier run." if output.exists() else ""
                screen.print(f"The program has used no device, so there is no timeline.{earlier}")
                return ending.status or _NO_TRACE
            write_file(output, content)
            if record.lack:
                screen.print(record.lack)
            screen.print(f"Wrote {printable(str(options.output))}, which https://ui.perfetto.dev shows.")
            if record.failure is not None and not ending.status:
                raise record.failure
            return ending.status

        with before_abrupt_exit(lambda status: finish(Ending(status))):
            ending = start()
        # A child process that the program forked may end here, too. The timeline belongs to the parent.
        return finish(ending) if os.getpid() == owner else ending.status
