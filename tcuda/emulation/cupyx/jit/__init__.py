"""Kernels that are written in Python (``cupyx.jit``): the function is translated into CUDA C++."""

from __future__ import annotations

from tcuda.emulation.cupyx.jit import cg, cub, thrust
from tcuda.emulation.cupyx.jit.functions import (
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_dec,
    atomic_exch,
    atomic_inc,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_sub,
    atomic_xor,
    blockDim,
    blockIdx,
    grid,
    gridDim,
    gridsize,
    laneid,
    shared_memory,
    shfl_down_sync,
    shfl_sync,
    shfl_up_sync,
    shfl_xor_sync,
    syncthreads,
    syncwarp,
    threadIdx,
    warpsize,
)
from tcuda.emulation.cupyx.jit.functions import range_ as range
from tcuda.emulation.cupyx.jit.kernel import rawkernel

__all__ = [
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_dec",
    "atomic_exch",
    "atomic_inc",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_sub",
    "atomic_xor",
    "blockDim",
    "blockIdx",
    "cg",
    "cub",
    "grid",
    "gridDim",
    "gridsize",
    "laneid",
    "range",
    "rawkernel",
    "shared_memory",
    "shfl_down_sync",
    "shfl_sync",
    "shfl_up_sync",
    "shfl_xor_sync",
    "syncthreads",
    "syncwarp",
    "threadIdx",
    "thrust",
    "warpsize",
]


def __dir__() -> list[str]:
    return sorted(__all__)
