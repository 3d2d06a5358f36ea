"""The functions of cuSOLVER that CuPy calls on emulated devices (``cupyx.cusolver``); NumPy computes in their place."""

from __future__ import annotations

_FUNCTIONS = frozenset(
    ["csrlsvqr", "geev", "gels", "gesv", "gesvda", "gesvdj", "potrfBatched", "potrsBatched", "syevj"]
)


def check_availability(name: str) -> bool:
    """Return whether the function ``name`` is available, which all are that CuPy may ask for.

    Raises:
        ValueError: There is no such function.
    """
    if name not in _FUNCTIONS:
        raise ValueError(f"No available version information specified for {name}; there are {sorted(_FUNCTIONS)}.")
    return True


def __dir__() -> list[str]:
    return ["check_availability"]
