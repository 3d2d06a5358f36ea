"""Compares the checks of kernels with compute-sanitizer: ``python bench/kernel_error_tools.py FOLDER``.

Needs a GPU, CuPy, and ``compute-sanitizer``, which is a part of the CUDA toolkit. Launches the wrong and the right
kernels of the corpora in ``tests/emulation/kernel_races`` and ``tests/emulation/kernel_errors`` under ``memcheck``,
``racecheck``, ``initcheck`` and ``synccheck``. FOLDER gets the output of the tools, ``results.json``, and ``table.md``.

A row of the table has the kernels with one kind of mistake: how many there are, of how many each tool names the lines,
and of how many a tool says something else. The last row has the right kernels that a tool accuses. The column of tcuda
needs no GPU, but a C++ compiler.

A process launches the kernels of a topic one after another. A kernel that never ends, or that ends the process, is
named in the results, and a new process launches the rest. After ``--limit`` seconds all processes are ended. What was
launched by then is in the table. ``--read`` makes the results of a FOLDER anew, without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from table import markdown

TESTS = Path(__file__).parent.parent / "tests"
sys.path.append(str(TESTS))

from support import kernel_corpus  # noqa: E402  # after the path
from support.kernel_corpus import ERRORS, RACES, Wrong, right_source, topics, wrong_source  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from support.kernel_corpus import Source

PROGRAM = "compute-sanitizer"
TOOLS: dict[str, dict[str, str]] = {
    "memcheck": {"destroy-on-device-error": "kernel"},
    "racecheck": {"racecheck-report": "analysis"},
    "initcheck": {"initcheck-address-space": "all"},
    "synccheck": {},
}
"""The tools, each with the options that no other tool takes. Older versions lack some of the options."""
_OPTIONS = {"print-limit": "0", "show-backtrace": "device", "launch-timeout": "120"}
_PORT, _PORTS = 49152, 16
"""The first port of the tools, and the number of ports of each process: two processes may not use the same port."""
SIDES = {"right": right_source, "wrong": wrong_source}

_TITLES = {
    "atomic": "a race: an atomic function is missing",
    "scope": "a race: the scope of the device is missing",
    None: "a race: a wrong place is used",
    "global_memory": "global memory outside of an array",
    "shared_memory": "shared memory outside of a variable",
    "local_memory": "local memory outside of an array",
    "alignment": "a misaligned address",
    "unwritten_global": "global memory that nothing has written",
    "unwritten_shared": "shared memory that nothing has written",
    "unwritten_structures": "a structure that nothing has written",
    "unwritten_local": "a local variable without a value",
    "barriers": "a barrier or a mask that misses threads",
}
_LAUNCHED = "launches: "
_DONE = "all launches are done"
_LAUNCHES = re.compile(rf"^{_LAUNCHED}(\w+)$", re.MULTILINE)
_MESSAGE = re.compile(r"^=========(?: (\S.*))?$|^=========( {2,}.*)$")
_ACCESS = re.compile(r"(?:\baccess|Thread \([\d, ]+\)) at (?:.*\.cu:(\d+))?")
_FRAME = re.compile(r"^ +(?:at |Device Frame: ?).*\.cu:(\d+)")
_NO_ERRORS = ("COMPUTE-SANITIZER", "Target application", "ERROR SUMMARY", "RACECHECK SUMMARY", "LEAK SUMMARY")
_FOUND, _OTHER, _ACCUSED, _SILENT, _NOT_RUN = "found", "elsewhere", "accused", "silent", "not launched"


class Said(NamedTuple):
    """A message of a tool on a kernel.

    Attributes:
        kernel: The name of the kernel.
        text: The first line of the message.
        places: The lines of the source of each two accesses that race, or else each line that the message names. None
            is a line that the tool does not know.
    """

    kernel: str
    text: str
    places: frozenset[frozenset[int | None]]


def messages(output: str, names: Iterable[str]) -> list[Said]:
    """Return the messages in the output of compute-sanitizer.

    A message begins behind ``=========`` and a space, and goes on in lines with more spaces. The message on a race has
    an access in its first line, and the accesses that race with this one in the next lines. A message on a hazard has
    the two accesses in its next lines, and other messages have a line for each function.

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
            said.append(Said(kernel[1], text[0], frozenset(_places(text))))
    return said


