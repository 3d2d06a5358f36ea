"""The functions of ``cupy._util`` that libraries call."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from tcuda.emulation.devices.strided import Strided


class PerformanceWarning(RuntimeWarning):
    """A call that is slow."""


def experimental(api_name: str, *, stacklevel: int = 2) -> None:
    """Warn that a feature may change, unless the program has set ``cupy.disable_experimental_feature_warning``.

    Args:
        api_name: The name of the feature.
        stacklevel: The distance to the frame to which the warning belongs. CuPy's function has no frame.
    """
    if not sys.modules["tcuda.emulation.xp"].disable_experimental_feature_warning:
        text = f"{api_name} is experimental. The interface can change in the future."
        warnings.warn(text, FutureWarning, stacklevel=stacklevel)


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
