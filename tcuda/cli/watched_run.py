"""The run of ``tcuda sanitize``: the choices before a program starts, the program, and the report at the end."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import tcuda
from tcuda._base.files import read_regular_file, require_writable
from tcuda._base.program import Ending, before_abrupt_exit, callers, named_program, without_callers
from tcuda._runtime import gpus
from tcuda._sanitizer._suppressions import VARIABLE, read_suppressions
from tcuda.cli.defaults import DEVICES, STDOUT
from tcuda.cli.messages import in_one_line
from tcuda.cli.race_report import Output
from tcuda.cli.terminal import console
from tcuda.sanitizer import check

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Container, Iterator

_FOUND = 1
_MOST_SUPPRESSIONS = 1 << 20  # bytes of a file

_PARTS = ("current", "previous", "allocation", "previous_allocation")
_STACKS = {"stack", "launch_stack", "freed_stack"}
"""The parts of a race that have stacks, and the names of the stacks."""


def run(options: argparse.Namespace) -> int:
    """Run the command, and return the exit status.

    Raises:
        OSError: The report cannot be written.
        RuntimeError: The devices in use cannot be watched.
    """
    if not options.program:
        options.usage_error("give the program to run, or -m and a module")
    try:
        start = named_program(options.program)
        for path in options.suppress:
            _suppress(path)
        for path in (options.html, options.json and options.json != STDOUT and Path(options.json)):
            if path:
                require_writable(path)
    except (OSError, ValueError) as error:
        options.usage_error(in_one_line(error))
    screen = console(stderr=True)
    screen.file = sys.stderr  # the program may put another file there
    told = _choose_devices(options.emulated)
    if told:
        screen.print(told)
    with _stdout_for_json(options.json) as stdout:
        return _run(options, start, Output(screen, stdout, options.json, options.html, options.syncs, Path.cwd()))


def _run(options: argparse.Namespace, start: Callable[[], Ending], output: Output) -> int:
    owner, command = os.getpid(), callers()
    with contextlib.ExitStack() as watching:
        watch = check(options.mode, possible=options.possible)
        report = watch.__enter__()
        watching.callback(
            watch.__exit__
        )  # without arguments, the check does not raise errors that a destructor dropped
        counter = watching.enter_context(tcuda.SyncCounter()) if options.syncs else None

        def finish(ending: Ending) -> int:
            found = _of_program(report.as_dict(), command)
            if counter is not None:
                found["syncs"] = counter.counts()
            found["program"] = {"arguments": options.program, "status": ending.status, "failure": ending.failure}
            output.write(found)
            return _FOUND if found["races"] or (options.possible and found["possible"]) else ending.status

        with before_abrupt_exit(lambda status: finish(Ending(status))):
            ending = start()
        # A child process that the program forked may end here, too. The report belongs to the parent.
        return finish(ending) if os.getpid() == owner else ending.status


def _of_program(report: dict[str, Any], command: Container[str]) -> dict[str, Any]:
    """Take the frames of the command away from the stacks of ``report``, and return ``report``."""
    for race in (*report["races"], *report["possible"]):
        for part in filter(None, (race[name] for name in _PARTS)):
            for name in _STACKS & part.keys():
                part[name] = part[name] and without_callers(part[name], command)
    return report


def _suppress(path: Path) -> None:
    """Suppress the races that a file names.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is a pipe, which could be waited for without end, or has a line that is no suppression.
    """
    try:
        read_regular_file(path, _MOST_SUPPRESSIONS).decode()
    except ValueError as error:
        raise ValueError(f"{str(path)!r} holds no suppressions: {error}") from error
    read_suppressions({VARIABLE: str(path)})


def _choose_devices(emulated: int | None) -> str | None:
    """Let the program run on emulated devices if the user asks for them, or if there is no other device.

    The choice is stored in the environment: a program may still call ``tcuda.emulation.enable()``, which goes first.

    Returns:
        A message for the user; None if the user chose the devices.
    """
    told = None
    if emulated is None:
        if "TCUDA_RUNTIME" in os.environ or gpus():
            return None
        emulated = DEVICES
        told = f"There is no GPU: using {emulated} emulated devices."
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)  # the variable hides GPUs, and the user asks for N devices
    os.environ.update(TCUDA_RUNTIME="emulated", TCUDA_EMULATED_DEVICES=str(emulated))
    return told


@contextlib.contextmanager
def _stdout_for_json(json: str | None) -> Iterator[TextIO]:
    """Give a file that writes to stdout; if the JSON goes there, the output of the program goes to stderr."""
    if json != STDOUT:
        yield sys.stdout
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with open(kept, "w", encoding="utf-8", closefd=False) as file:
            yield file
    finally:
        with contextlib.suppress(AttributeError, OSError, ValueError):  # the program may have closed stdout
            sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
