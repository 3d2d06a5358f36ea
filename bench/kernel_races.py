"""Measures the search for races in kernels: ``python bench/kernel_races.py [names]``.

Each kernel runs with the checks of memory, and with the search for races in one order and in two orders, in turns in
one process. Prints the processor times as a Markdown table. The exit status is 1 if a ratio is beyond :data:`MOST` or
:data:`MOST_OF_ORDERS`.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import tcuda.emulation
from tcuda.emulation.rtc.checks import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable

MOST = 8.0
"""The bound of the ratio of one order to the checks of memory."""

MOST_OF_ORDERS = 2.2
"""The bound of the ratio of two orders to one order."""

_TURNS = 7
_FLOATS = 1 << 20
_BYTES = 1 << 20
_NODES, _DEGREE = 1 << 16, 16
_SIDE = 256


class Kernel(NamedTuple):
    """A kernel with its launch.

    Attributes:
        source: The source.
        grid: The blocks.
        block: The threads of a block.
        arguments: Makes the arguments from the namespace of the arrays.
    """

    source: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: Callable[[Any], tuple[Any, ...]]


def _floats(xp: Any, arrays: int) -> tuple[Any, ...]:
    return (*(xp.ones(_FLOATS, xp.float32) for _ in range(arrays)), np.int32(_FLOATS))


def _matrices(xp: Any, arrays: int) -> tuple[Any, ...]:
    return (*(xp.ones((_SIDE, _SIDE), xp.float32) for _ in range(arrays)), np.int32(_SIDE))


def _histogram(xp: Any) -> tuple[Any, ...]:
    return xp.array((np.arange(_FLOATS) * 7919 % 251).astype(np.uint8)), xp.zeros(256, xp.uint32), np.int32(_FLOATS)


def _graph(xp: Any) -> tuple[Any, ...]:
    edges = (np.arange(_NODES * _DEGREE, dtype=np.int64) * 7919 % _NODES).astype(np.int32)
    return (
        xp.array(np.arange(0, (_NODES + 1) * _DEGREE, _DEGREE, dtype=np.int32)),
        xp.array(edges),
        xp.ones(_NODES, xp.float32),
        xp.zeros(_NODES, xp.float32),
        np.int32(_NODES),
    )


def _levels(xp: Any) -> tuple[Any, ...]:
    first, edges, _, _, nodes = _graph(xp)
    return first, edges, xp.array((np.arange(_NODES) % 3).astype(np.int32)), xp.zeros(1, xp.int32), nodes


_I = "int i = blockIdx.x * blockDim.x + threadIdx.x;"

KERNELS = {
    "axpy": Kernel(
        f"""
extern "C" __global__ void kernel(const float* x, float* y, int n) {{
    {_I}
    if (i < n) y[i] += 2 * x[i];
}}
""",
        (_FLOATS // 256,),
        (256,),
        functools.partial(_floats, arrays=2),
    ),
    "axpy in a grid-stride loop": Kernel(
        f"""
extern "C" __global__ void kernel(const float* x, float* y, int n) {{
    for ({_I} i < n; i += gridDim.x * blockDim.x) y[i] += 2 * x[i];
}}
""",
        (64,),
        (256,),
        functools.partial(_floats, arrays=2),
    ),
    "axpy of float4": Kernel(
        f"""
extern "C" __global__ void kernel(const float4* x, float4* y, int n) {{
    {_I}
    if (4 * i < n) {{
        float4 a = x[i], b = y[i];
        y[i] = make_float4(b.x + 2 * a.x, b.y + 2 * a.y, b.z + 2 * a.z, b.w + 2 * a.w);
    }}
}}
""",
        (_FLOATS // 1024,),
        (256,),
        functools.partial(_floats, arrays=2),
    ),
    "bytes": Kernel(
        f"""
extern "C" __global__ void kernel(const unsigned char* x, unsigned char* y, int n) {{
    {_I}
    if (i < n) y[i] = 255 - x[i];
}}
""",
        (_BYTES // 256,),
        (256,),
        lambda xp: (xp.ones(_BYTES, xp.uint8), xp.zeros(_BYTES, xp.uint8), np.int32(_BYTES)),
    ),
    "half precision": Kernel(
        f"""
#include <cuda_fp16.h>
extern "C" __global__ void kernel(const __half* x, __half* y, int n) {{
    {_I}
    if (i < n) y[i] = __hadd(y[i], x[i]);
}}
""",
        (_FLOATS // 256,),
        (256,),
        lambda xp: (xp.ones(_FLOATS, xp.float16), xp.ones(_FLOATS, xp.float16), np.int32(_FLOATS)),
    ),
    "reduction in shared memory": Kernel(
        f"""
