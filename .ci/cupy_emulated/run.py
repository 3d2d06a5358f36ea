"""Runs CuPy's own tests on emulated devices: ``python .ci/cupy_emulated/run.py [TESTS] [--each N] [--floor F]``.

TESTS is a folder with CuPy's folder ``tests``, such as a checkout of CuPy, of the version that is installed. Without
TESTS, the script downloads the tests (``download.py``). CuPy must be installed. No GPU is needed. The script prints the
results by file, the most frequent errors, and the part of the tests that pass, of those that need no private part of
CuPy. The exit status is 1 if this part is below the floor, or if the tests of a file could not be run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import download

HERE = Path(__file__).parent
PARTS = (
    "binary_tests",
    "core_tests",
    "creation_tests",
    "fft_tests",
    "functional_tests",
    "indexing_tests",
    "lib_tests",
    "linalg_tests",
    "logic_tests",
    "manipulation_tests",
    "math_tests",
    "misc_tests",
    "padding_tests",
    "polynomial_tests",
    "random_tests",
    "sorting_tests",
    "statistics_tests",
)
"""The folders in ``tests/cupy_tests`` with tests of functions, and not of CUDA, of files or of CuPy's compiler."""

_WITHOUT_ASSERTIONS = {"test_callback.py"}
"""Files whose tests pass without a check where cuFFT has no callbacks that are compiled at run time."""

_MARKERS = ("slow", "multi_gpu", "parallel_threads", "iterations", "thread_unsafe")
_INI = "\n ".join(["[pytest]\nmarkers =", *_MARKERS]) + "\nfilterwarnings = ignore\n"
_MOST_SHOWN = 30
_LIMIT = 600  # seconds for a process


def files_of(tests: Path, parts: list[str]) -> list[Path]:
    """Return the files of the parts, relative to the parent of ``tests``, the largest first.

    A part that is not in ``tests`` is one of the tests of ``cupyx`` or of ``cupyx.scipy``.
    """
    others = tests.parent / "cupyx_tests"
    folders = (tests, others, others / "scipy_tests")
    places = [folder / part for part in parts for folder in folders if (folder / part).exists()]
    found = [path for place in places for path in ([place] if place.suffix == ".py" else place.rglob("*"))]
    files = [
        path
        for path in found
        if path.name.startswith("test_") and path.suffix == ".py" and path.name not in _WITHOUT_ASSERTIONS
    ]
    return [path.relative_to(tests.parent) for path in sorted(files, key=lambda path: -path.stat().st_size)]


def run(files: list[Path], root: Path, ini: Path, each: int, result: Path) -> str:
    """Run the tests of some files in a process, and return what the process printed if it did not end as expected."""
    path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:tcuda"]
    command += ["-p", "emulated_cupy", "--continue-on-collection-errors", "-m", "not slow and not multi_gpu"]
    command += ["-c", str(ini), "--rootdir", str(root), f"--suite-json={result}", f"--suite-each={each}"]
    variables = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "CUPY_TEST_GPU_LIMIT": "1"}
    variables["TCUDA_RUNTIME"] = "emulated"
    try:
        done = subprocess.run(
            [*command, *map(str, files)],
            cwd=root,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no end after {_LIMIT} s"
    return "" if result.exists() else f"status {done.returncode}: {done.stdout[-500:]}"


def main() -> int:
    """Run the tests, print the results, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tests", type=Path, nargs="?", help="a folder with CuPy's folder tests")
    parser.add_argument("--each", type=int, default=1, metavar="N", help="run every Nth test of each file")
    parser.add_argument("--floor", type=float, default=0.0, metavar="F", help="the least part that must pass, 0 to 1")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="the number of processes at a time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE")
    parser.add_argument(
        "--parts", nargs="+", default=PARTS, help="folders and files of cupy_tests, cupyx_tests or scipy_tests"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        try:
            download.installed_version()
            root = (options.tests or download.download(folder)).resolve() / "tests"
        except download.Absent as absent:
            parser.error(f"{absent} Give a folder with CuPy's folder tests.")
        (folder / "pytest.ini").write_text(_INI, encoding="utf-8")
        files = files_of(root / "cupy_tests", options.parts)
        # A sample needs few processes. In a whole run, an error that ends a process costs the tests of one file only.
        batches = [files[first :: options.workers] for first in range(options.workers)] if options.each > 1 else []
        batches = [batch for batch in batches if batch] or [[file] for file in files]
        results = [folder / f"{number}.json" for number in range(len(batches))]
        with ThreadPoolExecutor(options.workers) as pool:
            started = [
                pool.submit(run, batch, root, folder / "pytest.ini", options.each, result)
                for batch, result in zip(batches, results, strict=True)
            ]
            ends = [future.result() for future in started]
        broken = [f"{batch[0]}: {end}" for batch, end in zip(batches, ends, strict=True) if end]
        found = [json.loads(result.read_text(encoding="utf-8")) for result in results if result.exists()]
    counts: dict[str, Counter[str]] = {}
    why: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    surprises: list[str] = []
    for part in found:
        counts |= {file: Counter(count) for file, count in part["files"].items()}
        why.update(part["why"])
        reasons.update(part["reasons"])
        surprises += part["surprises"]
    return report(counts, why, reasons, surprises, broken, options.floor, options.json)


def report(
    counts: dict[str, Counter[str]],
    why: Counter[str],
    reasons: Counter[str],
    surprises: list[str],
    broken: list[str],
    floor: float,
    path: Path | None,
) -> int:
    """Print the results and write them to ``path``, and return the exit status."""
    total: Counter[str] = Counter()
    for file, count in sorted(counts.items()):
        total.update(count)
        if count["failed"] or count["error"] or count["private"]:
            print(f"{file}: {_words(count)}")
    for message, number in (why + reasons).most_common(_MOST_SHOWN):
        print(f"{number:6,} x {message}")
    for name in surprises:
        print(f"The test passes, although expected.json says that the test cannot: {name}")
    for text in broken:
        print(f"The tests could not be run: {text}")
    ran = total["passed"] + total["failed"] + total["error"]
    part = total["passed"] / ran if ran else 0.0
    apart = " that need no private part of CuPy" if total["private"] else ""
    print(f"Of {ran:,} tests of CuPy{apart}, {part:.2%} pass: {_words(total)}.")
    if path is not None:
        written = {"part": part, "total": total, "files": counts, "why": why, "reasons": reasons}
        path.write_text(json.dumps(written, indent=1), "utf-8")
    if part < floor:
        print(f"This is below the floor of {floor:.2%}.")
    return int(bool(broken) or part < floor)


def _words(count: Counter[str]) -> str:
    return ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(count.items()) if number)


if __name__ == "__main__":
    sys.exit(main())
