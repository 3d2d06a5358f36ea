"""Measures the search for races by kernels of other people: ``python bench/foreign_races.py FOLDER [--verdicts LIST]``.

FOLDER has a suite of kernels with verdicts, in the convention of GPUVerify or with a list of verdicts;
``foreign_suites.py`` describes both. Each kernel runs on an emulated device with the search for races, in a process of
its own, and is ended after ``--limit`` seconds. Prints a Markdown table, and a line with the reason for each kernel
that is missed, accused or not runnable.

A *race* of the suite is found if a round of arguments has a race, and missed if no round has one. A kernel that the
suite calls free of races is accused if a round has a race. Races in which all threads write the same value have counts
of their own, because verifiers allow them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from foreign_suites import FREE, NONE, OTHER, RACE, WRONG, Case, read_suite
from table import markdown

if TYPE_CHECKING:
    from collections.abc import Sequence

FOUND, MISSED, SAME, QUIET, ACCUSED, NOT_RUN, NO_VERDICT, REPORTED = (
    "found",
    "missed",
    "same value",
    "quiet",
    "accused",
    "not runnable",
    "no verdict on races",
    "reported",
)
HEADER = ("verdict of the suite", "kernels", "run", "found", "missed", "accused", "same value")
_STUCK = re.compile(r"cannot go on|had returned when|__syncthreads")
"""The errors of barriers that not all threads reach."""
_OUTSIDE = "outside of"
"""The errors of variables of a kernel, which no argument can cause."""


class Judged(NamedTuple):
    """A kernel of a suite, and what the search said.

    Attributes:
        case: The kernel.
        word: The result in a word.
        why: The race, or why the kernel did not run.
        launch: The sizes of the launch; None if there was none.
    """

    case: Case
    word: str
    why: str
    launch: dict[str, Any] | None = None


def judge(case: Case, result: dict[str, Any]) -> Judged:
    """Return what the results of the rounds say about the verdict of the suite."""
    if "not runnable" in result:
        return Judged(case, NO_VERDICT if case.verdict in (NONE, OTHER) else NOT_RUN, result["not runnable"])
    rounds, launch = result["rounds"], result["launch"]
    racy = next((one for one in rounds if one["races"]), None)
    stuck = next((one for one in rounds if _STUCK.search(one["error"])), None)
    outside = next((one for one in rounds if _OUTSIDE in one["error"]), None)
    same = next((one for one in rounds if one["benign"]), None)
    clean = any(not one["error"] for one in rounds)
    failed = next((one["error"] for one in rounds if one["error"]), "")

    def said(word: str, one: dict[str, Any] | None, texts: str = "races") -> Judged:
        why = "" if one is None else (one[texts] or [one["error"]])[0]
        numbers = f" ({one['numbers']})" if one is not None and one["numbers"] else ""
        return Judged(case, word, why + numbers, launch)

    if case.verdict in (NONE, OTHER):
        return said(REPORTED if racy or stuck else NO_VERDICT, racy or stuck)
    if racy:
        return said(ACCUSED if case.verdict == FREE else FOUND, racy)
    if case.verdict == WRONG and (stuck or outside):
        return said(FOUND, stuck or outside)
    if case.verdict == FREE and stuck:
        return said(ACCUSED, stuck)
    if same:
        return said(SAME if case.verdict == FREE else FOUND, same, "benign")
    if not clean:
        return Judged(case, NOT_RUN, failed, launch)
    return Judged(case, QUIET if case.verdict == FREE else MISSED, failed, launch)


def run_case(case: Case, limit: float) -> dict[str, Any]:
    """Run a kernel in a process of its own, and return the result of ``foreign_launch.py``."""
    data = json.dumps({**case._asdict(), "path": str(case.path)})
    command = [sys.executable, str(Path(__file__).with_name("foreign_launch.py")), data]
    environment = {name: text for name, text in os.environ.items() if not name.startswith("TCUDA_")}
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return {"not runnable": f"did not end within {limit:g} seconds"}
    last = output.strip().rpartition("\n")[2]
    if process.returncode or not last.startswith("{"):
        told = errors.strip().rpartition("\n")[2] or f"status {process.returncode}"
        return {"not runnable": f"the process failed: {told[:300]}"}
    result: dict[str, Any] = json.loads(last)
    return result


def rows(judged: Sequence[Judged]) -> list[tuple[str, ...]]:
    """Return the table: a row for each verdict of the suite, and of those verdicts that hold for warps in step."""

    def count(words: Sequence[str], verdicts: Sequence[str], steps: bool | None = None) -> int:
        return sum(
            one.word in words and one.case.verdict in verdicts and (steps is None or one.case.steps == steps)
            for one in judged
        )

    wrong, free = (RACE, WRONG), (FREE,)
    table: list[tuple[str, ...]] = [
        ("verdict of the suite", "kernels", "run", "found", "missed", "accused", "same value")
    ]
    for title, verdicts, steps in (
        ("a race", (RACE,), None),
        ("a mistake of any kind", (WRONG,), None),
        ("no race", free, False),
        ("no race, if a warp runs in step", free, True),
    ):
        total = sum(one.case.verdict in verdicts and (steps is None or one.case.steps == steps) for one in judged)
        if not total:
            continue
        run = total - count([NOT_RUN], verdicts, steps)
        cells = [count([word], verdicts, steps) for word in (FOUND, MISSED, ACCUSED, SAME)]
        is_wrong = verdicts[0] in wrong
        shown = [str(cell) if (place < 2) == is_wrong else "" for place, cell in enumerate(cells)]
        table.append((title, str(total), str(run), *shown))
    others = [one for one in judged if one.case.verdict in (NONE, OTHER)]
    if others:
        table.append(("nothing about races", str(len(others)), "", "", "", "", ""))
    return table


def report(judged: Sequence[Judged], without: Sequence[str]) -> str:
    """Return the table, and a line for each kernel that is missed, accused or not runnable."""
    parts = [markdown(rows(judged))]
    for word in (MISSED, ACCUSED, SAME, NOT_RUN, REPORTED):
        lines = [
            f"* {one.case.name}{' (in step)' if one.case.steps else ''}: {one.why or 'no round has a race'}"
            for one in judged
            if one.word == word
        ]
        if lines:
            parts.append(f"{word}: {len(lines)}\n\n" + "\n".join(lines))
    if without:
        parts.append(f"files without a verdict: {len(without)}")
    smaller = sum(bool(one.launch and one.launch["smaller"]) for one in judged)
    if smaller:
        parts.append(f"launches with fewer threads than the suite asks for: {smaller}")
    return "\n\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the kernels of a folder, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder of the suite")
    parser.add_argument("--verdicts", type=Path, metavar="LIST", help="a list of patterns and verdicts")
    parser.add_argument("--only", metavar="TEXT", default="", help="only the kernels whose path has this text")
    parser.add_argument("--limit", type=float, default=60, help="the seconds of a kernel (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results of all kernels there")
    chosen = parser.parse_args(arguments)
    if not chosen.folder.is_dir():
        parser.error(f"FOLDER must be a folder; got {chosen.folder}")
    try:
        suite = read_suite(chosen.folder, chosen.verdicts)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    cases = [case for case in suite.cases if chosen.only in case.name]
    if not cases:
        parser.error(f"no kernel with a verdict is in {chosen.folder}: give a list by --verdicts")
    with ThreadPoolExecutor(chosen.workers) as pool:
        results = list(pool.map(lambda case: run_case(case, chosen.limit), cases))
    judged = [judge(case, result) for case, result in zip(cases, results, strict=True)]
    print(report(judged, suite.without))
    if chosen.json is not None:
        data = [
            {"kernel": one.case.name, "verdict": one.case.verdict, "result": one.word, "why": one.why} for one in judged
        ]
        chosen.json.write_text(f"{json.dumps(data, indent=1)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
