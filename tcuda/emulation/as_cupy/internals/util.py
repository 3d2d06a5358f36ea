"""The functions of ``cupy._util`` that libraries call."""

from __future__ import annotations

import sys
from typing import Any

from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.names.experimental import experimental


class PerformanceWarning(RuntimeWarning):
    """A call that is slow."""


def check_array(obj: Any, *, arg_name: str) -> None:
    """Refuse an argument that is no array of the device.

    Raises:
        TypeError: ``obj`` is no array of the device.
    """
    if not isinstance(obj, Strided):
        raise TypeError(f"{arg_name!r} must be a cupy.ndarray object, not {type(obj)}.")


def is_shutting_down() -> bool:
    """Return whether Python is ending."""
    return sys.is_finalizing()


__all__ = ["PerformanceWarning", "check_array", "experimental", "is_shutting_down"]