def _places(text: Sequence[str]) -> Iterator[frozenset[int | None]]:
    accesses = [_ACCESS.search(line) for line in text]
    lines = [int(access[1]) if access[1] else None for access in accesses if access]
    yield from (frozenset([lines[0], other]) for other in lines[1:])
    if not lines:
        yield from (frozenset([int(frame[1])]) for frame in map(_FRAME.match, text) if frame)


class Report(NamedTuple):
    """The messages of a tool about the kernels of a source.

    Attributes:
        said: The messages.
        stopped: The kernels that did not end, or that ended the process.
        launched: The kernels that were launched.
    """

    said: list[Said]
    stopped: list[str]
    launched: list[str]


class Job(NamedTuple):
    """The kernels of a topic, for a tool.

    Attributes:
        tool: One of :data:`TOOLS`.
        side: ``"right"`` or ``"wrong"``.
        topic: The name of the module of the corpus.
    """

    tool: str
    side: str
    topic: str

    @property
    def names(self) -> list[str]:
        """The names of the kernels."""
        return list(SIDES[self.side](self.topic).kernels)

    def outputs(self, folder: Path) -> list[Path]:
        """Return the files with the output of the tool, in the order of the processes."""
        return sorted(folder.glob(f"{self.tool}-{self.side}-{self.topic}-*.txt"))

    def report(self, folder: Path) -> Report:
        """Return the output of the tool."""
        said, stopped, launched = [], list[str](), list[str]()
        for path in self.outputs(folder):
            output = path.read_text(errors="replace")
            said += messages(output, self.names)
            names = _LAUNCHES.findall(output)
            launched += names
            if names and _DONE not in output:
                stopped.append(names[-1])
        return Report(said, stopped, launched)

    def run(self, program: Sequence[str], folder: Path, until: float, patience: float = 15) -> None:
        """Launch the kernels under the tool.

        Args:
            program: The path of compute-sanitizer, and its options.
            folder: The folder for the output of the tool.
            until: The time of :func:`time.monotonic` at which the last process is ended.
            patience: The seconds without a word of a process after which the process is ended. A process has four times
                as long for its first launch.
        """
        left = self.names
        while left and time.monotonic() < until:
            path = folder / f"{self.tool}-{self.side}-{self.topic}-{len(self.outputs(folder)):03}.txt"
            child = [sys.executable, __file__, "--launch", self.side, self.topic, *left]
            _watch([*program, *child], path, until, patience)
            output = path.read_text(errors="replace")
            launched = _LAUNCHES.findall(output)
            if _DONE in output or not launched:
                return  # The process has printed why nothing was launched. Another process would print the same.
            left = left[left.index(launched[-1]) + 1 :]


def _watch(command: Sequence[str], path: Path, until: float, patience: float) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with path.open("w") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
        size, begun = 0, False
        last = time.monotonic()
        while True:
            try:
                process.wait(timeout=0.1)
                return
            except subprocess.TimeoutExpired:
                pass
            now = time.monotonic()
            if path.stat().st_size != size:
                size, last = path.stat().st_size, now
                begun = begun or _LAUNCHED in path.read_text(errors="replace")
            if now >= until or now - last > (patience if begun else 4 * patience):
                os.killpg(process.pid, signal.SIGKILL)  # with the process that the tool has started
                process.wait()
                return


def launch(side: str, topic: str, names: Sequence[str]) -> None:
    """Launch kernels with CuPy in this process, and print the name of each before its launch.

    Each array is a block of the driver, so that a tool knows where the array ends, and that nothing has written it.
    """
    import cupy

    cupy.cuda.set_allocator(None)
    source = SIDES[side](topic)
    module = kernel_corpus.compiled(cupy, source, "-lineinfo")
    for name in names:
        print(f"\n{_LAUNCHED}{name}", flush=True)
        try:
            kernel_corpus.run(cupy, module, name, source.kernels[name].launch)
        except (cupy.cuda.driver.CUDADriverError, cupy.cuda.runtime.CUDARuntimeError) as error:
            print(error, flush=True)
            cupy.zeros(1).get()  # ends the process if the error has taken the context
    print(f"\n{_DONE}", flush=True)


