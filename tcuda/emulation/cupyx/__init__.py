"""What CuPy has beyond NumPy, on emulated devices (``cupyx``)."""

from __future__ import annotations

import sys

from tcuda.emulation.cupyx import cusolver, cusparse, jit, lapack, linalg, optimizing, profiler, scipy, signal, time
from tcuda.emulation.cupyx.pinned_array import empty_like_pinned, empty_pinned, zeros_like_pinned, zeros_pinned
from tcuda.emulation.cupyx.reciprocal_root import rsqrt
from tcuda.emulation.cupyx.scatter import scatter_add, scatter_max, scatter_min
from tcuda.emulation.devices.synchronization import DeviceSynchronized, allow_synchronize
from tcuda.emulation.names import absent
from tcuda.emulation.numbers.error_state import errstate, geterr, seterr

__all__ = [
    "DeviceSynchronized",
    "allow_synchronize",
    "cusolver",
    "cusparse",
    "empty_like_pinned",
    "empty_pinned",
    "errstate",
    "geterr",
    "jit",
    "lapack",
    "linalg",
    "optimizing",
    "profiler",
    "rsqrt",
    "scatter_add",
    "scatter_max",
    "scatter_min",
    "scipy",
    "seterr",
    "signal",
    "time",
    "zeros_like_pinned",
    "zeros_pinned",
]


def __dir__() -> list[str]:
    return sorted(__all__)


absent.tell_reasons(sys.modules[__name__], "cupyx")
