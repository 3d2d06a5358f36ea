"""Fourier transforms of arrays of emulated devices: the functions that ``cupy.fft`` has, and its settings."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcuda.emulation.arrays.fourier.planning import transforming
from tcuda.emulation.arrays.fourier.settings import config as config
from tcuda.emulation.arrays.functions import emulated
from tcuda.emulation.names import absent, catalogue
from tcuda.emulation.work import numpy_work


def _frequencies(function: Any) -> Any:
    def compute(args: Any, kwargs: Any) -> Any:
        return numpy_work.call(function, args, kwargs)

    return compute


_SHIFTS = ("fftshift", "ifftshift")

FFT: dict[str, Any] = {
    **emulated(np.fft, [name for name in catalogue.FFT if name not in _SHIFTS], transforming),
    **emulated(np.fft, [*_SHIFTS, *catalogue.FFT_FREQUENCIES], _frequencies),
}
"""The functions of this module, by name."""


def __getattr__(name: str) -> Any:
    try:
        return FFT[name]
    except KeyError:
        reason = absent.about(f"cupy.fft.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{reason}") from None


def __dir__() -> list[str]:
    return sorted([*FFT, "config"])