class Verdicts(NamedTuple):
    """The messages of a tool about all kernels.

    Attributes:
        found: The wrong kernels of which the tool names the lines.
        other: The wrong kernels of which the tool says something else.
        accused: The right kernels of which the tool says something.
        stopped: The kernels that did not end under the tool, or that ended the process.
        launched: The kernels that were launched.
    """

    found: set[str]
    other: set[str]
    accused: set[str]
    stopped: set[str]
    launched: set[str]

    def of(self, name: str) -> str:
        """Return the word for a kernel."""
        words = {_FOUND: self.found, _OTHER: self.other, _ACCUSED: self.accused, _SILENT: self.launched}
        return next((word for word, names in words.items() if name in names), _NOT_RUN)


def verdicts(right: Iterable[Report], wrong: Iterable[tuple[Source, Report]]) -> Verdicts:
    """Compare reports with the marks of the corpora. A message of unknown lines counts as one of the marked lines."""
    accused, found, other, stopped, launched = (set[str]() for _ in Verdicts._fields)
    for report in right:
        accused.update(one.kernel for one in report.said)
        stopped.update(report.stopped)
        launched.update(report.launched)
    for source, report in wrong:
        stopped.update(report.stopped)
        launched.update(report.launched)
        for one in report.said:
            kernel = source.kernels[one.kernel]
            assert isinstance(kernel, Wrong)
            at_marks = not one.places or {frozenset([None]), source.marked(kernel)} & one.places
            (found if at_marks else other).add(one.kernel)
    return Verdicts(found, other - found, accused, stopped, launched)


def by_tcuda(chosen: Iterable[str]) -> Verdicts:
    """Return what the checks on the processor say about some topics."""
    from support.corpus_errors import findings
    from support.corpus_races import races

    def report(source: Source, topic: str) -> Report:
        if topic in topics(ERRORS):
            found = findings(source)
        else:
            found = {name: [race.lines for race in several] for name, several in races(source).items()}
        said = [Said(name, "", frozenset(places)) for name, places in found.items() if places]
        return Report(said, [], list(source.kernels))

    right = [report(right_source(topic), topic) for topic in chosen]
    return verdicts(right, [(wrong_source(topic), report(wrong_source(topic), topic)) for topic in chosen])