extern "C" __global__ void kernel(const float* x, float* sums, int n) {{
    __shared__ float part[256];
    int t = threadIdx.x;
    {_I}
    part[t] = i < n ? x[i] : 0;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {{
        if (t < step) part[t] += part[t + step];
        __syncthreads();
    }}
    if (t == 0) sums[blockIdx.x] = part[0];
}}
""",
        (_FLOATS // 256,),
        (256,),
        functools.partial(_floats, arrays=2),
    ),
    "reduction by shuffles": Kernel(
        f"""
extern "C" __global__ void kernel(const float* x, float* sum, int n) {{
    float own = 0;
    for ({_I} i < n; i += gridDim.x * blockDim.x) own += x[i];
    for (int step = 16; step > 0; step /= 2) own += __shfl_down_sync(0xffffffff, own, step);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, own);
}}
""",
        (_FLOATS // 1024,),
        (256,),
        functools.partial(_floats, arrays=2),
    ),
    "tiled product": Kernel(
        """
extern "C" __global__ void kernel(const float* a, const float* b, float* c, int n) {
    __shared__ float left[16][16], right[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0;
    for (int tile = 0; tile < n; tile += 16) {
        left[y][x] = a[row * n + tile + x];
        right[y][x] = b[(tile + y) * n + column];
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += left[y][k] * right[k][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
""",
        (_SIDE // 16, _SIDE // 16),
        (16, 16),
        functools.partial(_matrices, arrays=3),
    ),
    "plain product": Kernel(
        """
extern "C" __global__ void kernel(const float* a, const float* b, float* c, int n) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}
""",
        (_SIDE // 16, _SIDE // 16),
        (16, 16),
        functools.partial(_matrices, arrays=3),
    ),
    "transpose": Kernel(
        """
extern "C" __global__ void kernel(const float* a, float* b, int n) {
    __shared__ float tile[16][17];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = a[(blockIdx.y * 16 + y) * n + blockIdx.x * 16 + x];
    __syncthreads();
    b[(blockIdx.x * 16 + y) * n + blockIdx.y * 16 + x] = tile[x][y];
}
""",
        (1024 // 16, 1024 // 16),
        (16, 16),
        lambda xp: (xp.ones((1024, 1024), xp.float32), xp.zeros((1024, 1024), xp.float32), np.int32(1024)),
    ),
    "stencil": Kernel(
        """
extern "C" __global__ void kernel(const float* a, float* b, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x == 0 || y == 0 || x == n - 1 || y == n - 1) return;
    b[y * n + x] = (a[y * n + x - 1] + a[y * n + x + 1] + a[(y - 1) * n + x] + a[(y + 1) * n + x]) / 4;
}
""",
        (1024 // 32, 1024 // 8),
        (32, 8),
        lambda xp: (xp.ones((1024, 1024), xp.float32), xp.zeros((1024, 1024), xp.float32), np.int32(1024)),
    ),
    "stencil in shared memory": Kernel(
        """
extern "C" __global__ void kernel(const float* x, float* y, int n) {
    __shared__ float part[256 + 8];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    part[t + 4] = x[i];
    if (t < 4) {
        part[t] = i >= 4 ? x[i - 4] : 0;
        part[t + 260] = i + 256 < n ? x[i + 256] : 0;
    }
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 9; k++) sum += part[t + k];
    y[i] = sum;
}
""",
        (_FLOATS // 256,),
        (256,),
        functools.partial(_floats, arrays=2),
    ),
    "scan": Kernel(
        """
extern "C" __global__ void kernel(const float* x, float* y, int n) {
    __shared__ float part[2][256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t, now = 0;
    part[0][t] = x[i];
    __syncthreads();
    for (int step = 1; step < 256; step *= 2, now = 1 - now) {
        part[1 - now][t] = t >= step ? part[now][t] + part[now][t - step] : part[now][t];
        __syncthreads();
    }
    y[i] = part[now][t];
}
""",
        (_FLOATS // 256,),
        (256,),
        functools.partial(_floats, arrays=2),
    ),
    "histogram by atomics": Kernel(
        f"""
extern "C" __global__ void kernel(const unsigned char* x, unsigned* bins, int n) {{
    {_I}
    if (i < n) atomicAdd(&bins[x[i]], 1);
}}
""",
        (_FLOATS // 256,),
        (256,),
        _histogram,
    ),
    "histogram in shared memory": Kernel(
        """
extern "C" __global__ void kernel(const unsigned char* x, unsigned* bins, int n) {
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&own[x[i]], 1);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}
""",
        (64,),
        (256,),
        _histogram,
    ),
    "sum by atomics": Kernel(
        f"""
extern "C" __global__ void kernel(const float* x, float* sum, int n) {{
    {_I}
    if (i < n) atomicAdd(sum, x[i]);
}}
""",
        (_FLOATS // 256,),
        (256,),
        functools.partial(_floats, arrays=2),
    ),
    "graph, pull": Kernel(
        f"""
extern "C" __global__ void kernel(const int* first, const int* edges, const float* old, float* rank, int n) {{
    {_I}
    if (i >= n) return;
    float sum = 0;
    for (int e = first[i]; e < first[i + 1]; e++) sum += old[edges[e]];
    rank[i] = sum;
}}
""",
        (_NODES // 256,),
        (256,),
        _graph,
    ),
    "graph, push": Kernel(
        f"""
extern "C" __global__ void kernel(const int* first, const int* edges, const float* old, float* rank, int n) {{
    {_I}
    if (i >= n) return;
    for (int e = first[i]; e < first[i + 1]; e++) atomicAdd(&rank[edges[e]], old[i]);
}}
""",
        (_NODES // 256,),
        (256,),
        _graph,
    ),
    "sum by the last block": Kernel(
        f"""
__device__ unsigned done;
extern "C" __global__ void kernel(const float* x, float* sums, int n) {{
    __shared__ float part[256];
    __shared__ bool last;
    int t = threadIdx.x;
    {_I}
    part[t] = x[i];
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {{
        if (t < step) part[t] += part[t + step];
        __syncthreads();
    }}
    if (t == 0) {{
        sums[1 + blockIdx.x] = part[0];
        __threadfence();
        last = atomicInc(&done, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }}
    __syncthreads();
    if (last && t == 0)
        for (int b = 1; b <= gridDim.x; b++) sums[0] += sums[b];
}}
""",
        (_FLOATS // 256,),
        (256,),
        functools.partial(_floats, arrays=2),
    ),
    "list under a lock": Kernel(
        f"""
__device__ int lock;
extern "C" __global__ void kernel(const float* x, float* found, int n) {{
    {_I}
    float sum = 0;
    for (int j = i; j < n; j += gridDim.x * blockDim.x) sum += x[j];
    if (threadIdx.x % 32 != 0) return;
    while (atomicCAS(&lock, 0, 1) != 0) {{}}
    __threadfence();
    found[0] += 1;
    found[i + 1] = sum;
    __threadfence();
    atomicExch(&lock, 0);
}}
""",
        (_FLOATS // 4096,),
        (256,),
        functools.partial(_floats, arrays=2),
    ),
    "blocks that wait for flags": Kernel(
        f"""
extern "C" __global__ void kernel(const float* x, volatile float* sums, int n) {{
    {_I}
    float sum = x[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x != 0) return;
    float before = 0;
    while (blockIdx.x > 0 && (before = sums[blockIdx.x - 1]) == 0) {{}}
    sums[blockIdx.x] = before + sum;
}}
""",
        (_FLOATS // 1024,),
        (256,),
        functools.partial(_floats, arrays=2),
    ),
    "graph, levels": Kernel(
        f"""
extern "C" __global__ void kernel(const int* first, const int* edges, int* level, int* changed, int n) {{
    {_I}
    if (i >= n) return;
    int own = atomicAdd(&level[i], 0);
    for (int e = first[i]; e < first[i + 1]; e++)
        if (atomicMin(&level[edges[e]], own + 1) > own + 1) atomicExch(changed, 1);
}}
""",
        (_NODES // 256,),
        (256,),
        _levels,
    ),
}


def _compiled(kernel: Kernel, checks: str) -> Any:
    os.environ[VARIABLE] = checks
    module = tcuda.emulation.xp.RawModule(code=kernel.source)
    return module.get_function("kernel")


def measure(kernel: Kernel, turns: int) -> tuple[float, float, float]:
    """Return the least processor times of a launch in seconds.

    They are those with the checks of memory, with the search in one order, and with the search in two orders.
    """
    sides = [_compiled(kernel, checks) for checks in ("memory", "memory,races:orders=1", "memory,races")]
    arguments = kernel.arguments(tcuda.emulation.xp)
    times: list[list[float]] = [[], [], []]
    for turn in range(turns + 1):
        for side, found in zip(sides, times, strict=True):
            begin = time.process_time()
            side(kernel.grid, kernel.block, arguments)
            tcuda.synchronize()
            if turn != 0:
                found.append(time.process_time() - begin)
    memory, one, two = map(min, times)
    return memory, one, two


def main() -> int:
    """Print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="the kernels (all)")
    parser.add_argument("--turns", type=int, default=_TURNS, help=f"the launches of each side ({_TURNS})")
    chosen = parser.parse_args()
    tcuda.emulation.enable(devices=1, memory="1GiB")
    print("| kernel | memory, ms | races in one order, ms | ratio | in two orders, ms | ratio to one order |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    missed = False
    for name in chosen.names or KERNELS:
        kernel = KERNELS[name]
        memory, one, two = measure(kernel, chosen.turns)
        first, second = one / memory, two / one
        print(
            f"| {name} | {1e3 * memory:.1f} | {1e3 * one:.1f} | {first:.2f} | {1e3 * two:.1f} | {second:.2f} |",
            flush=True,
        )
        missed = missed or first > MOST or second > MOST_OF_ORDERS
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
