"""The part of a program that a profiler records (``torch.cuda.profiler``), timelines, and energy.

A profiler that was told to wait collects from :func:`start` to :func:`stop`: Nsight Systems with
``nsys profile --capture-range=cudaProfilerApi``, Nsight Compute with ``ncu --profile-from-start off``. Without a
profiler, these calls do nothing. :func:`trace` needs no profiler, and writes a timeline. :class:`energy` needs no
profiler either, and measures the energy that a device uses.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tcuda._base.public_names import public_names
from tcuda._device._cudart import check_error, cudart
from tcuda.profiler._energy import energy
from tcuda.profiler._trace import trace

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["energy", "profile", "start", "stop", "trace"]
__dir__ = public_names(__name__)


def start() -> None:
    """Let an attached profiler begin to collect (``torch.cuda.profiler.start``, ``cudaProfilerStart``).

    A second call before :func:`stop` does nothing. On emulated devices, the call does nothing.

    Raises:
        CudaError: CUDA cannot start the profiler.
        RuntimeError: The process has no device.

    Example:
        >>> tcuda.profiler.start()
        >>> x = xp.ones(1000).sum()  # a profiler records this kernel
        >>> tcuda.profiler.stop()
    """
    check_error(cudart().cudaProfilerStart())


def stop() -> None:
    """Let an attached profiler stop collecting (``torch.cuda.profiler.stop``, ``cudaProfilerStop``).

    A call without :func:`start` does nothing. Kernels that still run when the call returns may be missing in the
    record, so :func:`tcuda.synchronize` comes first.

    Raises:
        CudaError: CUDA cannot stop the profiler.
        RuntimeError: The process has no device.

    Example:
        >>> tcuda.profiler.start()
        >>> x = xp.ones(1000).sum()
        >>> tcuda.synchronize()
        >>> tcuda.profiler.stop()
    """
    check_error(cudart().cudaProfilerStop())


@contextmanager
def profile() -> Iterator[None]:
    """Context manager for :func:`start` and :func:`stop` (``torch.cuda.profiler.profile``).

    The end of the block always stops the profiler, also after an exception.

    Raises:
        CudaError: CUDA cannot start or stop the profiler.
        RuntimeError: The process has no device.

    Example:
        >>> with tcuda.profiler.profile():
        ...     x = xp.ones(1000).sum()
        ...     tcuda.synchronize()
    """
    try:
        start()
        yield
    finally:
        stop()
