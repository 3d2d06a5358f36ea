"""The modules that ``cupy.lib`` has."""

from __future__ import annotations

from tcuda.emulation import stride_tricks as stride_tricks


def __dir__() -> list[str]:
    return ["stride_tricks"]
