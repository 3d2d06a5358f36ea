"""Every entry of the driver table fails once at each of its calls, in a program that calls all entries."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from support.core import for_tests
from support.folders import REPOSITORY
from tcuda import _core
from tcuda._backend import backend_of
from tcuda._base.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.fixture_types import OutputOf
    from tcuda._runtime.protocol import Runtime

ENTRIES = (
    *(
        "enter",
        "allocate",
        "free",
        "memory_info",
        "granularity",
        "reserve",
        "release",
        "create",
        "destroy",
        "map",
        "unmap",
    ),
    *("record", "query", "synchronize", "destroy_event", "query_stream", "synchronize_stream", "synchronize_device"),
    "capture_of",
    "fill",
)
MIB = 1 << 20
ROOM = 192 * MIB
LONG = 20_000_000

pytestmark = pytest.mark.alone


class Refused(Exception):
    pass


def fail_memory(**facts: Any) -> NoReturn:
    raise Refused("memory")


def fail_driver(status: int, call: str) -> NoReturn:
    raise Refused(status)


class Program:
    """A program that repeats a call which the driver refused, and goes on."""

    def __init__(self, runtime: Runtime, driver: _core.Driver, *, expandable: bool) -> None:
        self.runtime = runtime
        self.device = runtime.getDevice()
        options = _core.Settings()
        options.expandable_segments = expandable
        self.ledger = _core.Ledger(driver, runtime.getDeviceCount(), options, fail_memory, fail_driver)
        _, self.total = runtime.memGetInfo()
        self.limit(ROOM)
        self.refusals: list[object] = []
        self.live: list[int] = []
        self.windows = 0  # how often free memory got other addresses

    def attempt(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Refused as error:
            self.refusals.append(error.args[0])
            self.check()
            return call()  # the second attempt must succeed

    def allocate(self, size: int, stream: int = 0) -> int:
        address: int = self.attempt(lambda: self.ledger.allocate(self.device, size, stream))
        self.live.append(address)
        return address

    def free(self, address: int) -> None:
        assert self.ledger.free(address)
        self.live.remove(address)

    def run(self) -> None:
        """Do everything that calls the driver."""
        ledger, device = self.ledger, self.device
        side, doomed = (self.runtime.streamCreateWithPriority(1, 0) for _ in range(2))
        for stream in (side, doomed):
            ledger.stream_created(device, stream)
        small, large, huge = self.allocate(1000), self.allocate(3 * MIB), self.allocate(40 * MIB)
        self.free(large)
        self.allocate(30 * MIB, side)
        backend_of(self.runtime).sleep(LONG, side)
        assert ledger.record_stream(device, small, side)
        self.free(small)
        self.allocate(2000)
        self.free(huge)
        pool = (0, ledger.next_pool())
        ledger.create_pool(device, pool, None, True, False)
        ledger.begin_pool(device, pool)
        try:
            in_pool = self.allocate(5 * MIB)
        finally:
            ledger.end_pool(device, pool)
        self.allocate(25 * MIB, doomed)
        self.free(self.live[-1])
        ledger.stream_about_to_be_destroyed(device, doomed)
        self.runtime.streamDestroy(doomed)
        self.allocate(45 * MIB)
        self.free(in_pool)
        self.attempt(lambda: ledger.release_pool(device, pool) if ledger.pool_uses(device, pool) else None)
        with pytest.raises(Refused, match="memory"):
            self.attempt(lambda: self.ledger.allocate(device, ROOM + MIB, 0))
        self.runtime.streamSynchronize(side)
        self.attempt(lambda: ledger.empty_cache(device))
        self.use_memory_that_lies_apart(side)
        self.attempt(lambda: ledger.empty_cache(device))
        self.use_memory_that_lies_apart(side)
        for address in list(self.live):
            self.free(address)
        self.attempt(lambda: ledger.empty_cache(device))
        ledger.stream_about_to_be_destroyed(device, side)
        self.runtime.streamDestroy(side)

    def use_memory_that_lies_apart(self, stream: int) -> None:
        """Allocate twice what no free block can hold, but two free blocks together."""
        apart = [self.allocate(12 * MIB, stream) for _ in range(4)]
        for address in apart[::2]:
            self.free(address)
        room = 10 if self.ledger.caching else 20  # without a cache, no memory is free
        self.limit(self.ledger.statistics(self.device)["reserved_bytes.all.current"] + room * MIB)
        for _ in range(2):
            before = self.ledger.statistics(self.device)
            self.free(self.allocate(20 * MIB, stream))
            after = self.ledger.statistics(self.device)
            grown = after["reserved_bytes.all.current"] != before["reserved_bytes.all.current"]
            self.windows += not grown and after["num_device_alloc"] > before["num_device_alloc"]
        self.limit(ROOM)
        for address in apart[1::2]:
            self.free(address)

    def limit(self, size: int) -> None:
        self.ledger.set_memory_fraction(self.device, size / self.total)

    def check(self) -> None:
        """Check that the statistics, the snapshot and the program agree on the live memory."""
        statistics = self.ledger.statistics(self.device)
        segments = [each for each in self.ledger.snapshot(None, False)[0] if each["device"] == self.device]
        blocks = [block for segment in segments for block in segment["blocks"]]
        allocated = [block for block in blocks if block["state"] == "active_allocated"]
        assert sorted(block["address"] for block in allocated) == sorted(self.live)
        assert statistics["allocated_bytes.all.current"] == sum(block["size"] for block in allocated)
        assert statistics["reserved_bytes.all.current"] == sum(segment["total_size"] for segment in segments)
        assert statistics["segment.all.current"] == len(segments)
        for segment in segments:
            assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]


@pytest.mark.parametrize("expandable", [True, False], ids=["expandable", "segments"])
@pytest.mark.parametrize("status", [Status.MEMORY_ALLOCATION, 719], ids=["memory", "launch"])
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_failure_leaves_no_memory_and_no_wrong_statistics(
    runtime: Runtime, entry: str, status: int, expandable: bool
) -> None:
    runtime.deviceSynchronize()
    free, _ = runtime.memGetInfo()
    for calls in itertools.count():
        driver = for_tests.FaultyDriver(runtime.memoryDriver())
        driver.fail(entry, calls, status)
        program = Program(runtime, driver, expandable=expandable)
        if entry == "fill":
            program.ledger.set_poison(0xCB)
        program.run()
        program.ledger.empty_cache(program.device)  # the driver may have refused the last give-back without an error
        program.check()
        statistics = program.ledger.statistics(program.device)
        assert statistics["reserved_bytes.all.current"] == 0
        assert statistics["active.all.current"] == 0
        assert set(program.refusals) <= {"memory", int(status)}
        failed, windows = driver.failed, program.windows
        del program, driver
        if not failed:
            assert windows == (2 if expandable else 0)
            break
        assert calls < 200, "the program does not end"
    runtime.deviceSynchronize()
    assert runtime.memGetInfo()[0] >= free - (2 * MIB if runtime.name == "cuda" else 0)


@pytest.mark.long
@pytest.mark.parametrize("expandable", [True, False], ids=["expandable", "segments"])
@pytest.mark.parametrize("caching", [True, False], ids=["caching", "uncached"])
def test_the_driver_may_wait_for_functions_that_need_python(
    output_of: OutputOf, caching: bool, expandable: bool
) -> None:
    """On CUDA, cuMemFree() waits for host functions in streams, and a host function may need Python's lock."""
    program = f"""
import faulthandler, sys, threading
from tcuda._core import for_tests
from tcuda._process.lazy import cuda, init
from test_driver_faults import Program
faulthandler.dump_traceback_later(60, exit=True)  # ends a deadlock
init()
driver = for_tests.FaultyDriver(cuda.memoryDriver())
program = Program(cuda, driver, expandable={expandable})
program.ledger.caching = {caching}
calls, done = [], threading.Event()
driver.meanwhile(lambda: calls.append(sum(range(1000))))
def look():  # takes the lock of the ledger
    while not done.is_set():
        program.ledger.statistics(program.device)
other = threading.Thread(target=look)
other.start()
program.run()
for size in (1000, 3 << 20):
    program.ledger.free_segment(program.device, program.ledger.allocate_segment(program.device, size))
done.set()
other.join()
program.check()
del program
print(len(calls) > 10)
"""
    assert (
        output_of(program, PYTHONPATH=os.pathsep.join(map(str, (Path(__file__).parent, REPOSITORY / "tests"))))
        == "True"
    )


