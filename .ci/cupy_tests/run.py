"""Runs CuPy's own tests under the race detector: ``python .ci/cupy_tests/run.py CHECKOUT [--workers N] [--each N]``.

CHECKOUT is a folder with CuPy's folder ``tests``, of the version that is installed. The tests of random numbers,
sorting, linear algebra, FFT, reductions and statistics are run, each process with a part of them. The script prints the
races by the operations that make them, and the tests that fail under the detector and pass without the detector. The
exit status is 1 if there are exact races or such tests.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import races_by_test

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


def pytest_of(tests: Path, arguments: list[str], result: Path, **pipes: Any) -> subprocess.Popen[str]:
    """Start pytest with the plugin, in the folder of the tests."""
    path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--tb=line",
        "-p",
        "races_by_test",
        "-p",
        "no:cacheprovider",
        "--continue-on-collection-errors",
    ]
    command += ["-m", "not slow and not multi_gpu", f"--races-json={result}", *arguments]
    variables = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, cwd=tests, env=variables, text=True, **pipes)


def joined(results: list[Path]) -> dict[str, Any]:
    """Return the results of all processes as one; a process that crashed has no result."""
    joined: dict[str, Any] = {"tests": 0, "operations": 0, "failed": [], "found": []}
    for path in results:
        if path.exists():
            for key, value in json.loads(path.read_text(encoding="utf-8")).items():
                joined[key] += value
    return joined


def failing_without(tests: Path, failed: list[str], folder: Path) -> list[str]:
    """Return the tests of ``failed`` that fail without the detector too."""
    if not failed:
        return []
    names, result = folder / "failed.txt", folder / "without.json"
    names.write_text("\n".join(failed), encoding="utf-8")
    arguments = ["-c", str(folder / "pytest.ini"), "--rootdir", str(tests), "--no-check"]
    arguments += [f"--races-tests={names}", *sorted({name.partition("::")[0] for name in failed})]
    pytest_of(tests, arguments, result, stdout=subprocess.DEVNULL).wait()
    without: list[str] = joined([result])["failed"]
    return without


def main() -> int:
    """Run the tests, print the summary, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="a folder with CuPy's folder tests")
    parser.add_argument("--workers", type=int, default=4, help="the number of processes")
    parser.add_argument("--each", type=int, default=1, metavar="N", help="run every Nth test of each file")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the races of each test to FILE")
    parser.add_argument("--parts", nargs="+", default=PARTS, help="folders and files in tests/cupy_tests")
    options = parser.parse_args()
    tests = (options.checkout / "tests").resolve()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "pytest.ini").write_text(_INI, encoding="utf-8")
        common = ["-c", str(folder / "pytest.ini"), "--rootdir", str(tests), f"--races-each={options.each}"]
        common += [f"cupy_tests/{part}" for part in options.parts]
        results, logs, started = [], [], []
        for part in range(options.workers):
            results.append(folder / f"{part}.json")
            logs.append((folder / f"{part}.txt").open("w+", encoding="utf-8"))
            arguments = ["--races-part", str(part), str(options.workers), *common]
            started.append(pytest_of(tests, arguments, results[-1], stdout=logs[-1], stderr=subprocess.STDOUT))
        for process, result, log in zip(started, results, logs, strict=True):
            process.wait()
            log.seek(0)
            printed = log.read()
            log.close()
            if process.returncode not in (0, 1) or not result.exists():
                print(f"A process ended with the status {process.returncode}:\n{printed[-2000:]}")
            elif "\nERROR " in printed:  # a file that cannot be imported
                print("\n".join(line for line in printed.splitlines() if line.startswith("ERROR ")))
        result = joined(results)
        if options.json is not None:
            options.json.write_text(json.dumps(result), encoding="utf-8")
        without = set(failing_without(tests, result["failed"], folder))
    crashed = [process for process, path in zip(started, results, strict=True) if process.returncode not in (0, 1)]
    broken = [test for test in result["failed"] if test not in without]
    for line in races_by_test.lines(result):
        print(line)
    print(f"Failing without the detector too: {races_by_test.several(len(without), 'test')}.")
    print(f"Failing under the detector only: {races_by_test.several(len(broken), 'test')}.")
    for test in broken[:_MOST_SHOWN]:
        print(f"  {test}")
    return int(bool(broken or crashed or any(found["races"] for found in result["found"])))


if __name__ == "__main__":
    sys.exit(main())
