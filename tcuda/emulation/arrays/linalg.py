"""Linear algebra on arrays of emulated devices: the functions that ``cupy.linalg`` has."""

from __future__ import annotations

from typing import Any

from numpy.linalg import LinAlgError as LinAlgError

from tcuda.emulation.arrays.functions import LINALG
from tcuda.emulation.names import absent


def __getattr__(name: str) -> Any:
    try:
        return LINALG[name]
    except KeyError:
        reason = absent.about(f"cupy.linalg.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{reason}") from None


def __dir__() -> list[str]:
    return sorted([*LINALG, "LinAlgError"])