def test_memory_that_could_not_be_unmapped_is_given_back_later(runtime: Runtime) -> None:
    breaks_unmap = for_tests.FaultyDriver(runtime.memoryDriver())
    breaks_map = for_tests.FaultyDriver(breaks_unmap)
    breaks_unmap.fail("unmap", 0, 719)
    breaks_map.fail("map", 1, 719)
    program = Program(runtime, breaks_map, expandable=True)

    with pytest.raises(Refused, match="719"):  # the second map() and the unmap() of the first mapping fail
        program.ledger.allocate(program.device, 150 * MIB, 0)
    assert breaks_map.failed
    assert breaks_unmap.failed
    program.check()

    program.ledger.empty_cache(program.device)
    assert breaks_unmap.successes("create") == 2
    assert breaks_unmap.successes("destroy") == 2
    program.check()


def test_a_process_without_addresses_asks_for_a_range_when_one_has_been_given_back(runtime: Runtime) -> None:
    driver = for_tests.FaultyDriver(runtime.memoryDriver())
    program = Program(runtime, driver, expandable=True)
    streams = [runtime.streamCreateWithPriority(1, 0) for _ in range(8)]
    in_ranges = [program.allocate(3 * MIB, stream) for stream in streams[:3]]
    driver.fail("reserve", 0, Status.MEMORY_ALLOCATION)
    in_segments = [program.allocate(3 * MIB, stream) for stream in streams[3:5]]
    assert driver.failed
    assert (driver.successes("reserve"), driver.successes("allocate")) == (3, 2)

    for address in in_ranges:
        program.free(address)
    runtime.deviceSynchronize()
    program.ledger.empty_cache(program.device)
    assert driver.successes("release") == 1
    kept = [program.allocate(3 * MIB, stream) for stream in streams[5:7]]  # two ranges are kept for the next streams
    assert (driver.successes("reserve"), driver.successes("allocate")) == (3, 2)
    last = program.allocate(3 * MIB, streams[7])
    assert (driver.successes("reserve"), driver.successes("allocate")) == (4, 2)
    for address in (*in_segments, *kept, last):
        program.free(address)
    for stream in streams:
        runtime.streamDestroy(stream)
