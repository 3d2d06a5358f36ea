"""The uses of page-locked memory by work."""

from __future__ import annotations

import pytest

from tcuda.emulation.runtime.clock import Clock
from tcuda.emulation.runtime.host_uses import HostUses
from tcuda.emulation.runtime.schedule import Operation
from tcuda.emulation.runtime.timeline import Timeline

pytestmark = pytest.mark.emulated

SEGMENT = 1 << 20


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def uses(clock: Clock) -> HostUses:
    made = HostUses(clock)
    made.begin(SEGMENT, SEGMENT)
    return made


def used(uses: HostUses, clock: Clock, begin: int, size: int = 10) -> bool:
    def finished(ready: int, operations: object) -> bool:
        return ready <= clock.now() and all(operation.done for operation in operations)

    return uses.in_use(SEGMENT + begin, size, finished)


def test_the_uses_of_one_range_are_one_entry(uses: HostUses, clock: Clock) -> None:
    stream = Timeline(1, 0, 0)
    for time in range(1, 1000):
        uses.add([(SEGMENT, 10)], stream, time)
    assert len(uses) == 1
    clock.advance(998)
    assert used(uses, clock, 0)
    clock.advance(1)
    assert not used(uses, clock, 0)
    assert len(uses) == 0


def test_ranges_that_overlap_are_one_entry_until_the_latest_work_is_complete(uses: HostUses, clock: Clock) -> None:
    stream = Timeline(1, 0, 0)
    uses.add([(SEGMENT, 10)], stream, 30)
    uses.add([(SEGMENT + 20, 10)], stream, 20)
    assert len(uses) == 2
    assert not used(uses, clock, 10)
    uses.add([(SEGMENT + 5, 20)], stream, 10)
    assert len(uses) == 1
    clock.advance(25)
    assert used(uses, clock, 0)
    assert used(uses, clock, 20)
    clock.advance(5)
    assert not used(uses, clock, 20)


def test_complete_uses_of_memory_that_is_never_freed_are_forgotten(uses: HostUses, clock: Clock) -> None:
    stream = Timeline(1, 0, 0)
    for number in range(10_000):
        uses.add([(SEGMENT + 10 * number, 10)], stream, clock.now() + 100)
        clock.advance(1)
    assert len(uses) < 300


def test_each_stream_has_one_operation_and_done_ones_are_forgotten(uses: HostUses, clock: Clock) -> None:
    streams = [Timeline(handle, 0, 0) for handle in range(1, 4)]
    for number in range(300):
        stream = streams[number % 3]
        stream.last = Operation(number, 0, 0, None, ())
        uses.add([(SEGMENT, 10)], stream, 0)
    [use] = [each.value for each in uses._uses.copy()]
    assert len(use.last) == 3
    assert used(uses, clock, 0)
    for stream in streams[:2]:
        assert stream.last is not None
        stream.last.done = True
    uses.add([(SEGMENT, 10)], streams[2], 0)
    assert list(use.last) == streams[2:]


def test_a_hold_lasts_until_its_object_dies_although_ranges_are_joined(uses: HostUses, clock: Clock) -> None:
    hold = uses.hold([(SEGMENT, 10)])
    uses.add([(SEGMENT + 5, 10)], Timeline(1, 0, 0), 0)
    assert used(uses, clock, 12)
    del hold
    assert not used(uses, clock, 12)


def test_memory_that_is_not_the_allocators_is_not_noted(uses: HostUses) -> None:
    uses.add([(5, 10)], Timeline(1, 0, 0), 30)
    uses.end(SEGMENT)
    uses.add([(SEGMENT, 10)], Timeline(1, 0, 0), 30)
    assert len(uses) == 0