def rows(tools: dict[str, Verdicts], chosen: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the table of some topics: a row for each mistake, one for all wrong kernels, one for the right kernels."""
    chosen = list(chosen)
    programs = [program for topic in chosen for program in topics()[topic]]
    wrongs = [wrong for program in programs for wrong in program.wrongs]
    kinds: dict[str, set[str]] = {}
    for wrong in wrongs:
        kinds.setdefault(kind_of(wrong), set()).add(wrong.name)
    order = [*(_title(word) for word in (*kernel_corpus.WORDS, None)), *_TITLES.values()]
    made: list[tuple[str, ...]] = [("the mistake", "kernels", *tools)]
    for title in sorted(kinds, key=order.index):
        made.append((title, *_row(kinds[title], tools)))
    made.append(("all wrong kernels", *_row({wrong.name for wrong in wrongs}, tools)))
    names = {program.name for program in programs}
    made.append(("none: right kernels that are accused", str(len(names)), *(_accused(names, tools))))
    return made


def kind_of(wrong: Wrong) -> str:
    """Return the mistake of a wrong kernel in words."""
    topic = wrong.program.topic
    return _title(topic if topic in _TITLES else wrong.missing)


def _title(word: str | None) -> str:
    return _TITLES.get(word, f"a race: a {word} is missing")


def _row(names: set[str], tools: dict[str, Verdicts]) -> Iterator[str]:
    yield str(len(names))
    for tool in tools.values():
        found, other = len(names & tool.found), len(names & tool.other)
        text = f"{found} and {other} elsewhere" if other else str(found)
        yield text + _of_launched(names, tool)


def _accused(names: set[str], tools: dict[str, Verdicts]) -> Iterator[str]:
    for tool in tools.values():
        yield f"{len(names & tool.accused)}{_of_launched(names, tool)}"


def _of_launched(names: set[str], tool: Verdicts) -> str:
    launched = len(names & tool.launched)
    return "" if launched == len(names) else f" of {launched}"


def _jobs(chosen: Iterable[str], tools: Iterable[str]) -> list[Job]:
    """Return the jobs, first those in which a tool should find something."""
    first = {
        **dict.fromkeys(topics(RACES), "racecheck"),
        **dict.fromkeys(["global_memory", "shared_memory", "local_memory", "alignment"], "memcheck"),
        "barriers": "synccheck",
    }
    jobs = [Job(tool, side, topic) for side in ("wrong", "right") for topic in chosen for tool in tools]
    return sorted(jobs, key=lambda job: first.get(job.topic, "initcheck") != job.tool)


def options_of(tool: str, place: int, known: str) -> list[str]:
    """Return the options of a process.

    Args:
        tool: The tool.
        place: A number that no other process has.
        known: The help of compute-sanitizer, which names all options that this version has.
    """
    ports = {"port": str(_PORT + place * _PORTS), "max-connections": str(_PORTS)}
    options = {**_OPTIONS, **ports, **TOOLS[tool]}
    used = {name: value for name, value in options.items() if f"--{name}" in known}
    return ["--tool", tool, *(word for name, value in used.items() for word in (f"--{name}", value))]


def run(jobs: Sequence[Job], program: str, folder: Path, seconds: float, workers: int) -> None:
    """Run jobs at the same time, and end all of them after some seconds."""
    until = time.monotonic() + seconds
    known = subprocess.run([program, "--help"], capture_output=True, text=True, check=False).stdout

    def one(numbered: tuple[int, Job]) -> None:
        place, job = numbered
        job.run([program, *options_of(job.tool, place, known)], folder, until)

    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(one, enumerate(jobs)):
            pass


def write(folder: Path, chosen: Sequence[str], names: Sequence[str], *, with_tcuda: bool) -> str:
    """Write the results and the table of the tools' messages, and return the table."""
    tools = {"tcuda": by_tcuda(chosen)} if with_tcuda else {}
    for tool in names:
        right = [Job(tool, "right", topic).report(folder) for topic in chosen]
        wrong = [(wrong_source(topic), Job(tool, "wrong", topic).report(folder)) for topic in chosen]
        tools[tool] = verdicts(right, wrong)
    table = f"{markdown(rows(tools, chosen))}\n"
    programs = [program for topic in chosen for program in topics()[topic]]
    kernels = {program.name: "right" for program in programs}
    kernels.update({wrong.name: kind_of(wrong) for program in programs for wrong in program.wrongs})
    results = {
        "kernels": {
            name: {"kernel": kind, **{tool: verdict.of(name) for tool, verdict in tools.items()}}
            for name, kind in kernels.items()
        },
        "did not end": {tool: sorted(verdict.stopped) for tool, verdict in tools.items()},
    }
    (folder / "results.json").write_text(f"{json.dumps(results, indent=1)}\n")
    (folder / "table.md").write_text(table)
    return table


def main(arguments: list[str] | None = None) -> int:
    """Launch the kernels under each tool, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="the folder for the results")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS), help="the tools of compute-sanitizer")
    parser.add_argument("--topics", nargs="+", choices=list(topics()), default=list(topics()), help="the topics")
    parser.add_argument("--workers", type=int, default=8, help="the number of processes on the GPU at the same time")
    parser.add_argument("--limit", type=float, default=3600, metavar="SECONDS", help="the time for all launches")
    parser.add_argument("--without-tcuda", action="store_true", help="leave out the column of tcuda")
    parser.add_argument("--read", action="store_true", help="launch nothing: read what is in the folder")
    parser.add_argument("--launch", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.launch:
        side, topic, *names = options.launch
        launch(side, topic, names)
        return 0
    if options.folder is None:
        parser.error("name the folder for the results")
    if not options.read:
        bin_folder = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin"
        program = shutil.which(PROGRAM) or shutil.which(PROGRAM, path=str(bin_folder))
        if program is None:
            print(
                f"{PROGRAM} is neither on the PATH nor in {bin_folder}. Install the CUDA toolkit, which has {PROGRAM}.",
                file=sys.stderr,
            )
            return 1
        options.folder.mkdir(parents=True, exist_ok=True)
        for job in (jobs := _jobs(options.topics, options.tools)):
            for path in job.outputs(options.folder):
                path.unlink()  # of an earlier run
        run(jobs, program, options.folder, options.limit, options.workers)
    print(write(options.folder, options.topics, options.tools, with_tcuda=not options.without_tcuda), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
