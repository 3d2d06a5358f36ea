"""CUPTI's library on this machine."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_OLDEST = 12
"""The oldest major version of CUDA whose CUPTI works."""

_IN_WHEELS = {12: "cuda_cupti/lib", 13: "cu13/lib"}
"""The folder of the library in the package ``nvidia``, by the major version of CUDA."""

_IN_TOOLKITS = ("extras/CUPTI/lib64", "lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")

_DEFAULT_TOOLKIT = "/usr/local/cuda"


def find(driver_version: int) -> str | None:
    """Return the path or the name of CUPTI's library; None if no such library can be opened.

    CUPTI works with drivers of its own major version and with newer drivers. The major version of the driver is tried
    first.

    Args:
        driver_version: The version of the driver's interface, such as 13010 for CUDA 13.1.
    """
    for major in range(driver_version // 1000, _OLDEST - 1, -1):
        name = f"libcupti.so.{major}"
        for folder in _folders(major):
            if (folder / name).is_file() and _opens(str(folder / name)):
                return str(folder / name)
        if _opens(name):
            return name
    return None


def _folders(major: int) -> Iterator[Path]:
    package = importlib.util.find_spec("nvidia")  # in which all of NVIDIA's wheels put their files
    for folder in (package.submodule_search_locations if package is not None else None) or ():
        yield Path(folder, _IN_WHEELS.get(major, f"cu{major}/lib"))
    for toolkit in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), _DEFAULT_TOOLKIT):
        if toolkit:
            yield from (Path(toolkit, folder) for folder in _IN_TOOLKITS)


def _opens(path: str) -> bool:
    try:
        ctypes.CDLL(path)
    except OSError:
        return False
    return True


def requirement(driver_version: int) -> str:
    """Return the argument of ``pip install`` that installs CUPTI for a driver.

    Args:
        driver_version: The version of the driver's interface, such as 13010 for CUDA 13.1.
    """
    major = driver_version // 1000
    return "nvidia-cuda-cupti-cu12" if major == 12 else f"'nvidia-cuda-cupti>={major},<{major + 1}'"
