"""The tool that measures page-locked memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.sizes import MIB

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda._runtime.protocol import Runtime


@pytest.fixture
def pinned(bench_module: Callable[[str], Any]) -> Any:
    """The module ``bench/pinned.py``."""
    return bench_module("pinned")


@pytest.mark.emulated
@pytest.mark.parametrize(("size", "each"), [(1024, 32), (MIB, 32), (64 * MIB, 1)])
def test_an_allocation_asks_the_driver_once_for_many_blocks(
    runtime: Runtime, pinned: Any, size: int, each: int
) -> None:
    """``each`` allocations use each block once, and then ask with one event of each device."""
    counted = pinned.questions(size)
    devices = runtime.getDeviceCount()
    assert counted["allocations"] == 0
    assert counted["events"] <= devices * (1 / each + 1 / pinned.COUNTED)
    assert counted["events"] >= devices * (1 / each - 1 / pinned.COUNTED)


@pytest.mark.emulated
def test_the_churn_counts_only_the_memory_that_the_program_has(runtime: Runtime, pinned: Any) -> None:
    """A library that holds nothing else has the ratio 1."""
    held = 0

    class Block:
        def __init__(self, size: int) -> None:
            nonlocal held
            self.size = size
            held += size

        def __del__(self) -> None:
            nonlocal held
            held -= self.size

    found = pinned.churn(pinned.Library(Block, lambda: held, lambda: None))
    assert found.held == found.live > pinned.CHURN.live
    assert found.locked is None


@pytest.mark.emulated
def test_the_smallest_limit_is_found(runtime: Runtime, pinned: Any) -> None:
    """A library that holds nothing else needs what is live, and one that doubles each block needs twice as much."""
    held, most = 0, pinned.UNLIMITED

    class Block:
        def __init__(self, size: int) -> None:
            nonlocal held
            self.size = 0
            if held + size > most:
                raise MemoryError
            self.size = size
            held += size

        def __del__(self) -> None:
            nonlocal held
            held -= self.size

    def limit(size: int) -> None:
        nonlocal most
        most = size

    once = pinned.Library(Block, lambda: held, lambda: None, limit=limit)
    assert 1 <= pinned.smallest_limit(once) <= 1.01
    twice = pinned.Library(lambda size: Block(2 * size), lambda: held, lambda: None, limit=limit)
    assert 1.99 <= pinned.smallest_limit(twice) <= 2.01


@pytest.mark.emulated
def test_the_pool_beside_tcuda_gives_its_unused_memory_back(runtime: Runtime, pinned: Any) -> None:
    pool = pinned.Pool().library()
    pool.limit(3 * MIB)
    block = pool.allocate(MIB)
    del block
    block = pool.allocate(2 * MIB + 1 - MIB)
    assert (pool.held(), pool.locked()) == (3 * MIB, 3 * MIB)
    del block
    block = pool.allocate(2 * MIB)
    assert pool.held() == 3 * MIB
    with pytest.raises(tcuda.AcceleratorError, match="memory"):
        pool.allocate(2 * MIB)
    assert (pool.held(), block.mem.size) == (2 * MIB, 2 * MIB)
