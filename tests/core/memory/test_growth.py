"""By how much the memory of a stream grows, and how often the driver is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

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
    """Small allocations on a ledger."""

    def __init__(self, runtime: Runtime) -> None:
        self.ledger = _core.Ledger(runtime.memoryDriver(), runtime.getDeviceCount(), _core.Settings(), fail, fail)
        self.addresses: list[int] = []

    def take(self) -> int:
        self.addresses.append(self.ledger.allocate(0, SMALL, 0))
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


def test_a_program_begins_anew_when_it_has_no_memory_left(program: Program) -> None:
    program.grow_to(HELD)
    while program.addresses:
        program.free(program.addresses[-1])
    program.ledger.empty_cache(0)
    assert program.reserved() == 0
    program.grow_to(HELD)
    assert program.next_step() == 8 * MIB
