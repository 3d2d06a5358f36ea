"""The setting of ``cupy.cublas`` for systems of equations, which NumPy solves on emulated devices in any number."""

from __future__ import annotations

_limit = 256


def get_batched_gesv_limit() -> int:
    """Return the largest number of equations of the systems that CuPy solves together."""
    return _limit


def set_batched_gesv_limit(limit: int) -> None:
    """Set the largest number of equations of the systems that CuPy solves together."""
    global _limit
    _limit = limit
