"""Signals on arrays of emulated devices (``cupyx.scipy.signal``), by SciPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda.emulation.cupyx.scipy.namespaces import functions_of
from tcuda.emulation.cupyx.scipy.signal import windows as windows

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


_FUNCTIONS = functions_of("signal")


def __dir__() -> list[str]:
    return sorted([*_FUNCTIONS, "windows"])


globals().update(_FUNCTIONS)
