"""``cuda::barrier`` of ``<cuda/barrier>`` in kernels that use it in a wrong way.

The corpus of ``tests/emulation/kernel_races`` has the right uses, also of pipelines and of asynchronous copies.
"""

from __future__ import annotations

from typing import Any

import pytest

import tcuda

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("runtime")]

CODE = r"""
#include <cuda/barrier>
extern "C" __global__ void kernel(int expected, int first, int* x) {
    __shared__ cuda::barrier<cuda::thread_scope_block> all;
    int t = threadIdx.x;
    if (first && t == 0) init(&all, expected);
    __syncthreads();
    if (t < first) all.arrive_and_wait();
    x[t] = t;
}
"""


def launch(expected: int, first: int) -> Any:
    """Let the first threads of 32 arrive at a barrier that expects a number of threads, and return what was written."""
    xp = tcuda.xp
    x = xp.zeros(32, "int32")
    xp.RawKernel(CODE, "kernel")((1,), (32,), (xp.int32(expected), xp.int32(first), x))
    return x.get()


def test_a_barrier_waits_for_the_threads_that_it_expects() -> None:
    assert launch(8, 8).tolist() == list(range(32))


def test_a_barrier_at_which_too_few_threads_arrive_ends_the_launch() -> None:
    with pytest.raises(Exception, match="8 threads wait at a cuda::barrier or .*, 24 threads have returned") as caught:
        launch(9, 8)
    assert "kernel.cu:8" in str(caught.value)
    assert "702" in str(caught.value)


def test_a_barrier_at_which_too_many_threads_arrive_ends_the_launch() -> None:
    with pytest.raises(Exception, match="more threads arrive at a cuda::barrier than its phase expects") as caught:
        launch(0, 8)
    assert "kernel.cu:8" in str(caught.value)
