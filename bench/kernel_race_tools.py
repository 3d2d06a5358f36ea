"""Compares the search for races in kernels with compute-sanitizer: ``python bench/kernel_race_tools.py [--names]``.

Needs a GPU, CuPy, and ``compute-sanitizer``, which is a part of the CUDA toolkit. Launches the wrong and the right
kernels of ``tests/emulation/kernel_races/corpus`` under ``racecheck``, ``memcheck`` and ``synccheck``, and prints a
Markdown table. A row has the kernels that miss a barrier, an atomic function and so on, with the number of those of
which each tool names the two lines, and of those of which a tool names other lines. The last row has the right kernels
that a tool accuses.

A process launches the kernels of a topic one after another. A kernel that never ends, or that ends the process, is
named below the table, and a new process launches the rest.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from table import markdown

TESTS = Path(__file__).parent.parent / "tests"
sys.path.append(str(TESTS))

from support import kernel_corpus  # noqa: E402  # after the path
from support.kernel_corpus import Wrong, right_source, topics, wrong_source  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from support.kernel_corpus import Source

PROGRAM = "compute-sanitizer"
TOOLS = ("racecheck", "memcheck", "synccheck")
SIDES = {"right": right_source, "wrong": wrong_source}

_TITLES = {
    "atomic": "an atomic function",
    "scope": "the scope of the device",
    None: "nothing, but uses a wrong place",
    "": "in all",
}
_LAUNCHED = "launches: "
_DONE = "all launches are done"
_MESSAGE = re.compile(r"^=========(?: (\S.*))?$|^=========( {2,}.*)$")
_ACCESS = re.compile(r"\baccess at (?:.*\.cu:(\d+))?")
_NO_ERRORS = ("COMPUTE-SANITIZER", "Target application", "ERROR SUMMARY", "RACECHECK SUMMARY", "LEAK SUMMARY")


class Said(NamedTuple):
    """A message of a tool on a kernel.

    Attributes:
        kernel: The name of the kernel.
        text: The first line of the message.
        races: The lines of the source of each two accesses that race. None is a line that the tool does not know.
    """

    kernel: str
    text: str
    races: frozenset[frozenset[int | None]]


def messages(output: str, names: Iterable[str]) -> list[Said]:
    """Return the messages in what compute-sanitizer has printed.

    A message begins behind ``=========`` and a space, and goes on in lines with more spaces. The message on a race has
    an access in its first line, and the accesses that race with this one in the next lines.

    Args:
        output: What the tool has printed, with other lines in between.
        names: The names of the kernels. A message on anything else is left out.
    """
    longest_first = sorted(names, key=len, reverse=True)
    known = re.compile(rf"\b({'|'.join(longest_first)})(?![a-zA-Z0-9])")  # a function of the kernel has a longer name
    texts: list[list[str]] = []
    for line in output.splitlines():
        match = _MESSAGE.match(line)
        if match is None:
            continue
        if match[2] and texts:
            texts[-1].append(match[2])
        else:
            texts.append([match[1] or ""])
    said = []
    for text in texts:
        kernel = known.search("\n".join(text))
        if kernel and not text[0].startswith(_NO_ERRORS):
            accesses = [_ACCESS.search(line) for line in text]
            lines = [int(access[1]) if access[1] else None for access in accesses if access]
            said.append(Said(kernel[1], text[0], frozenset(frozenset([lines[0], other]) for other in lines[1:])))
    return said


class Report(NamedTuple):
    """What a tool says about the kernels of a source.

    Attributes:
        said: The messages.
        stopped: The kernels that did not end, or that ended the process.
    """

    said: list[Said]
    stopped: list[str]


def watched(tool: str, side: str, topic: str, program: str, seconds: float = 120) -> Report:
    """Launch the kernels of a topic under a tool.

    Args:
        tool: One of :data:`TOOLS`.
        side: ``"right"`` or ``"wrong"``.
        topic: The name of the module of the corpus.
        program: The path of compute-sanitizer.
        seconds: The time after which a process is ended.
    """
    source = SIDES[side](topic)
    left, said, stopped = list(source.kernels), [], []
    while left:
        child = [sys.executable, __file__, "--launch", side, topic, *left]
        output = _output([program, "--tool", tool, *child], seconds)
        said += messages(output, source.kernels)
        if _DONE in output:
            break
        launched = re.findall(rf"^{_LAUNCHED}(\w+)$", output, re.MULTILINE)
        if not launched:
            raise RuntimeError(f"{tool} on {topic} ended before the first launch:\n{output[-2000:]}")
        stopped.append(launched[-1])
        left = left[left.index(launched[-1]) + 1 :]
    return Report(said, stopped)


def _output(command: Sequence[str], seconds: float) -> str:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
        start_new_session=True,
    )
    try:
        return process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with the process that the tool has started
        return process.communicate()[0]


def launch(side: str, topic: str, names: Sequence[str]) -> None:
    """Launch kernels with CuPy in this process, and print the name of each before its launch."""
    import cupy

    source = SIDES[side](topic)
    module = kernel_corpus.compiled(cupy, source, "-lineinfo")
    for name in names:
        print(f"\n{_LAUNCHED}{name}", flush=True)
        kernel_corpus.run(cupy, module, name, source.kernels[name].launch)
    print(f"\n{_DONE}", flush=True)


class Verdicts(NamedTuple):
    """What a tool says about all kernels.

    Attributes:
        found: The wrong kernels of which the tool names the two lines.
        other: The wrong kernels of which the tool says something else.
        accused: The right kernels of which the tool says something.
        stopped: The kernels that did not end under the tool, or that ended the process.
    """

    found: set[str]
    other: set[str]
    accused: set[str]
    stopped: set[str]


def verdicts(right: Iterable[Report], wrong: Iterable[tuple[Source, Report]]) -> Verdicts:
    """Compare reports with the marks of the corpus. A race of unknown lines counts as the race of the two lines."""
    accused, found, other, stopped = set[str](), set[str](), set[str](), set[str]()
    for report in right:
        accused.update(one.kernel for one in report.said)
        stopped.update(report.stopped)
    for source, report in wrong:
        stopped.update(report.stopped)
        for one in report.said:
            kernel = source.kernels[one.kernel]
            assert isinstance(kernel, Wrong)
            at_marks = {frozenset([None]), source.marked(kernel)} & one.races
            (found if at_marks else other).add(one.kernel)
    return Verdicts(found, other - found, accused, stopped)


def by_tcuda(chosen: Iterable[str]) -> Verdicts:
    """Return what the search for races on the processor says about some topics."""
    from support.corpus_races import races

    found, other, accused = set[str](), set[str](), set[str]()
    for topic in chosen:
        accused.update(name for name, several in races(right_source(topic)).items() if several)
        source = wrong_source(topic)
        for name, several in races(source).items():
            kernel = source.kernels[name]
            assert isinstance(kernel, Wrong)
            if several:
                (found if source.marked(kernel) in [one.lines for one in several] else other).add(name)
    return Verdicts(found, other, accused, set())


def rows(tools: dict[str, Verdicts], chosen: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the table of some topics: a row for each word, one for all wrong kernels, one for the right kernels."""
    programs = [program for topic in chosen for program in topics()[topic]]
    wrongs = [wrong for program in programs for wrong in program.wrongs]
    made: list[tuple[str, ...]] = [("the kernel misses", "kernels", *tools)]
    for word in (*kernel_corpus.WORDS, None, ""):
        names = {wrong.name for wrong in wrongs if word in ("", wrong.missing)}
        made.append((_TITLES.get(word, f"a {word}"), str(len(names)), *(_cell(names, tool) for tool in tools.values())))
    made.append(("nothing: accused", str(len(programs)), *(str(len(tool.accused)) for tool in tools.values())))
    return made


