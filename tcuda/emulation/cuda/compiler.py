"""The compiler of kernels (``cupy.cuda.compiler``)."""

from __future__ import annotations

import re

from tcuda.emulation.rtc.errors import CompileException

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z_0-9]*")


def is_valid_kernel_name(name: str) -> bool:
    """Return whether ``name`` can be the name of a kernel."""
    return _NAME.fullmatch(name) is not None


__all__ = ["CompileException", "is_valid_kernel_name"]
