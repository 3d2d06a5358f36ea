"""One event behind all work of a device shows that the device has done the replays of released graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from support.core import for_tests
from tcuda import _core
from tcuda._backend import backend_of
from tcuda._base.statuses import Status
from tcuda._runtime.protocol import CAPTURE_RELAXED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda._runtime.protocol import Runtime

MIB = 1 << 20
LONG = 400_000_000
NON_BLOCKING = 1

pytestmark = pytest.mark.alone


def fail(*_: object, **__: object) -> NoReturn:
    raise MemoryError


class Program:
    """A ledger with a stream, on a driver that counts its calls. Each graph holds one block, and is not launched."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.driver = for_tests.FaultyDriver(runtime.memoryDriver())
        self.ledger = _core.Ledger(self.driver, runtime.getDeviceCount(), _core.Settings(), fail, fail)
        self.stream = runtime.streamCreateWithPriority(NON_BLOCKING, 0)
        self.ledger.stream_created(0, self.stream)
        self.live: list[int] = []

    def begin(self, pool: tuple[int, int]) -> int:
        expected = self.ledger.expect_capture()
        self.runtime.streamBeginCapture(self.stream, CAPTURE_RELAXED)
        capture = self.ledger.begin_capture(pool, 0, self.stream)
        expected.end()
        return capture

    def end(self, capture: int) -> None:
        self.runtime.graphDestroy(self.runtime.streamEndCapture(self.stream))
        self.ledger.end_capture(capture)

    def graph(self) -> tuple[tuple[int, int], list[int]]:
        """Capture, and return the pool and the block that the graph holds. The block is freed; the pool has memory."""
        pool = (0, self.ledger.next_pool())
        block = self.ledger.allocate(0, 4 * MIB, 0)
        capture = self.begin(pool)
        assert self.ledger.free(self.ledger.allocate(0, 4 * MIB, self.stream))
        held = self.ledger.hold([block], capture)
        self.end(capture)
        assert self.ledger.free(block)
        return pool, held

    def release(self, graph: tuple[tuple[int, int], list[int]]) -> None:
        self.ledger.release_graph(*graph, True)

    def keep_busy(self) -> None:
        backend_of(self.runtime).sleep(LONG, self.stream)

    def poll(self) -> None:
        """Let an allocation look at the event."""
        assert self.ledger.free(self.ledger.allocate(0, 1, 0))

    def records(self) -> int:
        return self.driver.successes("record_device")

    def kept(self, graph: tuple[tuple[int, int], list[int]]) -> tuple[int, int]:
        """Return the bytes of the pool of a graph, and the bytes that are held."""
        segments, _ = self.ledger.snapshot(graph[0], False)
        return sum(s["total_size"] for s in segments), self.stat("active_bytes")

    def stat(self, key: str) -> int:
        return self.ledger.statistics(0)[f"{key}.all.current"]


@pytest.fixture
def program(runtime: Runtime) -> Iterator[Program]:
    backend_of(runtime).sleep(10, 0)
    runtime.deviceSynchronize()
    made = Program(runtime)
    yield made
    runtime.deviceSynchronize()
    made.ledger.empty_cache(0)
    assert made.stat("active_bytes") == made.stat("reserved_bytes") == 0
    made.ledger.stream_about_to_be_destroyed(0, made.stream)
    runtime.streamDestroy(made.stream)


def test_the_device_is_not_waited_for(program: Program) -> None:
    graph = program.graph()
    kept = program.kept(graph)
    program.keep_busy()
    program.release(graph)
    assert program.driver.successes("synchronize_device") == 0
    assert program.kept(graph) == kept
    program.poll()
    assert program.kept(graph) == kept
    program.runtime.deviceSynchronize()
    program.poll()
    assert program.kept(graph) == (0, 0)
    assert program.driver.successes("synchronize_device") == 0


