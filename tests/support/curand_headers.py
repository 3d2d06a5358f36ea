"""The folders of cuRAND's headers on a machine with a GPU."""

from __future__ import annotations

import functools
import sysconfig
from pathlib import Path

import pytest

from tcuda._runtime import is_emulated


@functools.cache
def options() -> tuple[str, ...]:
    """Return the options with which ``curand_kernel.h`` is found. Skips the test where CUDA's headers are absent."""
    if is_emulated():
        return ()
    packages = Path(sysconfig.get_paths()["purelib"], "nvidia")
    folders = [Path("/usr/local/cuda/include"), *sorted(packages.glob("*/include"))]
    with_curand = [folder for folder in folders if (folder / "curand_kernel.h").exists()]
    if not with_curand:
        pytest.skip("needs the headers of cuRAND")
    return tuple(f"-I{folder}" for folder in (*with_curand[:1], *folders) if folder.exists())
