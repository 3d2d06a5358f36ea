"""Grids whose threads wait for volatile variables, until another block has come or for ever."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from tcuda._core import EmulatedLaunch, EmulatedModule
from tcuda.emulation.rtc.build import build

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")

SOURCE = """
extern "C" __global__ void meet(int* count) {
    if (threadIdx.x == 0) {
        atomicAdd(count, 1);
        while (*(volatile int*)count < gridDim.x) {}
    }
    __syncthreads();
}
extern "C" __global__ void wait_for_ever(int* count) {
    if (threadIdx.x == 0) {
        atomicAdd(count, 1);
        while (*(volatile int*)count <= gridDim.x) {}
    }
    __syncthreads();
}
extern "C" __global__ void write_all(volatile int* count) {
    for (int i = 0; i < 100000; ++i) *count = i;
}
"""


def launch(name: str, blocks: int, threads: int, patience: float) -> tuple[object, ...] | None:
    """Launch the kernel ``name`` on one number."""
    function = EmulatedModule(build(SOURCE)[0]).function(name)
    assert function is not None
    count = np.zeros(1, np.int32)
    address = count.ctypes.data
    packed = address.to_bytes(8, "little")
    ranges = [(address, address + count.nbytes)]
    return EmulatedLaunch(function, (blocks, 1, 1), (threads, 1, 1), packed, 0, ranges, patience=patience).run()


@pytest.mark.parametrize("threads", [1, 40])
@pytest.mark.parametrize("blocks", [1, 2, 30])
def test_the_blocks_of_a_grid_meet_at_a_volatile_counter(blocks: int, threads: int) -> None:
    assert launch("meet", blocks, threads, 30) is None


@pytest.mark.parametrize("threads", [1, 40])
@pytest.mark.parametrize("blocks", [1, 3])
def test_blocks_that_wait_for_ever_end_after_the_patience(blocks: int, threads: int) -> None:
    report = launch("wait_for_ever", blocks, threads, 0.05)
    assert report is not None
    assert report[0] == "timeout"


def test_a_thread_that_writes_makes_progress() -> None:
    assert launch("write_all", 1, 2, 1e-9) is None
