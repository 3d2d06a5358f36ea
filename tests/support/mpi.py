"""The MPI library that the tests use."""

from __future__ import annotations

import importlib.metadata
import shutil
from pathlib import Path


def part_of_mpich(end: str) -> str | None:
    """Return the path of the file of the package mpich whose path ends with ``end``; None without this package."""
    try:
        files = importlib.metadata.files("mpich") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((str(Path(str(file.locate())).resolve()) for file in files if str(file).endswith(end)), None)


def launcher() -> str | None:
    """Return the path of ``mpiexec``; None if there is none."""
    return part_of_mpich("/bin/mpiexec") or shutil.which("mpiexec")


def mpi_environment() -> dict[str, str]:
    """Return the variables that let mpi4py find the library, and that let root start Open MPI."""
    library = part_of_mpich("/libmpi.so.12")
    return {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        **({"MPI4PY_LIBMPI": library} if library else {}),
    }
