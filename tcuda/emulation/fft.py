"""Fourier transforms of arrays of emulated devices: the functions that ``cupy.fft`` has."""

from __future__ import annotations

from typing import Any

from tcuda.emulation.functions import FFT


def __getattr__(name: str) -> Any:
    try:
        return FFT[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted(FFT)
