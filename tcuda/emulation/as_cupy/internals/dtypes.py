"""The function of ``cupy._core._dtype`` that libraries call."""

from __future__ import annotations

from tcuda.emulation.devices.strided import named_dtype as get_dtype

__all__ = ["get_dtype"]