def test_graphs_that_are_released_meanwhile_share_an_event(program: Program) -> None:
    graphs = [program.graph() for _ in range(20)]
    program.keep_busy()
    for graph in graphs:
        program.release(graph)
    assert program.records() == 1
    program.runtime.deviceSynchronize()
    program.poll()  # the event of the first graph is complete; the others get one
    program.runtime.deviceSynchronize()
    program.poll()
    assert program.records() == 2
    assert {program.kept(graph) for graph in graphs} == {(0, 0)}


def test_no_event_is_recorded_from_the_expectation_of_a_capture_to_its_end(program: Program) -> None:
    first, second, third = (program.graph() for _ in range(3))
    expected = program.ledger.expect_capture()
    program.release(first)
    assert program.records() == 0
    expected.end()
    pool = (0, program.ledger.next_pool())
    capture = program.begin(pool)
    program.release(second)
    program.poll()
    assert program.records() == 0
    assert program.kept(first)[0] == program.kept(second)[0] > 0
    program.end(capture)
    assert program.records() == 1
    program.runtime.deviceSynchronize()
    program.poll()
    assert program.kept(first)[0] == program.kept(second)[0] == 0
    program.release(third)
    program.ledger.release_graph(pool, [], False)


def test_a_foreign_capture_is_left_alone(program: Program) -> None:
    """A capture that began without a word to the ledger."""
    first, second = program.graph(), program.graph()
    program.runtime.streamBeginCapture(program.stream, CAPTURE_RELAXED)
    program.release(first)
    assert program.records() == 0
    program.runtime.graphDestroy(program.runtime.streamEndCapture(program.stream))
    program.release(second)
    assert program.records() == 1
    program.runtime.deviceSynchronize()
    program.poll()
    assert program.kept(first) == program.kept(second) == (0, 0)


@pytest.mark.parametrize("entry", ["record_device", "query", "unmap", "capture_of"])
def test_a_call_that_fails_is_made_again(program: Program, entry: str) -> None:
    first, second = program.graph(), program.graph()
    program.runtime.deviceSynchronize()
    program.driver.fail(entry, 0, Status.UNKNOWN)
    program.release(first)
    program.runtime.deviceSynchronize()
    program.release(second)
    for _ in range(2):
        program.runtime.deviceSynchronize()
        program.poll()
    assert program.driver.failed
    program.ledger.empty_cache(0)
    assert program.kept(first) == program.kept(second) == (0, 0)


def test_a_new_capture_gets_no_memory_of_a_released_pool(program: Program) -> None:
    pool, held = program.graph()
    before, _ = program.ledger.snapshot(pool, False)
    program.keep_busy()
    program.release((pool, held))
    capture = program.begin(pool)
    address = program.ledger.allocate(0, 4 * MIB, program.stream)
    program.end(capture)
    assert not any(s["address"] <= address < s["address"] + s["total_size"] for s in before)
    assert program.ledger.pool_uses(0, pool) == 1
    assert program.ledger.free(address)
    program.release((pool, []))
    program.runtime.deviceSynchronize()
    program.poll()
    program.runtime.deviceSynchronize()
    program.poll()
    assert program.kept((pool, [])) == (0, 0)


def test_a_pool_that_something_else_uses_keeps_its_memory(program: Program) -> None:
    pool = (0, program.ledger.next_pool())
    for device in range(program.runtime.getDeviceCount()):
        program.ledger.create_pool(device, pool, None, True, False)
    capture = program.begin(pool)
    assert program.ledger.free(program.ledger.allocate(0, 4 * MIB, program.stream))
    program.end(capture)
    program.release((pool, []))
    program.runtime.deviceSynchronize()
    program.poll()
    assert program.kept((pool, []))[0] > 0
    program.keep_busy()
    for device in range(program.runtime.getDeviceCount()):
        program.ledger.release_pool(device, pool)
    assert program.kept((pool, []))[0] > 0
    assert program.driver.successes("synchronize_device") == 0
    program.runtime.deviceSynchronize()
    program.poll()
    assert program.kept((pool, []))[0] == 0


