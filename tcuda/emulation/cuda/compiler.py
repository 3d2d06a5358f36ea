"""The compiler of kernels (``cupy.cuda.compiler``)."""

from __future__ import annotations

from tcuda.emulation.kernels.names import is_valid_kernel_name
from tcuda.emulation.rtc.errors import CompileException

__all__ = ["CompileException", "is_valid_kernel_name"]
