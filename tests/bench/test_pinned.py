"""The tool that measures page-locked memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

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

    assert pinned.churn(pinned.Library(Block, lambda: held, lambda: None)) == 1


@pytest.mark.emulated
def test_a_churn_holds_less_than_a_pool_of_powers_of_two(runtime: Runtime, pinned: Any) -> None:
    assert 1 <= pinned.churn(pinned.libraries()["tcuda"]) <= 1.5