def test_a_lack_of_memory_waits_for_the_device(program: Program) -> None:
    graph = program.graph()
    program.keep_busy()
    program.release(graph)
    limit: Any = program.stat("reserved_bytes") / program.runtime.memGetInfo()[1]
    program.ledger.set_memory_fraction(0, limit)
    address = program.ledger.allocate(0, 24 * MIB, 0)  # more than is free
    assert program.kept(graph)[0] == 0
    assert program.ledger.free(address)


class TestTheSparePool:
    """The memory of one small released graph, which the next capture takes."""

    SEGMENT = 2 * MIB

    def capture(self, program: Program, pool: tuple[int, int] | None = None, size: int = 1000) -> tuple[int, int]:
        """Capture an allocation of ``size`` bytes, and return the pool."""
        used = pool or (0, program.ledger.next_pool())
        capture = program.begin(used)
        assert program.ledger.free(program.ledger.allocate(0, size, program.stream))
        program.end(capture)
        return used

    def release(self, program: Program, pool: tuple[int, int]) -> None:
        """Release a graph that was replayed, after its replays."""
        program.ledger.release_graph(pool, [], True)
        program.ledger.empty_cache(0, keep_spare=True)

    def taken(self, program: Program) -> int:
        """Return how often memory was taken from the driver."""
        return program.driver.successes("create") + program.driver.successes("allocate")

    def test_the_next_capture_takes_no_memory_from_the_driver(self, program: Program) -> None:
        first = self.capture(program)
        self.release(program, first)
        taken = self.taken(program)
        for _ in range(3):
            pool = self.capture(program)
            assert program.ledger.snapshot(pool, False)[0][0]["total_size"] == self.SEGMENT
            self.release(program, pool)
        assert self.taken(program) == taken
        assert program.stat("reserved_bytes") == self.SEGMENT

    def test_the_pool_may_get_its_own_number_again(self, program: Program) -> None:
        first = self.capture(program)
        self.release(program, first)
        taken = self.taken(program)
        assert self.capture(program, first) == first
        assert program.ledger.pool_uses(0, first) == 1
        assert self.taken(program) == taken
        self.release(program, first)

    def test_only_one_pool_is_kept(self, program: Program) -> None:
        pools = [self.capture(program) for _ in range(3)]
        for pool in pools:
            self.release(program, pool)
        assert program.stat("reserved_bytes") == self.SEGMENT

    def test_a_larger_pool_goes_back(self, program: Program) -> None:
        self.release(program, self.capture(program, size=4 * MIB))
        assert program.stat("reserved_bytes") == 0

    def test_the_pool_goes_back_with_the_cache(self, program: Program) -> None:
        self.release(program, self.capture(program))
        assert program.stat("reserved_bytes") == self.SEGMENT
        program.ledger.empty_cache(0)
        assert program.stat("reserved_bytes") == 0

    def test_the_pool_goes_back_if_memory_is_short(self, program: Program) -> None:
        self.release(program, self.capture(program))
        _, total = program.runtime.memGetInfo()
        program.ledger.set_memory_fraction(0, 3 * MIB / total)
        assert program.ledger.free(program.ledger.allocate(0, 2 * MIB, program.stream))
        assert program.stat("reserved_bytes") == 2 * MIB

    def test_the_memory_of_a_running_graph_is_not_taken(self, program: Program) -> None:
        first = self.capture(program)
        program.keep_busy()
        program.ledger.release_graph(first, [], True)
        second = self.capture(program)
        assert program.stat("reserved_bytes") == 2 * self.SEGMENT
        self.release(program, second)

    def test_a_pool_of_a_destroyed_stream_is_not_taken(self, program: Program, runtime: Runtime) -> None:
        self.release(program, self.capture(program))
        program.ledger.stream_about_to_be_destroyed(0, program.stream)
        runtime.streamDestroy(program.stream)
        program.stream = runtime.streamCreateWithPriority(NON_BLOCKING, 0)
        program.ledger.stream_created(0, program.stream)
        second = self.capture(program)
        self.release(program, second)
        assert program.stat("reserved_bytes") <= self.SEGMENT
