"""The class of the flags of an array (``cupy._core.flags``)."""

from __future__ import annotations

from tcuda.emulation.devices.strided import Flags

__all__ = ["Flags"]
