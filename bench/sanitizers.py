"""Compares the race detector with torch's sanitizer: ``python bench/sanitizers.py [--workers N] [NAME ...]``.

Runs the programs of ``tests/sanitizer/corpus`` that torch can express: in torch's spelling under
``torch.cuda._sanitizer``, each in a process of its own, and as they are under ``tcuda.sanitizer.check()``. Prints a
Markdown table with one row for each pair of a wrong and a right program.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import multiprocessing.connection
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import chosen_runtime  # noqa: F401  # chooses the runtime for the processes that are started here
from table import markdown

TESTS = Path(__file__).parent.parent / "tests"
sys.path.append(str(TESTS))

from support.corpus import Program, line_in, programs, run  # noqa: E402  # after the path
from support.torch_spelling import in_torchs_spelling  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.connection import Connection

HEADER = ("program", "wrong program: tcuda", "torch", "right program: tcuda", "torch")
FOUND, POSSIBLE, ELSEWHERE, MISSED, QUIET, ACCUSED = (
    "found",
    "found, possible",
    "other lines",
    "**missed**",
    "quiet",
    "**accused**",
)


class Lines(NamedTuple):
    """The lines of a race that a detector reports.

    Attributes:
        first: The line of the access that comes first in the program; None if the stack has no line of the program.
        second: The line of the access at which the race was found.
    """

    first: int | None
    second: int | None


class Said(NamedTuple):
    """The report of a detector on a program.

    Attributes:
        name: The name of the program.
        races: The lines of the races.
        possible: The lines of the possible races.
        failure: The error with which the program failed, unless the error is a failed assertion or tells of the races.
    """

    name: str
    races: list[Lines]
    possible: list[Lines]
    failure: str | None = None

    def verdict(self, program: Program) -> str:
        """Return the verdict in a word.

        Args:
            program: The program.
        """
        if self.failure is not None:
            return f"failed: {self.failure.splitlines()[0]}"
        if program.right:
            return ACCUSED if self.races else POSSIBLE.partition(", ")[2] if self.possible else QUIET
        expected = (program.first, program.second)
        for races, word in ((self.races, FOUND), (self.possible, POSSIBLE)):
            if races:
                return word if expected in [tuple(lines) for lines in races] else ELSEWHERE
        return MISSED


def by_tcuda(program: Program) -> Said:
    """Run a program under the detector of tcuda, in this process."""
    import tcuda

    with tcuda.sanitizer.check(mode="collect") as report:
        failed = run(program)
    data = report.as_dict()
    races, possible = (
        [Lines(*(line_in(program, race[access]["stack"]) for access in ("previous", "current"))) for race in data[kind]]
        for kind in ("races", "possible")
    )
    return Said(program.name, races, possible, _failure(failed))


def by_torch(program: Program) -> Said:
    """Run a program in torch's spelling under the sanitizer of torch, in this process, which should run nothing else.

    The code has the path of the program, whose lines are those of the spelling.
    """
    from torch.cuda import _sanitizer

    spelled = in_torchs_spelling(program.text)
    assert spelled is not None

    _sanitizer.enable_cuda_sanitizer()
    errors: list[BaseException] = []
    threading.excepthook = lambda failed: errors.append(failed.exc_value or failed.exc_type())
    try:
        exec(compile(spelled, program.path, "exec"), {"__name__": program.name})
    except Exception as error:
        errors.insert(0, error)
    races = [
        Lines(*(_line_of_torch(program, access) for access in (race.previous_access, race.current_access)))
        for error in errors
        if isinstance(error, _sanitizer.CUDASanitizerErrors)
        for race in error.errors
    ]
    others = [error for error in errors if not isinstance(error, _sanitizer.CUDASanitizerErrors)]
    return Said(program.name, races, [], _failure(others[0] if others and not races else None))


def _line_of_torch(program: Program, access: Any) -> int | None:
    lines = (frame.lineno for frame in reversed(access.stack_trace) if frame.filename == str(program.path))
    return next(lines, None)


def _failure(error: BaseException | None) -> str | None:
    # The numbers of a wrong program may be wrong.
    return None if error is None or isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"[:100]


def named(names: Sequence[str]) -> list[Program]:
    """Return the programs that torch can express, by words in their names; without words, all of them."""
    return [
        program
        for program in programs()
        if (not names or any(name in program.name for name in names)) and in_torchs_spelling(program.text) is not None
    ]


def all_by_torch(chosen: Sequence[Program], workers: int) -> Iterator[Said]:
    """Run programs under the sanitizer of torch, each in a process that is forked after the import of torch."""
    try:
        import torch  # noqa: F401  # the import initialises no device
    except ImportError:
        print("torch is not installed.", file=sys.stderr)
        return
    context = multiprocessing.get_context("fork")
    waiting, running = list(chosen), {}
    while waiting or running:
        while waiting and len(running) < workers:
            program = waiting.pop()
            reader, writer = context.Pipe(duplex=False)
            process = context.Process(target=_send, args=(program, writer))
            process.start()
            writer.close()
            running[process.sentinel] = program, process, reader
        for sentinel in multiprocessing.connection.wait(list(running)):
            program, process, reader = running.pop(sentinel)  # type: ignore[index]
            process.join()
            try:
                yield reader.recv()
            except EOFError:
                yield Said(program.name, [], [], f"exit status {process.exitcode}")


def _send(program: Program, writer: Connection) -> None:
    writer.send(by_torch(program))


def rows(tcudas: dict[str, Said], torchs: dict[str, Said]) -> list[tuple[str, ...]]:
    """Return a row for each pair on which a detector has said something, and a row with the totals."""
    known = {program.name: program for program in programs()}
    made = []
    for pair in sorted({known[name].pair for name in (*tcudas, *torchs)}):
        cells = [pair.replace("_", " ")]
        for ending in ("wrong", "right"):
            name = f"{pair}_{ending}"
            cells += [said[name].verdict(known[name]) if name in said else "" for said in (tcudas, torchs)]
        made.append(tuple(cells))
    totals = ["in all"]
    for column in range(1, len(HEADER)):
        cells = [row[column] for row in made if row[column]]
        good = [cell for cell in cells if cell in (FOUND, POSSIBLE, QUIET)]
        totals.append(f"{len(good)} of {len(cells)}")
    return [*made, tuple(totals)]


def main(arguments: list[str] | None = None) -> int:
    """Run the programs, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="words in the names of the programs to run; all programs without words"
    )
    parser.add_argument("--workers", type=int, default=8, help="the number of processes of each side")
    parser.add_argument("--side", choices=("tcuda", "torch"), help="print what this side says as JSON, without a table")
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1), help="the number of this part, and of all parts")
    options = parser.parse_args(arguments)
    if options.side == "tcuda":
        part, parts = options.part
        for program in named(options.names)[part::parts]:
            print(json.dumps(by_tcuda(program)), flush=True)
        return 0
    if options.side == "torch":
        for said in all_by_torch(named(options.names), options.workers):
            print(json.dumps(said), flush=True)
        return 0
    sides = [["--side", "torch", "--workers", str(options.workers)]]
    sides += [["--side", "tcuda", "--part", str(part), str(options.workers)] for part in range(options.workers)]
    started = [_start([*side, *options.names]) for side in sides]
    said = [_said(process) for process in started]
    tcudas = {one.name: one for part in said[1:] for one in part}
    print(markdown([HEADER, *rows(tcudas, {one.name: one for one in said[0]})]))
    return 0


def _start(arguments: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True)


def _said(process: subprocess.Popen[str]) -> list[Said]:
    printed, _ = process.communicate()
    if process.returncode != 0:
        print(f"A process failed with the status {process.returncode}: {process.args}", file=sys.stderr)
    lines = [line for line in printed.splitlines() if line.startswith("[")]
    return [
        Said(name, [Lines(*one) for one in races], [Lines(*one) for one in possible], failure)
        for name, races, possible, failure in map(json.loads, lines)
    ]


if __name__ == "__main__":
    sys.exit(main())
