"""Grids whose threads wait for volatile variables, until another block has come or for ever."""

from __future__ import annotations

import shutil
from typing import Any

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


def launch(name: str, blocks: int, threads: int, patience: float, **more: Any) -> tuple[Any, ...] | None:
    """Launch the kernel ``name`` on one number."""
    function = EmulatedModule(build(SOURCE)[0]).function(name)
    assert function is not None
    count = np.zeros(1, np.int32)
    address = count.ctypes.data
    packed = address.to_bytes(8, "little")
    ranges = [(address, address + count.nbytes)]
    shared = 4 if more else 0
    return EmulatedLaunch(
        function, (blocks, 1, 1), (threads, 1, 1), packed, shared, ranges, patience=patience, **more
    ).run()


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
    assert "has not begun" not in report[1]


def test_a_block_that_waits_for_a_block_that_cannot_begin_gets_advice() -> None:
    assert launch("meet", 132 * 32, 1, 30) is None
    report = launch("meet", 132 * 32 + 1, 1, 0.2)
    assert report is not None
    assert report[0] == "timeout"
    assert "a block that has not begun: an H200 runs 4224 blocks of this size at the same time. Let the" in report[1]


def test_blocks_meet_in_a_launch_with_marks_of_shared_memory() -> None:
    assert launch("meet", 30, 40, 30, marked=True, marks_shared=True) is None


def test_a_thread_that_writes_makes_progress() -> None:
    assert launch("write_all", 1, 2, 1e-9) is None
