"""Downloads CuPy's own tests from the package index: ``python .ci/cupy_emulated/download.py FOLDER``.

The sources of CuPy, which pip downloads, have the tests. The version is that of the installed CuPy. The script prints
the folder with the folder ``tests``. The exit status is 1 if the package index does not have the sources.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tarfile
from pathlib import Path


class Absent(Exception):
    """CuPy, or its sources, cannot be had."""


def installed_version() -> str:
    """Return the version of the installed CuPy.

    Raises:
        Absent: CuPy is not installed.
    """
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"] or ""
        if name == "cupy" or name.startswith("cupy-cuda"):
            return distribution.version
    raise Absent("CuPy is not installed. Install it, for example with pip install cupy-cuda13x. No GPU is needed.")


def download(folder: Path) -> Path:
    """Download the sources of the installed version of CuPy, and return the folder with CuPy's folder ``tests``.

    Raises:
        Absent: CuPy is not installed, or pip cannot download the sources.
    """
    version = installed_version()
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "cupy", f"cupy=={version}"]
    # pip asks the sources for their metadata. The sources then look for CUDA, but not in a build of documentation.
    variables = {**os.environ, "READTHEDOCS": "True"}
    done = subprocess.run([*command, "-d", str(folder)], env=variables, stdout=sys.stderr, check=False)
    archives = list(folder.glob("cupy-*.tar.gz"))
    if done.returncode or not archives:
        raise Absent(f"pip cannot download the sources of CuPy {version}.")
    with tarfile.open(archives[0]) as archive:
        members = [member for member in archive if member.name.partition("/")[2].startswith("tests/")]
        archive.extractall(folder, members, filter="data")
    archives[0].unlink()
    return folder / archives[0].name.removesuffix(".tar.gz")


def main(folder: str) -> int:
    """Download the tests into ``folder``, and return the exit status."""
    try:
        print(download(Path(folder)))
    except Absent as absent:
        print(absent, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
