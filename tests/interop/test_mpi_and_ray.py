"""The examples of the page about MPI and Ray, which need a launcher and a library that few machines have."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.folders import REPOSITORY
from support.mpi import launcher, mpi_environment

if TYPE_CHECKING:
    from pathlib import Path

    from support.fixture_types import RunPython

PAGE = (REPOSITORY / "docs" / "mpi-and-ray.md").read_text()
EXAMPLE = re.compile(r"^```py\n(.*?)^```\n.*?^```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def example(library: str, number: int = 0) -> tuple[str, str]:
    """Return a program of the page that imports ``library``, and what the page says that the program prints."""
    found = [
        (match[1], match[2]) for match in EXAMPLE.finditer(PAGE) if re.search(rf"(import|from) {library}\b", match[1])
    ]
    return found[number]


@pytest.mark.wings
def test_two_ranks_of_mpi_add_their_arrays(tmp_path: Path) -> None:
    found = launcher()
    if found is None or importlib.util.find_spec("mpi4py") is None:
        pytest.skip("needs mpi4py and an MPI library, such as the package mpich")
    code, printed = example("mpi4py")
    program = tmp_path / "ranks.py"
    program.write_text(code)
    done = subprocess.run(
        [found, "-n", "2", sys.executable, "-W", "error", program],
        env={**os.environ, **mpi_environment()},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed


@pytest.mark.wings
def test_the_detector_finds_both_mistakes_of_the_example(tmp_path: Path) -> None:
    found = launcher()
    if found is None or importlib.util.find_spec("mpi4py") is None:
        pytest.skip("needs mpi4py and an MPI library, such as the package mpich")
    code, printed = example("mpi4py", 1)
    (tmp_path / "sums.py").write_text(code)
    done = subprocess.run(
        [found, "-n", "1", sys.executable, "-m", "tcuda", "sanitize", "--emulated", "sums.py"],
        cwd=tmp_path,
        env={**os.environ, **mpi_environment()},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1, done.stderr
    assert printed in done.stderr
    assert "missing: request.Wait() before sums.py:10" in done.stderr


@pytest.mark.long
def test_two_actors_of_ray_add_their_arrays(run_python: RunPython) -> None:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("needs Ray, which is too large for the extra `test`")
    code, printed = example("ray")
    done = run_python(code, RAY_AUTH_MODE="disabled")
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed
