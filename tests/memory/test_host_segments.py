"""Which page-locked memory is cut for other sizes, and when the driver is called for more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.busy_streams import keep_busy
from support.sizes import KIB, MIB
from tcuda.memory import copy_async, empty_pinned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tcuda._runtime.protocol import Runtime

pytestmark = pytest.mark.emulated  # other threads of the tests on a GPU may use page-locked memory


@pytest.fixture(autouse=True)
def _empty_cache() -> Iterator[None]:
    tcuda.memory.empty_host_cache()
    yield
    tcuda.memory.empty_host_cache()


def _allocate_in_turn(sizes: Iterable[int]) -> None:
    for size in sizes:
        empty_pinned(size, "uint8")


def _calls() -> int:
    statistics = tcuda.host_memory_stats()
    return statistics["num_host_alloc"] + statistics["num_host_free"]


def _held() -> int:
    return tcuda.host_memory_stats()["allocated_bytes.current"]


@pytest.mark.parametrize(
    "sizes",
    [[MIB, 2 * MIB, 3 * MIB, 4 * MIB], [64 * MIB, 3 * MIB, 17 * MIB], [1000, 3 * MIB], [KIB, 5 * MIB, MIB, 9 * MIB]],
)
def test_blocks_whose_sizes_change_call_the_driver_only_at_first(sizes: list[int]) -> None:
    _allocate_in_turn(sizes * 20)
    before = _calls()
    _allocate_in_turn(sizes * 5)
    assert _calls() == before
    assert _held() <= 3 * max(sizes) + 2 * MIB


def test_a_large_segment_is_cut_and_joined_again() -> None:
    large = empty_pinned(8 * MIB, "uint8")
    begin = large.ctypes.data
    del large
    parts = [empty_pinned(size, "uint8") for size in (3 * MIB, 4 * MIB)]
    places = sorted(part.ctypes.data - begin for part in parts)
    assert places == [0, 3 * MIB]
    del parts
    assert empty_pinned(8 * MIB, "uint8").ctypes.data == begin


@pytest.mark.parametrize("step", [4 * KIB, 100 * KIB])
def test_blocks_that_grow_slowly_seldom_call_the_driver(step: int) -> None:
    sizes = [2 * MIB + step * number for number in range(200)]
    before = _calls()
    _allocate_in_turn(sizes)
    assert _calls() - before <= 6
    assert _held() <= 3 * sizes[-1]


def test_phases_that_share_no_memory_call_the_driver_only_at_first() -> None:
    """Two phases: ten small blocks at once, and a large one."""
    before, held = _calls(), _held()
    for _ in range(200):
        small = [empty_pinned(MIB, "uint8") for _ in range(10)]
        del small
        empty_pinned(10 * MIB, "uint8")
    assert _calls() - before == 6
    assert _held() - held == 10 * MIB + 16 * MIB  # the large segment is larger than its block


@pytest.mark.eager
def test_memory_that_copies_use_lets_new_segments_be_no_larger(runtime: Runtime, xp: Any) -> None:
    x, stream = xp.zeros(3 * MIB, "uint8"), tcuda.Stream()
    tcuda.synchronize()
    keep_busy(stream)
    held = _held()
    for number in range(1, 4):
        copy_async(x, empty_pinned(3 * MIB, "uint8"), stream)
        assert _held() - held == number * 3 * MIB
    stream.synchronize()