def _cell(names: set[str], tool: Verdicts) -> str:
    found, other = len(names & tool.found), len(names & tool.other)
    return f"{found} and {other} at other lines" if other else str(found)


def main(arguments: list[str] | None = None) -> int:
    """Launch the kernels under each tool, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=TOOLS, help="the tools of compute-sanitizer")
    parser.add_argument("--topics", nargs="+", choices=list(topics()), default=list(topics()), help="the topics")
    parser.add_argument("--workers", type=int, default=8, help="the number of processes on the GPU at the same time")
    parser.add_argument("--names", action="store_true", help="print the names of the kernels that a tool misses, too")
    parser.add_argument("--launch", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.launch:
        side, topic, *names = options.launch
        launch(side, topic, names)
        return 0
    folder = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin"
    program = shutil.which(PROGRAM) or shutil.which(PROGRAM, path=str(folder))
    if program is None:
        print(
            f"{PROGRAM} is neither on the PATH nor in {folder}. Install the CUDA toolkit, which has {PROGRAM}.",
            file=sys.stderr,
        )
        return 1
    places = [(tool, side, topic) for tool in options.tools for side in SIDES for topic in options.topics]
    with ThreadPoolExecutor(options.workers) as pool:
        reports = dict(zip(places, pool.map(lambda place: watched(*place, program), places), strict=True))
    tools = {"tcuda": by_tcuda(options.topics)}
    for tool in options.tools:
        right = [reports[tool, "right", topic] for topic in options.topics]
        wrong = [(wrong_source(topic), reports[tool, "wrong", topic]) for topic in options.topics]
        tools[tool] = verdicts(right, wrong)
    print(markdown(rows(tools, options.topics)))
    for tool, verdict in tools.items():
        if verdict.stopped:
            print(f"\n{tool}: did not end: {', '.join(sorted(verdict.stopped))}")
        if options.names:
            every = {name for topic in options.topics for name in wrong_source(topic).kernels}
            print(f"\n{tool}: not found: {', '.join(sorted(every - verdict.found))}")
            print(f"\n{tool}: accused: {', '.join(sorted(verdict.accused))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
