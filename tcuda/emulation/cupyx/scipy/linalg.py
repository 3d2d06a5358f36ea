"""Linear algebra on arrays of emulated devices (``cupyx.scipy.linalg``), by SciPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda.emulation.cupyx.scipy.namespaces import functions_of

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


_FUNCTIONS = functions_of("linalg")


def __dir__() -> list[str]:
    return sorted(_FUNCTIONS)


globals().update(_FUNCTIONS)
