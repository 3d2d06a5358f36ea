"""The modules that ``cupy.lib`` has."""

from __future__ import annotations

from tcuda.emulation.arrays import stride_tricks as stride_tricks

__path__: list[str] = []  # The module is a package in CuPy, so that a program may import a module of it.


def __dir__() -> list[str]:
    return ["stride_tricks"]
