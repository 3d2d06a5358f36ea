"""Runs CuPy's own tests under the race detector: ``python .ci/cupy_races/run.py CHECKOUT [--workers N] [--seconds S]``.

CHECKOUT is a folder with CuPy's folder ``tests``, of the version that is installed. The tests of random numbers,
sorting, linear algebra, FFT, reductions and statistics are run, in a shuffled order that is always the same. Several
processes take turns. After ``--seconds``, no further test begins. After ``--grace`` more seconds, a process whose test
has not ended is killed. The tests that failed are run again without the detector, for at most a minute if ``--seconds``
is given. The script prints how many of the tests were checked, the races by the operations that make them, and the
tests that fail under the detector and pass without the detector.

The exit status is 1 if there are exact races, if a process crashed, or if a test failed of which it is not known that
the test fails without the detector too. A file of suppressions (``TCUDA_SANITIZER_SUPPRESSIONS``) explains races.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from race_log import Results, several

HERE = Path(__file__).parent
PARTS = (
    "random_tests",
    "sorting_tests",
    "linalg_tests",
    "fft_tests",
    "statistics_tests",
    "math_tests/test_sumprod.py",
    "core_tests/test_reduction.py",
    "core_tests/test_ndarray_reduction.py",
)
_MARKERS = ("slow", "multi_gpu", "parallel_threads", "iterations", "thread_unsafe")
_INI = "\n ".join(["[pytest]\nmarkers =", *_MARKERS]) + "\nfilterwarnings = ignore\n"
_MOST_SHOWN = 20
_SLOWEST = 5
_AGAIN = 60.0  # seconds for the tests that failed
_PROGRESS = 30.0  # seconds between two lines that tell the progress


@dataclass
class Worker:
    """A process that runs tests.

    Attributes:
        process: The process.
        log: The log of its tests.
        output: A file with the text that the process has printed.
        killed: Whether the process was killed because its test did not end in time.
    """

    process: subprocess.Popen[str]
    log: Path
    output: Path
    killed: bool = False

    @property
    def crashed(self) -> bool:
        """Whether the process has ended neither with the end of its tests nor because it was killed."""
        return not self.killed and (self.process.returncode not in (0, 1) or not self.log.exists())


def start(tests: Path, arguments: list[str], log: Path, output: TextIO) -> subprocess.Popen[str]:
    """Start pytest with the plugin, in the folder of the tests."""
    path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "pytest", "-q", "--tb=line", "-p", "races_by_test", "-p", "no:cacheprovider"]
    command += ["--continue-on-collection-errors", "-m", "not slow and not multi_gpu", "-o", "faulthandler_timeout=60"]
    command += [f"--races-log={log}", *arguments]
    variables = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, cwd=tests, env=variables, text=True, stdout=output, stderr=subprocess.STDOUT)


def run(
    tests: Path, folder: Path, name: str, arguments: list[str], count: int, end: float, grace: float
) -> list[Worker]:
    """Run tests in ``count`` processes, and return the processes after their ends.

    Args:
        tests: CuPy's folder ``tests``.
        folder: A folder for the logs.
        name: The name of the run, for the names of its files.
        arguments: Arguments of pytest.
        count: The number of processes.
        end: The time of ``time.monotonic()`` from which on no test begins.
        grace: The seconds after which processes that have not ended by then are killed.
    """
    (folder / "pytest.ini").write_text(_INI, encoding="utf-8")
    common = ["-c", str(folder / "pytest.ini"), "--rootdir", str(tests), f"--races-queue={folder / name}.queue"]
    common += [f"--races-deadline={end}", *arguments]
    for old in folder.glob(f"{name}[-.]*"):
        old.unlink()
    workers = []
    for number in range(count):
        log, output = folder / f"{name}-{number}.log", folder / f"{name}-{number}.txt"
        with output.open("w", encoding="utf-8") as file:
            workers.append(Worker(start(tests, common, log, file), log, output))
    begin = time.monotonic()
    progress = begin + _PROGRESS
    for worker in workers:
        while True:
            try:
                worker.process.wait(max(0.0, min(end + grace, progress) - time.monotonic()))
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() >= end + grace:
                    worker.process.kill()
                    worker.process.wait()
                    worker.killed = True
                    break
                progress += _PROGRESS
                ran = len(Results.of(each.log for each in workers).ran)
                print(f"{time.monotonic() - begin:,.0f} s: {several(ran, 'test')}", flush=True)
    return workers


def report(workers: list[Worker], results: Results, begin: float) -> None:
    """Print what went wrong in the processes, and where their time went."""
    for worker in workers:
        printed = worker.output.read_text(encoding="utf-8")
        where = results.unfinished.get(worker.log, "no test")
        if worker.crashed:
            print(f"A process ended with the status {worker.process.returncode} in {where}:\n{printed[-2000:]}")
        elif worker.killed:
            print(f"A process was killed after the grace in {where}.")
        elif "\nERROR " in printed:  # a file that cannot be imported
            print("\n".join(line for line in printed.splitlines() if line.startswith("ERROR ")))
    if len(results.orders) > 1:
        print("The processes have collected different tests, so some tests may have run twice or not at all.")
    if results.begins:
        print(
            f"The first tests began after {min(results.begins) - begin:,.1f} to {max(results.begins) - begin:,.1f} s."
        )
    total = sum(results.ran.values())
    print(f"{several(len(results.ran), 'test')} took {total:,.1f} s of {several(len(workers), 'worker')}. The slowest:")
    for test, seconds in sorted(results.ran.items(), key=lambda each: -each[1])[:_SLOWEST]:
        print(f"  {seconds:,.1f} s: {test}")


def main() -> int:
    """Run the tests, print the summary, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="a folder with CuPy's folder tests")
    parser.add_argument("--workers", type=int, default=4, help="the number of processes")
    parser.add_argument("--seconds", type=float, default=math.inf, metavar="S", help="begin no test after S seconds")
    parser.add_argument("--grace", type=float, default=20.0, metavar="S", help="what the last tests may take (20)")
    parser.add_argument("--each", type=int, default=1, metavar="N", help="run every Nth test of each file")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the races of each test to FILE")
    parser.add_argument("--logs", type=Path, metavar="FOLDER", help="keep the logs, which grow with each test")
    parser.add_argument("--parts", nargs="+", default=PARTS, help="folders and files in tests/cupy_tests")
    options = parser.parse_args()
    tests = (options.checkout / "tests").resolve()
    with ExitStack() as stack:
        folder = (options.logs or Path(stack.enter_context(tempfile.TemporaryDirectory()))).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        begin = time.monotonic()
        arguments = [f"--races-each={options.each}", *(f"cupy_tests/{part}" for part in options.parts)]
        workers = run(tests, folder, "checked", arguments, options.workers, begin + options.seconds, options.grace)
        results = Results.of(worker.log for worker in workers)
        report(workers, results, begin)
        if options.json is not None:
            options.json.write_text(json.dumps(results.as_dict()), encoding="utf-8")
        again = Results()
        if results.failed:
            names = folder / "failed.txt"
            names.write_text("\n".join(results.failed), encoding="utf-8")
            files = sorted({name.partition("::")[0] for name in results.failed})
            arguments = ["--no-check", f"--races-tests={names}", *files]
            end = math.inf if options.seconds == math.inf else time.monotonic() + _AGAIN
            count = min(options.workers, len(results.failed))
            again = Results.of(
                worker.log for worker in run(tests, folder, "again", arguments, count, end, options.grace)
            )
    for line in results.lines():
        print(line)
    broken = [test for test in results.failed if test in again.ran and test not in again.failed]
    unknown = [test for test in results.failed if test not in again.ran]
    print(f"Failing without the detector too: {several(len(again.failed), 'test')}.")
    for title, shown in (
        ("Failing under the detector only", broken),
        ("Failing under the detector, and not run without the detector", unknown),
    ):
        if shown or title.endswith("only"):
            print(f"{title}: {several(len(shown), 'test')}.")
        for test in shown[:_MOST_SHOWN]:
            print(f"  {test}")
    crashed = any(worker.crashed for worker in workers) or len(results.orders) > 1
    return int(bool(broken or unknown or crashed or any(found["races"] for found in results.found)))


if __name__ == "__main__":
    sys.exit(main())
