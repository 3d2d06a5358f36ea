"""The text of ``cupy.show_config``: the versions of this process, and its devices."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any

import numpy as np

from tcuda._base.version import __version__
from tcuda._process.lazy import cuda
from tcuda.emulation.names import catalogue


def show_config(*, _full: bool = False) -> None:
    """Print the versions of the libraries of this process, and its devices.

    Args:
        _full: Accepted for compatibility with CuPy, and ignored.
    """
    facts: dict[str, Any] = {
        "OS": platform.platform(),
        "Python Version": platform.python_version(),
        "CuPy Version": f"{catalogue.VERSION}, on emulated devices of tcuda {__version__}",
        "NumPy Version": np.__version__,
        "SciPy Version": _version("scipy"),
        "CUDA Runtime Version": cuda.runtimeGetVersion(),
        "CUDA Driver Version": cuda.driverGetVersion(),
    }
    for index in range(cuda.getDeviceCount()):
        properties = cuda.getDeviceProperties(index)
        facts[f"Device {index} Name"] = properties["name"].decode()
        facts[f"Device {index} Compute Capability"] = f"{properties['major']}{properties['minor']}"
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:{width}} : {value}")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


__all__ = ["show_config"]
