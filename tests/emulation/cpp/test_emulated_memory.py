"""Memory of the host that stands for the memory of an emulated device."""

from __future__ import annotations

import ctypes
import os
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.examples import examples
from support.threads import in_threads
from tcuda._core import EmulatedMemory

ALIGNMENT = 512


def test_blocks_are_aligned_writable_and_counted_in_whole_units() -> None:
    memory = EmulatedMemory(1 << 20)
    first, second = memory.allocate(1), memory.allocate(ALIGNMENT + 1)
    assert first % ALIGNMENT == second % ALIGNMENT == 0
    ctypes.memset(second, 7, ALIGNMENT + 1)
    assert memory.used == 3 * ALIGNMENT
    assert memory.live == 2


def test_a_block_is_found_by_every_address_in_it() -> None:
    memory = EmulatedMemory(1 << 20)
    address = memory.allocate(1000)
    assert memory.block_at(address) == memory.block_at(address + 999) == (address, 1000)
    assert memory.block_at(address + 1000) is None
    assert memory.block_at(address - 1) is None


def test_the_bounds_contain_every_block() -> None:
    memory = EmulatedMemory(1 << 20)
    assert memory.bounds() == []
    first, second, third = (memory.allocate(1000) for _ in range(3))
    assert memory.bounds() == [(min(first, second, third), max(first, second, third) + 1000)]
    for address in (first, second, third):
        assert memory.release(address)
    assert memory.bounds() == []


def test_the_limit_is_exact() -> None:
    memory = EmulatedMemory(4 * ALIGNMENT)
    blocks = [memory.allocate(ALIGNMENT) for _ in range(4)]
    assert all(blocks)
    assert memory.allocate(1) == 0
    assert memory.release(blocks[0])
    assert memory.allocate(ALIGNMENT)


@pytest.mark.parametrize("size", [(1 << 20) + 1, sys.maxsize, 2**64 - 1, 2**64 - ALIGNMENT])
def test_sizes_beyond_the_limit_are_refused_without_wrapping_around(size: int) -> None:
    memory = EmulatedMemory(1 << 20)
    assert memory.allocate(size) == 0
    assert memory.used == memory.live == 0


def test_a_size_of_zero_takes_nothing() -> None:
    memory = EmulatedMemory(1 << 20)
    assert memory.allocate(0) == 0
    assert memory.live == 0


def test_only_the_start_of_a_live_block_can_be_released_and_only_once() -> None:
    memory = EmulatedMemory(1 << 20)
    address = memory.allocate(4096)
    assert not memory.release(address + ALIGNMENT)
    assert not memory.release(0)
    assert memory.used == 4096
    assert memory.release(address)
    assert not memory.release(address)
    assert memory.used == 0


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 5000)), max_size=60))
def test_live_blocks_never_overlap_and_every_byte_is_accounted_for(steps: list[tuple[bool, int]]) -> None:
    memory = EmulatedMemory(64 * 1024)
    live: dict[int, int] = {}
    for allocate, number in steps:
        if allocate:
            address = memory.allocate(number)
            room = memory.limit - sum(-(-size // ALIGNMENT) * ALIGNMENT for size in live.values())
            assert bool(address) == (-(-number // ALIGNMENT) * ALIGNMENT <= room)
            if address:
                assert all(address + number <= start or start + size <= address for start, size in live.items())
                live[address] = number
        elif live:
            address = sorted(live)[number % len(live)]
            assert memory.release(address)
            del live[address]
    assert memory.live == len(live)
    assert memory.used == sum(-(-size // ALIGNMENT) * ALIGNMENT for size in live.values())


@pytest.mark.parametrize("size", [1, 512, 513, 1 << 20, 32 << 20])
def test_addresses_of_no_block_lie_between_two_blocks(size: int) -> None:
    memory = EmulatedMemory(1 << 30)
    blocks = [memory.allocate(size) for _ in range(3)]
    memory.release(blocks[1])
    blocks[1] = memory.allocate(size)
    for address in blocks:
        assert memory.block_at(address - 1) is None
        assert memory.block_at(address - ALIGNMENT) is None
        assert memory.block_at(address + size) is None
        assert memory.block_at(address + size + ALIGNMENT - 1) is None
    assert memory.used == 3 * -(-size // ALIGNMENT) * ALIGNMENT


def test_threads_share_it_without_losing_a_block() -> None:
    memory = EmulatedMemory(1 << 30)
    together = threading.Barrier(4)

    def churn() -> None:
        together.wait()
        for size in range(1, 500):
            address = memory.allocate(size)
            assert memory.block_at(address) == (address, size)
            assert memory.release(address)

    in_threads(churn, 4 * [()])
    assert memory.used == memory.live == 0


class TestKeptMemory:
    """Freed memory that stays accessible for work that still has to be done."""

    def test_a_freed_block_keeps_its_contents_and_its_addresses(self) -> None:
        memory = EmulatedMemory(128 << 20)
        memory.keep_freed()
        address = memory.allocate(64 << 20)
        ctypes.memset(address, 7, 64 << 20)
        assert memory.release(address)
        assert (memory.used, memory.live, memory.kept) == (0, 0, 64 << 20)
        assert memory.block_at(address) is None
        assert not memory.release(address)
        others = [memory.allocate(64 << 20), memory.allocate(64 << 20)]
        assert address not in others
        assert ctypes.string_at(address + (64 << 20) - 1, 1) == b"\7"
        memory.give_back()
        assert memory.kept == 0
        for other in others:
            memory.release(other)
        memory.give_back()
        assert memory.live == 0

    def test_kept_memory_gives_its_pages_back(self) -> None:
        memory = EmulatedMemory(256 << 20)
        if memory.descriptor() < 0:
            pytest.skip("needs memory that processes share")
        memory.keep_freed()
        address = memory.allocate(128 << 20)
        ctypes.memset(address, 7, 128 << 20)
        memory.release(address)
        pages = os.fstat(memory.descriptor()).st_blocks * 512
        memory.give_back()
        # The system may keep the last few pages for a moment.
        assert os.fstat(memory.descriptor()).st_blocks * 512 <= pages - (127 << 20)

    def test_memory_is_given_back_at_once_without_the_choice(self) -> None:
        memory = EmulatedMemory(1 << 20)
        memory.release(memory.allocate(1000))
        assert memory.kept == 0
