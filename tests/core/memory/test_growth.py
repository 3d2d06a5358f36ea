"""By how much the memory of a stream grows, and how often the driver is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

from support.core import for_tests
from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda._runtime.protocol import Runtime

MIB = 1 << 20
SMALL = MIB // 2
HELD = 64 * MIB


def fail(*_: object, **__: object) -> NoReturn:
    raise AssertionError


class Program:
    """Allocations of one size on a ledger."""

    def __init__(self, runtime: Runtime) -> None:
        self.driver = for_tests.FaultyDriver(runtime.memoryDriver())
        self.ledger = _core.Ledger(self.driver, runtime.getDeviceCount(), _core.Settings(), fail, fail)
        self.addresses: list[int] = []
        self.size = SMALL

    def take(self, stream: int = 0) -> int:
        self.addresses.append(self.ledger.allocate(0, self.size, stream))
        return self.addresses[-1]

    def free(self, address: int) -> None:
        self.addresses.remove(address)
        assert self.ledger.free(address)

    def grow_to(self, held: int) -> None:
        while self.reserved() < held:
            self.take()

    def next_step(self) -> int:
        """Allocate until the driver gives memory, and return the bytes of this memory."""
        before = self.reserved()
        while self.reserved() == before:
            self.take()
        return self.reserved() - before

    def reserved(self) -> int:
        return self.ledger.statistics(0)["reserved_bytes.all.current"]


@pytest.fixture
def program(runtime: Runtime) -> Iterator[Program]:
    made = Program(runtime)
    yield made
    while made.addresses:
        made.free(made.addresses[-1])
    runtime.deviceSynchronize()
    made.ledger.empty_cache(0)


def test_a_program_that_only_allocates_grows_by_a_quarter_and_at_most_8_mib(program: Program) -> None:
    assert program.next_step() == 2 * MIB
    program.grow_to(16 * MIB)
    assert program.next_step() == 4 * MIB
    program.grow_to(HELD)
    assert program.next_step() == 8 * MIB
    wasted = program.reserved() - len(program.addresses) * SMALL
    assert wasted < 8 * MIB


def test_a_program_that_has_freed_memory_grows_by_as_little_as_possible(program: Program) -> None:
    program.grow_to(HELD)
    program.free(program.take())
    assert program.next_step() == 2 * MIB


def test_large_memory_grows_by_20_mib_as_in_torch(program: Program) -> None:
    program.size = 3 * MIB
    assert [program.next_step() for _ in range(3)] == [20 * MIB] * 3


def test_large_memory_grows_ahead_by_a_quarter_and_at_most_80_mib_until_the_first_free(program: Program) -> None:
    program.size = 9 * MIB
    program.grow_to(160 * MIB)
    assert program.next_step() == 40 * MIB
    program.grow_to(320 * MIB)
    assert program.next_step() == 80 * MIB
    program.free(program.take())
    assert program.next_step() == 20 * MIB


def test_growth_rarely_asks_for_the_free_memory(program: Program) -> None:
    program.take()
    before, mapped = (program.driver.successes(entry) for entry in ("memory_info", "map"))
    while program.driver.successes("map") < mapped + 12:
        program.next_step()
    assert program.driver.successes("memory_info") <= before + 1


@pytest.mark.alone
def test_free_memory_of_an_idle_stream_goes_back_before_a_full_device_refuses(
    program: Program, runtime: Runtime
) -> None:
    side = runtime.streamCreateWithPriority(1, 0)
    program.ledger.stream_created(0, side)
    program.size = 60 * MIB
    program.free(program.take(side))
    runtime.deviceSynchronize()
    beside = runtime.malloc(runtime.memGetInfo()[0] - 20 * MIB)
    program.size = 40 * MIB
    program.take()
    statistics = program.ledger.statistics(0)
    assert (statistics["num_alloc_retries"], statistics["num_sync_all_streams"]) == (0, 0)
    runtime.free(beside)
    program.ledger.stream_about_to_be_destroyed(0, side)
    runtime.streamDestroy(side)


def test_a_program_begins_anew_when_it_has_no_memory_left(program: Program) -> None:
    program.grow_to(HELD)
    while program.addresses:
        program.free(program.addresses[-1])
    program.ledger.empty_cache(0)
    assert program.reserved() == 0
    program.grow_to(HELD)
    assert program.next_step() == 8 * MIB
