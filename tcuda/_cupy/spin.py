"""A kernel that keeps a stream busy."""

from __future__ import annotations

import functools
from typing import Any

from tcuda._base.errors import AcceleratorError
from tcuda._cupy.streams import Handle

_SOURCE = """
extern "C" __global__ void tcuda_spin(long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {}
}
"""


def sleep(cycles: int, stream: int) -> None:
    """Launch a kernel of one thread on ``stream``, which reads the clock until ``cycles`` have passed."""
    from cupy.cuda import driver

    try:
        _kernel()((1,), (1,), (cycles,), stream=Handle(stream))
    except driver.CUDADriverError as error:
        raise AcceleratorError(error.status, f"tcuda_spin({cycles}, {stream:#x})") from error


@functools.cache
def _kernel() -> Any:
    import cupy

    return cupy.RawKernel(_SOURCE, "tcuda_spin")
