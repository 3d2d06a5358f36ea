"""The examples of the page about MPI and Ray, which need a launcher and a library that few machines have."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.folders import REPOSITORY

if TYPE_CHECKING:
    from support.fixture_types import RunPython

PAGE = (REPOSITORY / "docs" / "mpi-and-ray.md").read_text()
EXAMPLE = re.compile(r"^```py\n(.*?)^```\n.*?^```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def example(library: str) -> tuple[str, str]:
    """Return the program of the page that imports ``library``, and what the page says that the program prints."""
    (found,) = [
        match.groups() for match in EXAMPLE.finditer(PAGE) if re.search(rf"(import|from) {library}\b", match[1])
    ]
    return found


def part_of_mpich(end: str) -> str | None:
    """Return the path of the file of the package mpich whose path ends with ``end``; None without this package."""
    try:
        files = importlib.metadata.files("mpich") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((str(Path(str(file.locate())).resolve()) for file in files if str(file).endswith(end)), None)


_ROOT_MAY_START_OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def test_two_ranks_of_mpi_add_their_arrays(tmp_path: Path) -> None:
    launcher = part_of_mpich("/bin/mpiexec") or shutil.which("mpiexec")
    if launcher is None or importlib.util.find_spec("mpi4py") is None:
        pytest.skip("needs mpi4py and an MPI library, such as the package mpich")
    library = part_of_mpich("/libmpi.so.12")
    code, printed = example("mpi4py")
    program = tmp_path / "ranks.py"
    program.write_text(code)
    done = subprocess.run(
        [launcher, "-n", "2", sys.executable, "-W", "error", program],
        env={**os.environ, **_ROOT_MAY_START_OPEN_MPI, **({"MPI4PY_LIBMPI": library} if library else {})},
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
