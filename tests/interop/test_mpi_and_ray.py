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


def example(library: str) -> tuple[str, str]:
    """Return the program of the page that imports ``library``, and what the page says that the program prints."""
    (found,) = [
        match.groups() for match in EXAMPLE.finditer(PAGE) if re.search(rf"(import|from) {library}\b", match[1])
    ]
    return found


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


@pytest.mark.long
def test_two_actors_of_ray_add_their_arrays(run_python: RunPython) -> None:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("needs Ray, which is too large for the extra `test`")
    code, printed = example("ray")
    done = run_python(code, RAY_AUTH_MODE="disabled")
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed
