"""Devices, streams, events, graphs and memory of emulated devices, as CuPy's objects (``cupy.cuda``)."""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING

from tcuda._process.device_rules import device_count
from tcuda.emulation.arrays.fourier import cufft
from tcuda.emulation.cuda import (
    compiler,
    cub,
    curand,
    cutensor,
    device,
    driver,
    graph,
    memory,
    memory_hook,
    memory_hooks,
    nvtx,
    pinned_memory,
    profiler,
    runtime,
    stream,
    thrust,
)
from tcuda.emulation.cuda.allocators import alloc, get_allocator, set_allocator, using_allocator
from tcuda.emulation.cuda.device import Device, get_cublas_handle, get_device_id
from tcuda.emulation.cuda.event import Event, get_elapsed_time
from tcuda.emulation.cuda.graph import Graph
from tcuda.emulation.cuda.memory import (
    BaseMemory,
    ManagedMemory,
    Memory,
    MemoryAsync,
    MemoryPointer,
    MemoryPool,
    UnownedMemory,
    malloc_async,
    malloc_managed,
)
from tcuda.emulation.cuda.memory_hook import MemoryHook
from tcuda.emulation.cuda.pinned_memory import (
    PinnedMemory,
    PinnedMemoryPointer,
    PinnedMemoryPool,
    alloc_pinned_memory,
    set_pinned_memory_allocator,
)
from tcuda.emulation.cuda.stream import ExternalStream, Stream, get_current_stream

if TYPE_CHECKING:
    from collections.abc import Iterator


def is_available() -> bool:
    """Return whether there is a device."""
    return device_count() > 0


def get_local_runtime_version() -> int:
    """Return the version of the CUDA runtime that the devices emulate, such as 13000."""
    version: int = runtime.runtimeGetVersion()
    return version


def get_cuda_path() -> str | None:
    """Return None: emulated devices need no CUDA toolkit."""
    return None


def get_nvcc_path() -> str | None:
    """Return None: emulated devices need no compiler of a CUDA toolkit."""
    return None


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """Let an attached profiler collect in a scope. CuPy deprecates the function."""
    warnings.warn(
        "cupy.cuda.profile has been deprecated since CuPy v10 and will be removed in the future. Use "
        "cupyx.profiler.profile instead.",
        stacklevel=3,
    )
    profiler.start()
    try:
        yield
    finally:
        profiler.stop()


__all__ = [
    "BaseMemory",
    "Device",
    "Event",
    "ExternalStream",
    "Graph",
    "ManagedMemory",
    "Memory",
    "MemoryAsync",
    "MemoryHook",
    "MemoryPointer",
    "MemoryPool",
    "PinnedMemory",
    "PinnedMemoryPointer",
    "PinnedMemoryPool",
    "Stream",
    "UnownedMemory",
    "alloc",
    "alloc_pinned_memory",
    "compiler",
    "cub",
    "cufft",
    "curand",
    "cutensor",
    "device",
    "driver",
    "get_allocator",
    "get_cublas_handle",
    "get_cuda_path",
    "get_current_stream",
    "get_device_id",
    "get_elapsed_time",
    "get_local_runtime_version",
    "get_nvcc_path",
    "graph",
    "is_available",
    "malloc_async",
    "malloc_managed",
    "memory",
    "memory_hook",
    "memory_hooks",
    "nvtx",
    "pinned_memory",
    "profile",
    "profiler",
    "runtime",
    "set_allocator",
    "set_pinned_memory_allocator",
    "stream",
    "thrust",
    "using_allocator",
]


def __dir__() -> list[str]:
    return sorted(__all__)
