"""Runs the tests of libraries that use CuPy on emulated devices: ``python .ci/clients/run.py [LIBRARY ...]``.

The tests are unchanged. Each library is installed from the package index into a folder of its own. ``clients.json``
names the libraries, says where their tests are, and how many of the tests must pass. CuPy is not needed. A library that
the package index does not have is left out. The exit status is 1 if fewer tests pass than must, or if the tests could
not be run.

With ``--cuda FILE``, the tests run with the installed CuPy on a GPU, twice: as they are, and with ``import tcuda``
before ``import cupy``. All runs start at the same time. FILE gets the outcomes. The exit status is 1 if an outcome
depends on tcuda. For a machine without a network, ``--packages FOLDER`` names a folder with the wheels and the archives
of sources. The other packages that the libraries need must be installed there.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CLIENTS: dict[str, dict[str, Any]] = json.loads((HERE / "clients.json").read_text("utf-8"))["clients"]

ON_EMULATED_DEVICES = ("-m", "tcuda.emulation", "-m", "pytest")
WITH_CUPY = ("-m", "pytest", "-p", "no:tcuda")
WITH_TCUDA = (*WITH_CUPY, "-p", "tcuda_first")

_LIMIT = 1800  # seconds


class Absent(Exception):
    """The package index does not have a library, or not its sources."""


@dataclass
class Result:
    """The outcomes of a run of tests.

    Attributes:
        outcomes: The outcome of each test: ``passed``, ``failed`` or ``skipped``.
        problem: Why the tests could not be run to their end; empty if they could.
        seconds: The time of the run.
        allocations: The number of arrays that tcuda allocated, for each process that used tcuda on CUDA.
    """

    outcomes: dict[str, str] = field(default_factory=dict)
    problem: str = ""
    seconds: float = 0.0
    allocations: list[int] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """Return how many tests had each outcome."""
        return {"passed": 0, "failed": 0, "skipped": 0} | Counter(self.outcomes.values())


def install(client: dict[str, Any], folder: Path, packages: Path | None) -> None:
    """Install the packages of a client into ``folder``, or all wheels of the folder ``packages``.

    Raises:
        Absent: The package index does not have the packages.
    """
    if packages is not None:
        wheels = map(str, sorted(packages.glob("*.whl")))
        _pip("install", "--target", str(folder), "--no-index", "--no-deps", "--no-compile", *wheels)
        return
    _pip("install", "--target", str(folder), *client["install"])
    if "alone" in client:
        _pip("install", "--target", str(folder), "--no-deps", *client["alone"])


def sources(client: dict[str, Any], folder: Path, packages: Path | None) -> Path:
    """Unpack the sources of a client in ``folder``, and return their folder.

    Raises:
        Absent: The package index, or the folder ``packages``, does not have the sources.
    """
    wanted = client.get("sources", client["install"][0])
    name = wanted.partition("=")[0]
    if packages is None:
        _pip("download", "--no-deps", "--no-binary", name, "--dest", str(folder), wanted)
    archives = list((packages or folder).glob(f"{re.sub('[-.]', '_', name)}-*.tar.gz"))
    if len(archives) != 1:
        raise Absent(f"there are {len(archives)} archives of the sources")
    with tarfile.open(archives[0]) as opened:
        opened.extractall(folder, filter="data")
    return folder / archives[0].name.removesuffix(".tar.gz")


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", arguments[0], "-q", *arguments[1:]]
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        raise Absent(f"pip {arguments[0]} has failed")


def run(
    client: dict[str, Any], installed: Path, tests: Path, pytest: tuple[str, ...], limit: float, more: list[str]
) -> Result:
    """Run the tests of a client for ``limit`` seconds at most.

    Args:
        client: The row of the client.
        installed: The folder with its packages.
        tests: The folder in which its tests are run.
        pytest: The arguments of Python that start pytest.
        limit: The time.
        more: Arguments of pytest, in addition to those of the client.
    """
    with tempfile.TemporaryDirectory() as made:
        log = Path(made) / "outcomes"
        command = [sys.executable, *pytest, "-q", "--tb=line", "-p", "no:cacheprovider", "-p", "outcome_log"]
        workers = min(client.get("workers", 1), os.cpu_count() or 1)
        command += ["-n", str(workers), "--dist", "worksteal"] if workers > 1 else []
        path = os.pathsep.join(filter(None, [str(installed), str(HERE), os.environ.get("PYTHONPATH")]))
        variables = {**os.environ, **client.get("variables", {}), "PYTHONPATH": path, "OUTCOME_LOG": str(log)}
        start = time.monotonic()
        with (Path(made) / "output").open("w+", encoding="utf-8") as output:
            process = subprocess.Popen(
                [*command, *client["arguments"], *more],
                cwd=tests,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                problem = f"pytest has ended with the status {process.wait(limit)}"
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                problem = f"no end after {limit:.0f} s"
            output.seek(0)
            printed = output.read()
        lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []
    has_ended = process.returncode in (0, 1) and lines
    result = Result(problem="" if has_ended else f"{problem}: {printed[-2000:]}", seconds=time.monotonic() - start)
    for line in lines:
        if "allocations" in line:
            result.allocations.append(line["allocations"])
        elif result.outcomes.get(line["test"]) in (None, "passed"):  # A teardown may fail after the test has passed.
            result.outcomes[line["test"]] = line["outcome"]
    return result


def prepare(name: str, client: dict[str, Any], folder: Path, packages: Path | None) -> tuple[Path, Path] | None:
    """Install a client, and return the folder of its packages and that of its tests; None if a package is absent.

    The wheels of the folder ``packages`` are installed once, for all clients.
    """
    installed, unpacked = (folder if packages is None else folder.parent) / "installed", folder / "sources"
    unpacked.mkdir(parents=True)
    try:
        if not installed.exists():
            install(client, installed, packages)
        root = installed if client["tests"] == "installed" else sources(client, unpacked, packages)
    except Absent as absent:
        print(f"{name}: left out, because {absent}.")
        return None
    return installed, root / client["folder"]


def check(name: str, client: dict[str, Any], folder: Path, packages: Path | None) -> bool:
    """Run the tests of a client on emulated devices, and return whether enough of the tests pass."""
    places = prepare(name, client, folder, packages)
    if places is None:
        return True
    result = run(client, *places, ON_EMULATED_DEVICES, _LIMIT, client.get("left_out", []))
    if result.problem:
        print(f"{name}: the tests could not be run. {result.problem}")
        return False
    for test, outcome in result.outcomes.items():
        if outcome == "failed":
            print(f"  {test[:200]}")
    print(f"{name}: {_words(result.counts())}; floor {client['floor']:,}; {result.seconds:.0f} s.")
    return result.counts()["passed"] >= int(client["floor"])


def compare(names: list[str], folder: Path, packages: Path | None, limit: float, report: Path) -> bool:
    """Run the tests of clients with CuPy on a GPU, without and with tcuda, and return whether the outcomes are equal.

    Args:
        names: The clients.
        folder: An empty folder for the packages.
        packages: The folder with the wheels and the archives; None for the package index.
        limit: The most seconds for each run. The outcomes of tests that have ended until then are kept.
        report: The file for the outcomes.
    """
    places = {name: prepare(name, CLIENTS[name], folder / name, packages) for name in names}
    runs = [(name, place, pytest) for name, place in places.items() if place for pytest in (WITH_CUPY, WITH_TCUDA)]
    with ThreadPoolExecutor(len(runs) or 1) as pool:
        started = [pool.submit(run, CLIENTS[name], *place, pytest, limit, []) for name, place, pytest in runs]
        results = [future.result() for future in started]
    rows: dict[str, Any] = {}
    for (name, _, _), plain, with_tcuda in zip(runs[::2], results[::2], results[1::2], strict=True):
        both = plain.outcomes.keys() & with_tcuda.outcomes.keys()
        differ = {
            test: [plain.outcomes[test], with_tcuda.outcomes[test]]
            for test in sorted(both)
            if plain.outcomes[test] != with_tcuda.outcomes[test]
        }
        problems = [result.problem for result in (plain, with_tcuda) if result.problem]
        rows[name] = {
            "cupy": plain.counts(),
            "with tcuda": with_tcuda.counts(),
            "only in one run": len(plain.outcomes.keys() ^ with_tcuda.outcomes.keys()),
            "differ": differ,
            "problems": problems,
            "allocations of tcuda": with_tcuda.allocations,
            "outcomes": by_function(plain.outcomes),
        }
        print(
            f"{name}: CuPy {_words(plain.counts())}; with tcuda {_words(with_tcuda.counts())}; {plain.seconds:.0f} s."
        )
        for test, (before, after) in differ.items():
            print(f"  {test[:200]}: {before}, with tcuda {after}")
        for problem in problems:
            print(f"  {problem}")
    report.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    return all(
        not row["differ"] and not row["problems"] and not row["only in one run"] and sum(row["allocations of tcuda"])
        for row in rows.values()
    )


def by_function(outcomes: dict[str, str]) -> dict[str, Any]:
    """Return for each function of tests how many tests passed, and the parameters of the others by outcome.

    A function whose tests have all passed has the number alone.
    """
    made: dict[str, dict[str, Any]] = {}
    for test, outcome in outcomes.items():
        function, _, parameters = test.partition("[")
        row = made.setdefault(function, {"passed": 0})
        if outcome == "passed":
            row["passed"] += 1
        else:
            row.setdefault(outcome, []).append(parameters.removesuffix("]"))
    return {function: row["passed"] if len(row) == 1 else row for function, row in sorted(made.items())}


def _words(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items())


def main() -> int:
    """Check the libraries, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", help=f"of {', '.join(CLIENTS)} (default: all)")
    parser.add_argument("--packages", type=Path, metavar="FOLDER", help="take the wheels and the sources from FOLDER")
    parser.add_argument("--cuda", type=Path, metavar="FILE", help="run with CuPy on a GPU, without and with tcuda")
    parser.add_argument("--limit", type=float, default=_LIMIT, help="with --cuda, the most seconds for each run")
    options = parser.parse_args()
    unknown = sorted(set(options.libraries) - CLIENTS.keys())
    if unknown:
        parser.error(f"unknown library {unknown[0]!r}; there are {', '.join(CLIENTS)}")
    packages = options.packages and options.packages.resolve()
    names = options.libraries or list(CLIENTS)
    with tempfile.TemporaryDirectory() as made:
        if options.cuda is not None:
            return int(not compare(names, Path(made), packages, options.limit, options.cuda))
        results = [check(name, CLIENTS[name], Path(made) / name, packages) for name in names]
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
