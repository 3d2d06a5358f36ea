"""The run of ``tcuda sanitize``: the choices before a program starts, the program, and the report at the end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tcuda._base.console import console
from tcuda._base.files import read_regular_file
from tcuda._base.messages import in_one_line, printable, send_to_nowhere
from tcuda._base.outputs import PAGE, remove_earlier, require_free
from tcuda._base.program import Ending, before_abrupt_exit, callers, named_program, without_callers
from tcuda._base.terminal import working
from tcuda._base.wings import wing_module
from tcuda._device._sync_debug import SyncCounter
from tcuda._runtime import command_devices
from tcuda.sanitizer import _process_reports, _words, check
from tcuda.sanitizer._causes import KINDS, add_causes
from tcuda.sanitizer._command.defaults import STDOUT
from tcuda.sanitizer._command.race_report import JUNIT, REPORT, SARIF, Output
from tcuda.sanitizer._suppressions import VARIABLE as SUPPRESSIONS
from tcuda.sanitizer._suppressions import read_suppressions
from tcuda.sanitizer._variables import enabling

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Container, Iterator, Sequence

    from tcuda._base.outputs import Kind

_FOUND = 1
_NOTHING_WATCHED = 3
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
        options.usage_error("give the program to run, or -m and a module, or -c and code")
    try:
        start = named_program(options.program)
        for path in options.suppress:
            _suppress(path)
        outputs = _outputs(options)
        inputs = [*options.suppress, *_named_files(options.program)]
        for path, kind in outputs:
            require_free(path, kind, [*inputs, *(other for other, _ in outputs if other is not path)])
    except (OSError, ValueError) as error:
        options.usage_error(in_one_line(error))
    screen = console(stderr=True)
    screen.file = sys.stderr  # the program may put another file there
    try:
        told = command_devices.choose(options.emulated)
        if options.kernels:
            _look_into_kernels()
        command_devices.require_valid_variables()
    except (OSError, RuntimeError, ValueError) as error:
        options.usage_error(in_one_line(error))
    for path, _ in outputs:
        remove_earlier(path)
    if told:
        screen.print(told)
    if screen.is_terminal:  # the program may say nothing for long
        screen.print(f"Watching {printable(' '.join(options.program))}: the report follows at the end of the program.")
    with _stdout_for_json(options.json) as stdout:
        files = {name: getattr(options, name) for name in ("json", "html", "sarif", "junit")}
        output = Output(screen, stdout, syncs=options.syncs, possible=options.possible, folder=Path.cwd(), **files)
        status = _run(options, start, output)
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # nobody reads the output of the program any more, which says nothing about races
        send_to_nowhere(1)
    except (AttributeError, ValueError):  # the program may have closed stdout
        pass
    return status


def _run(options: argparse.Namespace, start: Callable[[], Ending], output: Output) -> int:
    owner, command = os.getpid(), callers()
    folder = Path(tempfile.mkdtemp(prefix="tcuda-sanitize-"))
    _watch_children(options, folder)
    with contextlib.ExitStack() as watching:
        watch = check(options.mode, possible=options.possible)
        report = watch.__enter__()
        watching.callback(
            watch.__exit__
        )  # without arguments, the check does not raise errors that a destructor dropped
        counter = watching.enter_context(SyncCounter()) if options.syncs else None

        def finish(ending: Ending) -> int:
            with working("making the report"):
                children = _process_reports.read(folder)
                shutil.rmtree(folder, ignore_errors=True)
                found = with_children(report.as_dict(), children)
                found = add_causes(_of_program(found, command))
                if counter is not None:
                    found["syncs"] = counter.counts()
            place = None if ending.place is None else {"file": ending.place.filename, "line": ending.place.line}
            found["program"] = {
                "arguments": options.program,
                "status": ending.status,
                "failure": ending.failure,
                "place": place,
            }
            output.write(found)
            if found["races"] or found["unwritten_reads"] or (options.possible and found["possible"]):
                return _FOUND
            return ending.status or (0 if found["operations"] else _NOTHING_WATCHED)

        with before_abrupt_exit(lambda status: finish(Ending(status))):
            ending = start()
        # A child process that the program forked may end here, too. The report belongs to the parent.
        return finish(ending) if os.getpid() == owner else ending.status


def _of_program(report: dict[str, Any], command: Container[str]) -> dict[str, Any]:
    """Take the frames of the command away from the stacks and the words of ``report``, and return ``report``."""
    for race in (*report["races"], *report["unwritten_reads"], *report["possible"]):
        for part in filter(None, map(race.get, _PARTS)):
            for name in _STACKS & part.keys():
                part[name] = part[name] and without_callers(part[name], command)
        race["words"] = _words.words_of(race, says_more=race["words"]["missing"]["says_more"])
    return report


def _outputs(options: argparse.Namespace) -> list[tuple[Path, Kind]]:
    """Return the files of the report, and their kinds."""
    json = None if options.json in (None, STDOUT) else Path(options.json)
    files = ((options.html, PAGE), (json, REPORT), (options.sarif, SARIF), (options.junit, JUNIT))
    return [(path, kind) for path, kind in files if path is not None]


def _named_files(words: Sequence[str]) -> list[Path]:
    """Return the paths that the command line of a program may name, also as the value of an option."""
    return [Path(part) for word in words for part in {word, word.partition("=")[2]} if part]


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
    read_suppressions({SUPPRESSIONS: str(path)})


def _look_into_kernels() -> None:
    """Let the launches of this process and of its children look for races, beside the checks that the user has chosen.

    Raises:
        RuntimeError: The devices are GPUs.
        ValueError: ``TCUDA_EMULATED_CHECKS`` or ``TCUDA_RUNTIME`` has a value that is not allowed.
    """
    command_devices.require_emulated("--kernels")
    checks = wing_module("emulation.rtc.checks")
    chosen = checks.chosen()
    if not chosen.races:
        words = os.environ.get(checks.VARIABLE) or "1"
        os.environ[checks.VARIABLE] = "memory,races" if words in ("0", "1") else f"{words},races"


def _watch_children(options: argparse.Namespace, folder: Path) -> None:
    """Let the processes that the program starts write their reports into ``folder``."""
    files = [*options.suppress, *map(Path, filter(None, [os.environ.get(SUPPRESSIONS)]))]
    if files:
        every = folder / "suppressions.txt"
        every.write_bytes(b"\n".join(read_regular_file(path, _MOST_SUPPRESSIONS) for path in files))
        os.environ[SUPPRESSIONS] = str(every)
    os.environ.update(_process_reports.variables(folder, options.mode, possible=options.possible))
    _process_reports.follow_forks(str(folder), enabling(options.mode, options.possible))
    wing_module(
        "emulation.as_cupy.children"
    ).pass_on_as_cupy()  # so that a process that only imports CuPy is watched, also on a GPU


def with_children(report: dict[str, Any], children: _process_reports.Found) -> dict[str, Any]:
    """Add the reports of other processes to ``report``, and return ``report``.

    A race that several processes have found is kept once. ``"processes"`` of a race has the processes.
    """
    for kind in KINDS:
        known = {_same(race): race for race in report[kind]}
        for race in known.values():
            race["processes"] = []
        for child in children.reports:
            for race in child[kind]:
                kept = known.setdefault(_same(race), {**race, "count": 0, "processes": []})
                kept["count"] += race["count"]
                kept["processes"].append(child["process"])
        report[kind] = list(known.values())
    for child in children.reports:
        report["operations"] += child["operations"]
        report["suppressed"] += child["suppressed"]
    report["children"] = {"reports": len(children.reports), "unfinished": children.unfinished}
    return report


def _same(race: dict[str, Any]) -> str:
    """Return what equal races of several processes have in common: the words."""
    return json.dumps([race["kind"], race["words"]])


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
