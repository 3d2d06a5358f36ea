"""What PyTorch's sanitizer is tested for: which orders events make, and what an operation reads and writes."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda.sanitizer import check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tcuda.sanitizer import Report

pytestmark = pytest.mark.emulated

LENGTH = 1000


class Program:
    """Arrays that streams read and write; each stream writes its results to an array of its own."""

    def __init__(self, xp: Any, report: Report) -> None:
        self.streams = [tcuda.Stream() for _ in range(12)]
        self.arrays = [xp.zeros(LENGTH) for _ in range(10)]
        self._results = [xp.zeros(LENGTH) for _ in self.streams]
        self._xp = xp
        self._report = report
        tcuda.synchronize()

    def _races(self) -> int:
        return sum(self._report.count(race) for race in self._report)

    def uses(self, stream: int, *, reads: Sequence[int] = (), writes: Sequence[int] = ()) -> int:
        """Let a stream use arrays, and return the number of races that were found."""
        before = self._races()
        with tcuda.stream(self.streams[stream]):
            for number in reads:
                self._xp.add(self.arrays[number], 1, out=self._results[stream])
            for number in writes:
                self.arrays[number] += 1
        return self._races() - before

    def record(self, stream: int, event: tcuda.Event | None = None) -> tcuda.Event:
        """Record an event on a stream."""
        return self.streams[stream].record_event(event)

    def wait(self, event: tcuda.Event, stream: int) -> None:
        """Let a stream wait for an event."""
        self.streams[stream].wait_event(event)


@pytest.fixture
def program(xp: Any) -> Iterator[Program]:
    """A program under the race detector."""
    with check(mode="collect") as report:
        yield Program(xp, report)
        tcuda.synchronize()


def test_reads_of_two_streams_do_not_race_and_a_write_races_with_a_read(program: Program) -> None:
    assert program.uses(1, reads=[0]) == program.uses(2, reads=[0]) == 0
    assert program.uses(2, writes=[0]) > 0


def test_every_read_is_compared_with_the_last_write(program: Program) -> None:
    assert program.uses(1, writes=[0]) == 0
    program.wait(program.record(1), 2)
    assert program.uses(2, reads=[0]) == 0
    assert program.uses(3, reads=[0]) > 0


def test_two_streams_that_wait_for_a_third_may_read_and_not_write(program: Program) -> None:
    assert program.uses(1, writes=[0]) == 0
    written = program.record(1)
    for stream in (2, 3):
        program.wait(written, stream)
        assert program.uses(stream, reads=[0]) == 0
    assert program.uses(2, writes=[0]) > 0


def test_an_order_goes_through_a_chain_of_streams(program: Program) -> None:
    assert program.uses(0, reads=[0]) == 0
    for stream in range(10):
        program.wait(program.record(stream), stream + 1)
    assert program.uses(10, writes=[0]) == 0


def test_a_record_does_not_stand_for_later_work(program: Program) -> None:
    assert program.uses(1, reads=[0]) == 0
    early = program.record(1)
    assert program.uses(1, reads=[0]) == 0
    program.wait(early, 2)
    assert program.uses(2, writes=[0]) > 0


def test_the_last_record_of_an_event_counts(program: Program) -> None:
    assert program.uses(1, reads=[0]) == program.uses(2, reads=[1]) == 0
    event = program.record(2, program.record(1))
    program.wait(event, 3)
    assert program.uses(3, writes=[1]) == 0
    assert program.uses(3, writes=[0]) > 0


def test_an_event_with_the_handle_of_a_dead_event_has_not_its_record(program: Program) -> None:
    assert program.uses(1, reads=[0]) == 0
    dead = program.record(1)
    handle = dead.cuda_event
    del dead
    gc.collect()
    made = tcuda.Event()
    program.wait(made, 2)  # an event without a record
    assert program.uses(2, writes=[0]) > 0
    program.record(3, made)
    assert made.cuda_event == handle
    program.wait(made, 4)
    assert program.uses(4, writes=[0]) > 0


@pytest.mark.parametrize("missing", [0, 1])
def test_a_write_is_compared_with_the_reads_of_all_streams(program: Program, missing: int) -> None:
    assert not any(program.uses(stream, reads=[0]) for stream in range(1, 10))
    for stream in range(1, 10 - missing):
        program.wait(program.record(stream), 0)
    assert bool(program.uses(0, writes=[0])) == bool(missing)


def test_every_array_that_races_is_reported(program: Program) -> None:
    arrays = range(10)
    assert program.uses(0, writes=arrays) == 0
    assert program.uses(1, writes=arrays) == len(arrays)


def test_a_wait_keeps_what_a_stream_knew_before(program: Program) -> None:
    for stream in (1, 2):
        assert program.uses(stream, writes=[stream]) == 0
    first, second = program.record(1), program.record(2)
    for stream in (1, 2):
        assert program.uses(stream, writes=[stream]) == 0
    program.wait(first, 2)
    program.wait(second, 1)
    program.wait(program.record(2), 1)
    assert program.uses(1, writes=[1, 2]) == 0


def test_several_streams_may_wait_for_one_event(program: Program) -> None:
    assert program.uses(1, writes=[0]) == 0
    event = program.record(1)
    for stream in (2, 3):
        program.wait(event, stream)
    assert program.uses(2, reads=[0]) == program.uses(3, reads=[0]) == 0


OPERATIONS: dict[str, tuple[Callable[[Any, Any, Any], Any], bool]] = {
    "sum of two arrays": (lambda xp, a, b: a + b, False),
    "concatenate": (lambda xp, a, b: xp.concatenate((a, b)), False),
    "out": (lambda xp, a, b: xp.multiply(a, 3, out=b[:]), False),
    "nonzero": (lambda xp, a, b: xp.nonzero(a)[0], False),
    "in place": (lambda xp, a, b: xp.add(a, 5, out=a), True),
    "fill": (lambda xp, a, b: a.fill(5), True),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_reads_its_inputs_and_writes_its_outputs(xp: Any, name: str) -> None:
    operation, writes = OPERATIONS[name]
    a, b, free = xp.ones(LENGTH), xp.ones(LENGTH), xp.ones(LENGTH)
    tcuda.synchronize()
    side, other = tcuda.Stream(), tcuda.Stream()

    def races(use: Callable[[Any], object]) -> bool:
        with check(mode="collect") as report:
            with tcuda.stream(side):
                result = operation(xp, a, b)
            with tcuda.stream(other):
                use(a if result is None else result)
            tcuda.synchronize()
        return bool(report)

    assert races(lambda result: xp.add(a, 1, out=free)) == writes
    assert races(lambda result: a.fill(1))
    assert races(lambda result: result.sum())


def test_the_parts_of_an_array_are_views_of_the_array(xp: Any) -> None:
    a = xp.arange(10).reshape(5, 2)
    tcuda.synchronize()
    first, second = tcuda.Stream(), tcuda.Stream()
    with check(mode="collect") as report:
        with tcuda.stream(first):
            parts = xp.split(a, [2, 4])
            parts[0] += 1
        with tcuda.stream(second):
            parts[1] += 1  # has no element of the first part
            assert not report
            a[1] += 1
            assert report
        tcuda.synchronize()
