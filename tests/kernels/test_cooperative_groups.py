"""Groups of threads: the grid, groups of any kind, and tiles whose size is known at run time."""

from __future__ import annotations

import re
import shutil
from typing import Any

import numpy as np
import pytest

import tcuda
from support.devices import synchronized

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")

SUMS = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// Adds the values of the members of a group of any kind.
__device__ int sum(cg::thread_group group, int* scratch, int value) {
    int rank = group.thread_rank();
    for (int half = group.size() / 2; half > 0; half /= 2) {
        scratch[rank] = value;
        group.sync();
        if (rank < half) value += scratch[rank + half];
        group.sync();
    }
    return value;
}

extern "C" __global__ void of_the_block(int* sums) {
    __shared__ int scratch[64];
    int total = sum(cg::this_thread_block(), scratch, threadIdx.x + 1);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

extern "C" __global__ void of_tiles(int count, int* sums) {
    __shared__ int scratch[64];
    cg::thread_group tile = cg::tiled_partition(cg::this_thread_block(), count);
    int first = threadIdx.x / count * count;
    int total = sum(tile, scratch + first, threadIdx.x);
    if (tile.thread_rank() == 0) sums[threadIdx.x / count] = total;
}

extern "C" __global__ void of_tiles_of_odd_threads(int* ranks) {
    if (threadIdx.x % 2) {
        cg::coalesced_group tile = cg::tiled_partition(cg::coalesced_threads(), 4);
        ranks[threadIdx.x] = 10 * tile.size() + tile.thread_rank();
    }
}

extern "C" __global__ void of_the_grid(int* ranks) {
    cg::grid_group grid = cg::this_grid();
    ranks[grid.thread_rank()] = 1000 * (int)grid.size() + 100 * (int)grid.num_blocks() + (int)grid.block_rank();
}
"""


def kernel(xp: Any, name: str) -> Any:
    """Return a kernel of the source; the compiler runs once for all."""
    return xp.RawModule(code=SUMS).get_function(name)


def test_a_function_takes_a_group_of_any_kind(xp: Any) -> None:
    sums = xp.zeros(2, dtype=xp.int32)
    kernel(xp, "of_the_block")((2,), (64,), (sums,))
    assert sums.get().tolist() == [64 * 65 // 2] * 2


@pytest.mark.parametrize("count", [4, 16, 32])
def test_the_size_of_a_tile_may_be_known_at_run_time(count: int, xp: Any) -> None:
    sums = xp.zeros(64 // count, dtype=xp.int32)
    kernel(xp, "of_tiles")((1,), (64,), (np.int32(count), sums))
    assert sums.get().tolist() == np.arange(64).reshape(-1, count).sum(axis=1).tolist()


def test_a_tile_of_lanes_that_run_together_holds_their_ranks(xp: Any) -> None:
    ranks = xp.zeros(32, dtype=xp.int32)
    kernel(xp, "of_tiles_of_odd_threads")((1,), (32,), (ranks,))
    assert ranks.get()[1::2].tolist() == [40, 41, 42, 43] * 4
    assert not ranks.get()[::2].any()


def test_a_grid_tells_numbers_in_every_launch(xp: Any) -> None:
    ranks = xp.zeros(3 * 2 * 4, dtype=xp.int32)
    kernel(xp, "of_the_grid")((3, 2), (4,), (ranks,))
    assert ranks.get().tolist() == [24_600 + block for block in range(6) for _ in range(4)]


MEETING = r"""
#include <cooperative_groups.h>
extern "C" __global__ void meet(const int* x, int* part, int* y) {
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    __shared__ int own;
    int b = blockIdx.x;
    for (int round = 0; round < 3; round++) {
        if (threadIdx.x == 0) part[b] = own = x[b] + round;
        grid.sync();
        if (threadIdx.x == 1) y[b] += part[(b + 1) % gridDim.x] * own;
        grid.sync();
    }
    if (threadIdx.x == 2) y[b] += 1000 * grid.is_valid();
}
"""


def met(xp: Any, blocks: int, threads: int = 64, *, cooperative: bool = True) -> np.ndarray:
    """Return what the blocks have written, which meet several times."""
    x, y = xp.arange(blocks, dtype=xp.int32), xp.zeros(blocks, dtype=xp.int32)
    kernel = xp.RawKernel(MEETING, "meet", enable_cooperative_groups=cooperative)
    kernel((blocks,), (threads,), (x, xp.zeros(blocks, dtype=xp.int32), y))
    return y.get()


@pytest.mark.parametrize("blocks", [1, 2, 40])
def test_the_blocks_of_a_cooperative_launch_meet(blocks: int, xp: Any) -> None:
    x = np.arange(blocks)
    expected = sum((np.roll(x, -1) + round) * (x + round) for round in range(3)) + 1000
    for _ in range(2):
        assert met(xp, blocks).tolist() == expected.tolist()


@pytest.mark.emulated
def test_a_block_that_leaves_out_a_barrier_of_the_grid_ends_the_launch(xp: Any) -> None:
    source = """
    #include <cooperative_groups.h>
    extern "C" __global__ void leave(int* y) {
        if (blockIdx.x != 1) cooperative_groups::this_grid().sync();
    }
    """
    kernel = xp.RawKernel(source, "leave", enable_cooperative_groups=True)
    with pytest.raises(Exception, match=r"1 thread waits at .*this_grid\(\)\.sync\(\)") as caught, synchronized():
        kernel((4,), (32,), (xp.zeros(4, dtype=xp.int32),))
    assert "kernel.cu:4" in str(caught.value)


COUNT = r"""
extern "C" __global__ void count(int* blocks) {
    if (threadIdx.x + threadIdx.y + threadIdx.z == 0) atomicAdd(blocks, 1);
}
"""


def most_blocks() -> int:
    """Return how many blocks of 64 threads that use no shared memory the device runs at the same time."""
    return 32 * tcuda.get_device_properties().multi_processor_count


def test_a_cooperative_launch_of_too_many_blocks_along_x_is_made_smaller(xp: Any) -> None:
    kernel = xp.RawKernel(COUNT, "count", enable_cooperative_groups=True)
    blocks, most = xp.zeros(1, dtype=xp.int32), most_blocks()
    kernel((most,), (64,), (blocks,))
    assert blocks.item() == most
    words = f"The grid size will be reduced from 100000 to {most}, as the specified grid size exceeds the limit."
    with pytest.warns(UserWarning, match=re.escape(words)) as caught:
        kernel((100_000,), (8, 4, 2), (blocks,))
    assert caught[0].filename == __file__
    assert blocks.item() == 2 * most
    with pytest.warns(UserWarning, match=re.escape(words)):
        kernel.kernel.linear_launch(6_400_000, (blocks,), 0, 64, None, True)
    assert blocks.item() == 3 * most


def test_a_cooperative_launch_of_too_many_blocks_along_other_axes_is_refused(xp: Any) -> None:
    kernel = xp.RawKernel(COUNT, "count", enable_cooperative_groups=True)
    blocks, most = xp.zeros(1, dtype=xp.int32), most_blocks()
    for grid, words in (((most, 2), f"({most} * 2 * 1)"), ((1, 1, most + 1), f"(1 * 1 * {most + 1})")):
        with pytest.raises(ValueError, match=re.escape(f"The specified grid size {words} exceeds the limit ({most}).")):
            kernel(grid, (64,), (blocks,))
    assert blocks.item() == 0


def launch_a_block_of_1025_threads(xp: Any) -> None:
    kernel = xp.RawKernel(COUNT, "count", enable_cooperative_groups=True)
    with pytest.raises(Exception, match="INVALID_VALUE|invalid argument"):
        kernel((1,), (1025,), (xp.zeros(1, dtype=xp.int32),))


# CuPy makes the grid smaller first if the driver answers that no such block fits, and does not refuse the question.
@pytest.mark.filterwarnings("ignore:The grid size will be reduced from 1 to 0")
def test_a_block_that_fits_no_multiprocessor_is_refused(xp: Any) -> None:
    launch_a_block_of_1025_threads(xp)


@pytest.mark.emulated
def test_a_block_that_fits_no_multiprocessor_is_refused_without_a_warning(xp: Any) -> None:
    launch_a_block_of_1025_threads(xp)


def test_the_driver_refuses_blocks_that_a_green_context_cannot_run_together(xp: Any) -> None:
    kernel = xp.RawKernel(COUNT, "count", enable_cooperative_groups=True)
    blocks, most = xp.zeros(1, dtype=xp.int32), most_blocks()
    tcuda.synchronize()
    context = tcuda.GreenContext.create(num_sms=1)
    stream = context.Stream()
    with tcuda.stream(stream):
        kernel((32 * context.sm_count,), (64,), (blocks,))
        with pytest.raises(Exception, match="too many blocks in cooperative launch|COOPERATIVE_LAUNCH_TOO_LARGE"):
            kernel((most,), (64,), (blocks,))
    stream.synchronize()
    assert blocks.item() == 32 * context.sm_count


@pytest.mark.emulated
def test_a_barrier_of_the_grid_needs_a_cooperative_launch(xp: Any) -> None:
    with pytest.raises(Exception, match="enable_cooperative_groups=True") as caught:
        met(xp, 2, cooperative=False)
    assert "kernel.cu:9" in str(caught.value)


PARTS = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
template <class Parent> __device__ void note(Parent parent, int* parts) {
    cg::coalesced_group labeled = cg::labeled_partition(parent, (int)threadIdx.x % 3);
    cg::coalesced_group halved = cg::binary_partition(parent, threadIdx.x % 8 >= 3);
    parts[0] = labeled.size() * 100 + labeled.thread_rank();
    parts[1] = labeled.shfl((int)threadIdx.x, 0);
    parts[2] = labeled.meta_group_size();
    parts[3] = halved.size() * 100 + halved.thread_rank();
    parts[4] = halved.shfl((int)threadIdx.x, 0);
    parts[5] = halved.meta_group_size() * 10 + halved.meta_group_rank();
}
extern "C" __global__ void of_a_tile(int* parts) {
    note(cg::tiled_partition<16>(cg::this_thread_block()), parts + threadIdx.x * 6);
}
extern "C" __global__ void of_lanes(int* parts) {
    if (threadIdx.x % 2) note(cg::coalesced_threads(), parts + threadIdx.x * 6);
}
"""


def noted(parents: list[list[int]]) -> np.ndarray:
    """Return what the kernels note for the threads of each parent."""
    parts = np.zeros((64, 6), np.int32)
    for parent in parents:
        for thread in parent:
            labeled = [other for other in parent if other % 3 == thread % 3]
            halved = [other for other in parent if (other % 8 >= 3) == (thread % 8 >= 3)]
            labels = len({other % 3 for other in parent})
            rank = thread % 8 >= 3 and len(halved) < len(parent)
            parts[thread] = (
                len(labeled) * 100 + labeled.index(thread),
                labeled[0],
                labels,
                len(halved) * 100 + halved.index(thread),
                halved[0],
                (2 if len(halved) < len(parent) else 1) * 10 + rank,
            )
    return parts


def test_a_group_is_parted_by_labels_and_by_a_predicate(xp: Any) -> None:
    module = xp.RawModule(code=PARTS)
    for name, parents in (
        ("of_a_tile", [list(range(first, first + 16)) for first in range(0, 64, 16)]),
        ("of_lanes", [list(range(1, 32, 2)), list(range(33, 64, 2))]),
    ):
        parts = xp.zeros((64, 6), dtype=xp.int32)
        module.get_function(name)((1,), (64,), (parts,))
        assert parts.get().tolist() == noted(parents).tolist()
