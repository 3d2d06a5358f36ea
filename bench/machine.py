"""The machine on which the benchmarks run."""

from __future__ import annotations

import functools
import platform
import sys

from chosen_runtime import ON_CUDA

import tcuda
from tcuda._process.lazy import cuda


@functools.cache
def machine() -> dict[str, str]:
    """Return the device and the versions, which are stored with the results."""
    found = {
        "runtime": cuda.name,
        "device": tcuda.get_device_name(),
        "Python": platform.python_version(),
        "tcuda": tcuda.__version__,
    }
    if ON_CUDA:
        found["CUDA driver"] = str(cuda.driverGetVersion())
        found["CUDA runtime"] = str(cuda.runtimeGetVersion())
        found |= {name: str(sys.modules[name].__version__) for name in ("cupy", "torch") if name in sys.modules}
    return found
