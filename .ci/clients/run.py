"""Runs the tests of libraries that use CuPy on emulated devices: ``python .ci/clients/run.py [LIBRARY ...]``.

The tests are unchanged. Each library is installed from the package index into a folder of its own. ``clients.json``
names the libraries, says where their tests are, and how many of the tests must pass. CuPy is not needed. A library that
the package index does not have is left out. The exit status is 1 if fewer tests pass than must, or if the tests could
not be run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

CLIENTS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("clients.json").read_text("utf-8"))["clients"]
_LIMIT = 1800  # seconds


class Absent(Exception):
    """The package index does not have a library, or not its sources."""


def install(client: dict[str, Any], folder: Path) -> None:
    """Install the packages of a client into ``folder``.

    Raises:
        Absent: The package index does not have the packages.
    """
    _pip("install", "--target", str(folder), *client["install"])
    if "alone" in client:
        _pip("install", "--target", str(folder), "--no-deps", *client["alone"])


def sources(client: dict[str, Any], folder: Path) -> Path:
    """Download the sources of a client, and return their folder.

    Raises:
        Absent: The package index does not have the sources.
    """
    wanted = client.get("sources", client["install"][0])
    name = wanted.partition("=")[0]
    _pip("download", "--no-deps", "--no-binary", name, "--dest", str(folder), wanted)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", arguments[0], "-q", *arguments[1:]]
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        raise Absent(f"pip {arguments[0]} has failed")


def run(client: dict[str, Any], installed: Path, tests: Path, report: Path) -> dict[str, int]:
    """Run the tests of a client, and return how many tests had each outcome.

    Raises:
        RuntimeError: The tests could not be run.
    """
    command = [sys.executable, "-m", "tcuda.emulation", "-m", "pytest", "-q", "--tb=line", "-p", "no:cacheprovider"]
    path = os.pathsep.join(filter(None, [str(installed), os.environ.get("PYTHONPATH")]))
    variables = {**os.environ, **client.get("variables", {}), "PYTHONPATH": path}
    done = subprocess.run(
        [*command, f"--junitxml={report}", *client["arguments"]],
        cwd=tests,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_LIMIT,
        check=False,
    )
    if done.returncode not in (0, 1) or not report.exists():
        raise RuntimeError(f"pytest has ended with the status {done.returncode}: {done.stdout[-2000:]}")
    for line in done.stdout.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            print(f"  {line[:200]}")
    return outcomes(report)


def outcomes(report: Path) -> dict[str, int]:
    """Return how many tests of a report of pytest have passed, failed, and been skipped."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for case in ET.parse(report).iter("testcase"):
        found = {element.tag for element in case}
        counts["failed" if found & {"failure", "error"} else "skipped" if "skipped" in found else "passed"] += 1
    return counts


def check(name: str, client: dict[str, Any], folder: Path) -> bool:
    """Install a client and run its tests, and return whether enough of the tests pass."""
    installed, downloaded = folder / "installed", folder / "sources"
    downloaded.mkdir(parents=True)
    try:
        install(client, installed)
        root = installed if client["tests"] == "installed" else sources(client, downloaded)
    except Absent as absent:
        print(f"{name}: left out, because {absent}.")
        return True
    try:
        counts = run(client, installed, root / client["folder"], folder / "report.xml")
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"{name}: the tests could not be run. {error}")
        return False
    print(
        f"{name}: {', '.join(f'{count:,} {outcome}' for outcome, count in counts.items())}; floor {client['floor']:,}."
    )
    return bool(counts["passed"] >= client["floor"])


def main() -> int:
    """Check the libraries, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", help=f"of {', '.join(CLIENTS)} (default: all)")
    options = parser.parse_args()
    unknown = sorted(set(options.libraries) - CLIENTS.keys())
    if unknown:
        parser.error(f"unknown library {unknown[0]!r}; there are {', '.join(CLIENTS)}")
    with tempfile.TemporaryDirectory() as made:
        names = options.libraries or list(CLIENTS)
        results = [check(name, CLIENTS[name], Path(made) / name) for name in names]
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
