"""Fusion of the operations of a Python function into one kernel, as ``cupy.fuse``."""

from __future__ import annotations

from tcuda.emulation.kernels.fusion.fused import Fusion, fuse

__all__ = ["Fusion", "fuse"]
