"""Fourier transforms of SciPy's older module on arrays of emulated devices (``cupyx.scipy.fftpack``).

SciPy computes the transforms from and to real numbers. The other transforms take plans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda.emulation.cupyx.scipy.namespaces import functions_of
from tcuda.emulation.fourier import fftpack

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


_PLANNED = ("fft", "fft2", "fftn", "get_fft_plan", "ifft", "ifft2", "ifftn")

_FUNCTIONS = {**functions_of("fftpack"), **{name: getattr(fftpack, name) for name in _PLANNED}}


def __dir__() -> list[str]:
    return sorted(_FUNCTIONS)


globals().update(_FUNCTIONS)
