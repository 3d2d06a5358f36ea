"""The next stream that needs memory gets the memory of a destroyed stream, with its addresses, without the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from support.core import for_tests
from support.peer import read, write
from tcuda import _core
from tcuda._backend import backend_of
from tcuda._runtime.protocol import CAPTURE_RELAXED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda._runtime.protocol import Runtime

MIB = 1 << 20
LONG = 400_000_000
NON_BLOCKING = 1
CALLS = ("reserve", "create", "map", "unmap", "destroy", "release", "allocate", "free")

pytestmark = pytest.mark.alone


def fail(*_: object, **__: object) -> NoReturn:
    raise AssertionError


class Program:
    """A ledger on a driver that counts its calls."""

    def __init__(self, runtime: Runtime, *, expandable: bool = True) -> None:
        options = _core.Settings()
        options.expandable_segments = expandable
        self.runtime = runtime
        self.driver = for_tests.FaultyDriver(runtime.memoryDriver())
        self.ledger = _core.Ledger(self.driver, runtime.getDeviceCount(), options, fail, fail)

    def make_stream(self) -> int:
        stream = self.runtime.streamCreateWithPriority(NON_BLOCKING, 0)
        self.ledger.stream_created(0, stream)
        return stream

    def destroy_stream(self, stream: int) -> None:
        self.ledger.stream_about_to_be_destroyed(0, stream)
        self.runtime.streamDestroy(stream)

    def take(self, size: int, stream: int) -> int:
        address: int = self.ledger.allocate(0, size, stream)
        return address

    def free(self, *addresses: int) -> None:
        for address in addresses:
            assert self.ledger.free(address)

    def keep_busy(self, stream: int) -> None:
        backend_of(self.runtime).sleep(LONG, stream)

    def use_a_stream(self, *sizes: int) -> list[int]:
        """Make a stream, use memory on the stream, destroy the stream, and return the addresses of the memory."""
        stream = self.make_stream()
        addresses = [self.take(size, stream) for size in sizes]
        self.free(*addresses)
        self.destroy_stream(stream)
        return addresses

    def calls(self) -> dict[str, int]:
        return {call: self.driver.successes(call) for call in CALLS}

    def segments(self) -> list[dict[str, Any]]:
        segments, _ = self.ledger.snapshot(None, False)
        return [segment for segment in segments if segment["device"] == 0]


@pytest.fixture(params=[True, False], ids=["expandable", "segments"])
def program(runtime: Runtime, request: pytest.FixtureRequest) -> Iterator[Program]:
    made = Program(runtime, expandable=request.param)
    yield made
    runtime.deviceSynchronize()
    made.ledger.empty_cache(0)
    assert not made.segments()


SIZES = (100, 3 * MIB, 700, 30 * MIB)


def test_a_stream_that_comes_and_goes_calls_no_driver(program: Program) -> None:
    first = program.use_a_stream(*SIZES)
    program.runtime.deviceSynchronize()
    before = program.calls()
    for _ in range(5):
        assert program.use_a_stream(*SIZES) == first
        program.runtime.deviceSynchronize()
    assert program.calls() == before


def test_many_streams_at_once_get_the_memory_of_as_many(program: Program) -> None:
    def use_streams() -> set[int]:
        streams = [program.make_stream() for _ in range(20)]
        addresses = [program.take(100, stream) for stream in streams]
        program.free(*addresses)
        for stream in streams:
            program.destroy_stream(stream)
        program.runtime.deviceSynchronize()
        return set(addresses)

    first = use_streams()
    before = program.calls()
    assert use_streams() == first
    assert program.calls() == before


def test_the_memory_waits_for_the_last_work_of_the_destroyed_stream(program: Program) -> None:
    stream, other = program.make_stream(), program.make_stream()
    address = program.take(30 * MIB, stream)
    program.free(address)
    program.keep_busy(stream)
    event = program.runtime.eventCreateWithFlags(2)
    program.runtime.eventRecord(event, stream)
    program.destroy_stream(stream)
    early = program.take(30 * MIB, other)
    assert program.runtime.eventQuery(event) != 0
    assert early != address
    program.runtime.eventSynchronize(event)
    another = program.make_stream()
    late = program.take(30 * MIB, another)
    assert late == address
    program.free(early, late)
    program.runtime.eventDestroy(event)
    for made in (other, another):
        program.destroy_stream(made)


def test_the_memory_waits_for_the_streams_that_were_recorded(program: Program) -> None:
    stream, user = program.make_stream(), program.make_stream()
    address = program.take(30 * MIB, stream)
    assert program.ledger.record_stream(0, address, user)
    program.keep_busy(user)
    program.free(address)
    program.destroy_stream(stream)
    others = [program.make_stream() for _ in range(2)]
    early = program.take(30 * MIB, others[0])
    assert program.runtime.streamQuery(user) != 0
    assert early != address
    program.runtime.streamSynchronize(user)
    late = program.take(30 * MIB, others[1])
    assert late == address
    program.free(early, late)
    for made in (user, *others):
        program.destroy_stream(made)


def test_a_live_block_keeps_its_contents_and_the_memory_around_it(program: Program) -> None:
    stream, other = program.make_stream(), program.make_stream()
    kept, freed = program.take(3 * MIB, stream), program.take(3 * MIB, stream)
    write(program.runtime, kept, b"kept")
    program.free(freed)
    program.destroy_stream(stream)
    program.runtime.deviceSynchronize()
    taken = program.take(3 * MIB, other)
    write(program.runtime, taken, b"other")
    assert read(program.runtime, kept, 4) == b"kept"
    owners = {segment["stream"] for segment in program.segments()}
    assert owners == {stream, other}
    program.free(kept, taken)
    program.destroy_stream(other)


def test_a_snapshot_and_the_history_name_the_stream_that_got_the_memory(program: Program) -> None:
    program.use_a_stream(3 * MIB)
    program.runtime.deviceSynchronize()
    program.ledger.record_history(_core.Stacks.NONE, 100, 0, True)
    other, stream = program.make_stream(), program.make_stream()  # one may have the old handle
    address = program.take(3 * MIB, stream)
    (segment,) = program.segments()
    assert segment["stream"] == stream
    assert program.ledger.stream_of(0, address) == stream
    _, traces = program.ledger.snapshot(None, True)
    left, came, allocated, _ = traces[0]
    assert (left["action"], came["action"]) in {("segment_unmap", "segment_map"), ("segment_free", "segment_alloc")}
    assert (left["addr"], left["size"]) == (came["addr"], came["size"]) == (segment["address"], segment["total_size"])
    assert (came["stream"], allocated["stream"]) == (stream, stream)
    program.free(address)
    for made in (other, stream):
        program.destroy_stream(made)


def test_a_pool_keeps_its_memory(program: Program) -> None:
    pool = (0, program.ledger.next_pool())
    program.ledger.create_pool(0, pool, None, True, False)
    program.ledger.begin_pool(0, pool)
    in_pool = program.use_a_stream(3 * MIB)
    program.ledger.end_pool(0, pool)
    program.runtime.deviceSynchronize()
    assert program.use_a_stream(3 * MIB) != in_pool
    program.runtime.deviceSynchronize()
    program.ledger.begin_pool(0, pool)
    assert program.use_a_stream(3 * MIB) == in_pool
    program.ledger.end_pool(0, pool)
    program.ledger.release_pool(0, pool)


def test_a_pool_of_a_graph_gives_a_stream_no_memory_of_another(program: Program) -> None:
    runtime = program.runtime
    capturing, first, second = (program.make_stream() for _ in range(3))
    pool = (0, program.ledger.next_pool())
    runtime.streamBeginCapture(capturing, CAPTURE_RELAXED)
    capture = program.ledger.begin_capture(pool, 0, capturing)
    program.ledger.end_capture(capture)
    runtime.graphDestroy(runtime.streamEndCapture(capturing))
    program.ledger.begin_pool(0, pool)
    address = program.take(3 * MIB, first)
    program.free(address)
    program.destroy_stream(first)
    runtime.deviceSynchronize()
    other = program.take(3 * MIB, second)
    assert other != address
    program.free(other)
    program.ledger.end_pool(0, pool)
    runtime.deviceSynchronize()
    program.ledger.release_graph(pool, [], False)
    for stream in (capturing, second):
        program.destroy_stream(stream)


class TestMemoryThatIsNotUsedAfterTheAdoption:
    """The driver still gets inherited memory back before another stream takes new memory."""

    @pytest.fixture
    def program(self, runtime: Runtime) -> Iterator[Program]:
        made = Program(runtime)
        yield made
        runtime.deviceSynchronize()
        made.ledger.empty_cache(0)
        assert not made.segments()

    def reserved(self, program: Program) -> int:
        return program.ledger.statistics(0)["reserved_bytes.all.current"]

    def test_goes_back_for_another_stream(self, program: Program) -> None:
        _, total = program.runtime.memGetInfo()
        program.ledger.set_memory_fraction(0, 240 * MIB / total)  # so that memory comes in small pieces
        program.use_a_stream(120 * MIB)
        program.runtime.deviceSynchronize()
        assert self.reserved(program) == 120 * MIB
        heir, other = program.make_stream(), program.make_stream()
        small = program.take(3 * MIB, heir)
        assert self.reserved(program) == 120 * MIB
        program.keep_busy(heir)
        large = program.take(60 * MIB, other)
        assert self.reserved(program) <= 120 * MIB
        program.free(small, large)
        for stream in (heir, other):
            program.destroy_stream(stream)

    def test_stays_once_it_was_used(self, program: Program) -> None:
        program.use_a_stream(120 * MIB)
        program.runtime.deviceSynchronize()
        heir, other = program.make_stream(), program.make_stream()
        program.free(program.take(120 * MIB, heir))
        program.keep_busy(heir)
        before = program.calls()["unmap"]
        large = program.take(60 * MIB, other)
        assert program.calls()["unmap"] == before
        assert self.reserved(program) == 180 * MIB
        program.free(large)
        for stream in (heir, other):
            program.destroy_stream(stream)

    def test_stays_for_its_own_stream(self, program: Program) -> None:
        program.use_a_stream(128 * MIB)
        program.runtime.deviceSynchronize()
        heir = program.make_stream()
        before = program.calls()["unmap"]
        blocks = [program.take(size, heir) for size in (3 * MIB, 160 * MIB)]
        assert program.calls()["unmap"] == before
        program.free(*blocks)
        program.destroy_stream(heir)
