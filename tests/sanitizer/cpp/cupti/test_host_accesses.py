"""Accesses of the host to page-locked memory, while a copy that CUPTI has told of may still use the memory."""

from __future__ import annotations

import ctypes
import linecache
import mmap
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.core import for_tests
from support.cupti import CONTEXT, EVENT, MAIN, MEMORY, NOT_READY, SIDE, Cupti, Watched
from support.pages import is_protected
from support.threads import in_threads
from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(not for_tests.watches_pages(), reason="this machine does not tell reads from writes")

PAGE = mmap.PAGESIZE
SIZE = 4 * PAGE


class Buffer:
    """Whole pages of the host's memory, which the stand-in calls page-locked from some of their addresses on."""

    def __init__(self, cupti: Cupti) -> None:
        self.cupti = cupti
        self.array = np.frombuffer(mmap.mmap(-1, SIZE), np.uint8)
        self.address = self.array.ctypes.data
        for offset in range(0, SIZE, PAGE // 2):
            cupti.stub.stub_set_memory(self.address + offset, 1)

    def download(self, stream: int = MAIN, size: int = SIZE, offset: int = 0) -> None:
        self.cupti.copy(stream, self.address + offset, MEMORY, size)

    def upload(self, stream: int = MAIN, size: int = SIZE) -> None:
        self.cupti.copy(stream, MEMORY, self.address, size)

    def allocate(self, size: int) -> None:
        """Let the driver allocate the first bytes."""
        pointer = ctypes.c_uint64(self.address)
        self.cupti.call("cuMemHostAlloc", "PNI", ctypes.addressof(pointer), size, 0)


@pytest.fixture
def buffer(cupti: Cupti, watched: Watched) -> Iterator[Buffer]:
    made = Buffer(cupti)
    yield made
    watched.watch.end()
    made.array[:] = 0  # no page is watched any more


def found(watched: Watched) -> list[tuple[str, str]]:
    return [(race.kind, race.current.operation) for race in watched.found()]


def test_a_read_during_a_copy_to_the_host_is_a_race_at_its_line(buffer: Buffer, watched: Watched) -> None:
    buffer.download()
    assert buffer.array[100] == 0  # read
    (race,) = watched.found()
    assert (race.kind, race.current.operation, race.current.host) == ("read after write", "read by the host", True)
    assert (race.previous.operation, race.previous.stream) == ("memcpy", MAIN)
    assert race.overlap == (buffer.address + 100, 1)
    frame = race.current.stack[0]
    assert linecache.getline(frame["filename"], frame["line"]).endswith("# read\n")


def test_a_write_during_a_copy_from_the_host_is_a_race(buffer: Buffer, watched: Watched) -> None:
    buffer.upload()
    assert buffer.array[7] == 0  # both only read
    assert found(watched) == []
    buffer.array[7] = 1
    assert found(watched) == [("write after read", "write by the host")]
    assert buffer.array[7] == 1


WAITS: dict[str, Callable[[Cupti], object]] = {
    "stream": lambda cupti: cupti.call("cuStreamSynchronize", "P", MAIN),
    "query of the stream": lambda cupti: cupti.call("cuStreamQuery", "P", MAIN),
    "event": lambda cupti: (cupti.record(MAIN), cupti.call("cuEventSynchronize", "P", EVENT)),
    "query of the event": lambda cupti: (cupti.record(MAIN), cupti.call("cuEventQuery", "P", EVENT)),
    "context": lambda cupti: cupti.call("cuCtxSynchronize", "P", 0),
    "stream that has waited": lambda cupti: (
        cupti.record(MAIN),
        cupti.wait(SIDE),
        cupti.call("cuStreamSynchronize", "P", SIDE),
    ),
}


@pytest.mark.parametrize("wait", sorted(WAITS))
def test_the_host_may_use_the_memory_after_a_wait(buffer: Buffer, watched: Watched, cupti: Cupti, wait: str) -> None:
    buffer.download()
    WAITS[wait](cupti)
    assert not is_protected(buffer.address)
    buffer.array[:] = 1
    assert found(watched) == []


NO_WAITS: dict[str, Callable[[Cupti], object]] = {
    "query that says no": lambda cupti: cupti.call("cuStreamQuery", "P", MAIN, status=NOT_READY),
    "event that is not complete": lambda cupti: (
        cupti.record(MAIN),
        cupti.call("cuEventQuery", "P", EVENT, status=NOT_READY),
    ),
    "another stream": lambda cupti: cupti.call("cuStreamSynchronize", "P", SIDE),
}


@pytest.mark.parametrize("wait", sorted(NO_WAITS))
def test_what_orders_nothing_does_not_help(buffer: Buffer, watched: Watched, cupti: Cupti, wait: str) -> None:
    buffer.download()
    NO_WAITS[wait](cupti)
    buffer.array[0] = 1
    assert found(watched) == [("write after write", "write by the host")]


def test_a_blocking_copy_is_complete(buffer: Buffer, watched: Watched, cupti: Cupti) -> None:
    cupti.call("cuMemcpyDtoH_v2", "QQN", buffer.address, MEMORY, SIZE)
    buffer.array[:] = 1
    assert found(watched) == []


def test_pageable_memory_is_not_protected(watched: Watched, cupti: Cupti) -> None:
    array = np.frombuffer(mmap.mmap(-1, SIZE), np.uint8)
    cupti.copy(MAIN, array.ctypes.data, MEMORY, SIZE)
    cupti.copy(MAIN, MEMORY, array.ctypes.data, SIZE)
    assert for_tests.ranges_in_use(watched.detector) == []
    array[:] = 1
    assert found(watched) == []


def test_one_number_in_a_page_of_its_own_is_watched(buffer: Buffer, watched: Watched) -> None:
    buffer.allocate(8)
    buffer.download(size=8)
    assert buffer.array[3] == 0
    assert found(watched) == [("read after write", "read by the host")]


def test_the_rest_of_a_page_stays_open_if_it_is_not_copied(buffer: Buffer, watched: Watched) -> None:
    buffer.allocate(PAGE)
    buffer.download(size=PAGE // 2)  # the program may use the other half
    assert not is_protected(buffer.address)
    buffer.array[PAGE // 2 : PAGE] = 1
    assert found(watched) == []
    buffer.download(size=PAGE // 2, offset=PAGE // 2)  # reaches the end, and shares the page with the first half
    assert len(for_tests.ranges_in_use(watched.detector)) == 2
    assert not is_protected(buffer.address)


def test_registered_memory_shares_its_last_page(buffer: Buffer, watched: Watched, cupti: Cupti) -> None:
    cupti.call("cuMemHostRegister_v2", "PNI", buffer.address, PAGE + 8, 0)
    buffer.download(size=PAGE + 8)
    buffer.array[PAGE + 8 :] = 1
    assert found(watched) == []
    buffer.array[0] = 1
    assert found(watched) == [("write after write", "write by the host")]


def test_an_access_in_a_call_of_the_driver_is_the_drivers(buffer: Buffer, watched: Watched, cupti: Cupti) -> None:
    buffer.download()
    cupti.call("cuStreamSynchronize", "P", SIDE, sides=1)
    buffer.array[:] = 1  # as the driver does that copies by the processor
    assert found(watched) == []
    cupti.call("cuStreamSynchronize", "P", SIDE, sides=2)
    buffer.download()
    buffer.array[:] = 1
    assert found(watched) == [("write after write", "write by the host")]


def test_a_call_that_the_subscription_saw_in_part_is_over(buffer: Buffer, watched: Watched, cupti: Cupti) -> None:
    cupti.call("cuStreamSynchronize", "P", SIDE, sides=1)
    watched.watch.end()
    again = Watched(cupti)
    buffer.download()
    buffer.array[:] = 1
    assert found(again) == [("write after write", "write by the host")]
    again.watch.end()


def test_another_thread_is_told_with_its_line(buffer: Buffer, watched: Watched) -> None:
    buffer.download()
    in_threads(lambda: buffer.array.fill(1), [()])
    (race,) = watched.found()
    assert race.current.operation == "write by the host"
    lines = [linecache.getline(frame["filename"], frame["line"]) for frame in race.current.stack]
    assert any("in_threads(lambda" in line for line in lines)


def host_function(cupti: Cupti, stream: int = MAIN, sides: int = 3) -> None:
    cupti.call("cuLaunchHostFunc", "PPP", stream, 0x1234, 0, sides=sides)


def write_value(cupti: Cupti, stream: int = MAIN, sides: int = 3) -> None:
    cupti.call("cuStreamWriteValue32_v2", "PQII", stream, 0x1234, 1, 0, sides=sides)


@pytest.mark.parametrize("tell", [host_function, write_value])
def test_a_stream_may_tell_the_host_that_the_copy_is_complete(
    buffer: Buffer, watched: Watched, cupti: Cupti, tell: Callable[..., None]
) -> None:
    buffer.download()
    tell(cupti, sides=1)
    assert not is_protected(buffer.address)  # the function may begin before the call returns
    tell(cupti, sides=2)
    buffer.array[:] = 1
    assert found(watched) == []


@pytest.mark.parametrize("tell", [host_function, write_value])
def test_another_stream_tells_nothing(
    buffer: Buffer, watched: Watched, cupti: Cupti, tell: Callable[..., None]
) -> None:
    buffer.download()
    tell(cupti, SIDE)
    buffer.array[:] = 1
    assert found(watched) == [("write after write", "write by the host")]


def wait_for_value(cupti: Cupti) -> None:
    cupti.call("cuStreamWaitValue32_v2", "PQII", MAIN, 0x1234, 1, 0)


@pytest.mark.parametrize("work", [host_function, wait_for_value])
def test_the_host_may_use_memory_of_work_that_waits_for_the_host(
    buffer: Buffer, watched: Watched, cupti: Cupti, work: Callable[..., None]
) -> None:
    work(cupti)
    buffer.download()
    cupti.record(MAIN)
    cupti.wait(SIDE)
    buffer.download(SIDE)
    assert not is_protected(buffer.address)
    cupti.call("cuStreamSynchronize", "P", SIDE)
    buffer.download()
    buffer.array[:] = 1
    assert found(watched) == [("write after write", "write by the host")]


def test_a_graph_may_call_the_host(buffer: Buffer, watched: Watched, cupti: Cupti) -> None:
    buffer.download()
    cupti.call("cuGraphLaunch", "PP", 0x77, MAIN, sides=1)  # a graph from before the watch
    assert not is_protected(buffer.address)


def test_a_node_that_calls_the_host_tells_of_the_nodes_before_it() -> None:
    detector: Any = _core.RaceDetector(print)
    array = np.frombuffer(mmap.mmap(-1, SIZE), np.uint8)
    begin = array.ctypes.data
    detector.host_registered(begin, SIZE)

    def copy(page: int) -> list[Any]:
        return [(begin + page * PAGE, 1, (PAGE,), (1,), 2, "")]

    nodes = [
        ("copy", copy(0), [], 0),
        ("host function", [], [0], 0),
        ("copy", copy(1), [1], 0),
        ("copy", copy(2), [], 0),
    ]
    graph = detector.graph(nodes)
    detector.launch(graph, 0, MAIN)
    assert for_tests.ranges_in_use(detector) == [(begin + 2 * PAGE, begin + 3 * PAGE, True)]


ENDS: dict[str, Callable[[Cupti, Watched, int], object]] = {
    "the memory is unlocked, and was locked before the watch": lambda cupti, watched, address: cupti.call(
        "cuMemHostUnregister", "P", address, sides=1
    ),
    "the allocator hands the memory out again": lambda cupti, watched, address: watched.detector.memory_unmapped(
        address + PAGE, 64
    ),
    "the context is destroyed": lambda cupti, watched, address: cupti.stub.stub_resource(2, CONTEXT),
    "the watch ends": lambda cupti, watched, address: watched.watch.end(),
}


@pytest.mark.parametrize("end", sorted(ENDS))
def test_the_protection_ends_when(buffer: Buffer, watched: Watched, cupti: Cupti, end: str) -> None:
    buffer.download()
    assert is_protected(buffer.address)
    ENDS[end](cupti, watched, buffer.address)
    assert not is_protected(buffer.address)
    buffer.array[:] = 1
    assert found(watched) == []


def test_the_same_copy_again_and_again_is_one_range(buffer: Buffer, watched: Watched) -> None:
    for _ in range(3):
        buffer.download()
        buffer.download(SIDE)
    assert for_tests.ranges_in_use(watched.detector) == 2 * [(buffer.address, buffer.address + SIZE, True)]
    watched.detector.device_synchronized(0)
    assert for_tests.ranges_in_use(watched.detector) == []


def test_more_copies_than_are_kept_open_the_oldest(buffer: Buffer, watched: Watched, cupti: Cupti) -> None:
    buffer.download()
    for stream in range(0x1000, 0x1000 + 16 * 1100, 16):
        cupti.stub.stub_set_stream(stream, CONTEXT, 1, 0)
        buffer.upload(stream)
    assert len(for_tests.ranges_in_use(watched.detector)) <= 1024
    assert buffer.array[0] == 0
    assert "read by the host" not in [race.current.operation for race in watched.found()]


def test_the_child_of_a_fork_may_use_the_memory(buffer: Buffer, watched: Watched) -> None:
    buffer.download()
    child = os.fork()
    if child == 0:
        try:
            buffer.array[:] = 1
            watched.detector.device_synchronized(0)
            buffer.download()
            buffer.array[:] = 2
            os._exit(for_tests.ranges_in_use(watched.detector) == [])
        finally:
            os._exit(9)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 1
    buffer.array[:] = 1
    assert found(watched) == [("write after write", "write by the host")]


def test_a_detector_that_is_dropped_protects_nothing(cupti: Cupti) -> None:
    detector: Any = _core.RaceDetector(print)
    array = np.frombuffer(mmap.mmap(-1, SIZE), np.uint8)
    detector.host_registered(array.ctypes.data, SIZE)
    detector.watch_host()
    detector.work(0, MAIN, "copy", [(array.ctypes.data, 1, (SIZE,), (1,), 2, "")])
    del detector
    assert not is_protected(array.ctypes.data)


def test_the_driver_may_use_protected_memory_while_it_copies(buffer: Buffer, watched: Watched, cupti: Cupti) -> None:
    # The driver may copy by the processor, in a thread of its own, where no handler could help.
    buffer.download()
    copy = "cuMemcpyAsync", "QQNP", MEMORY, buffer.address + PAGE, PAGE, SIDE
    cupti.call(*copy, sides=1)
    assert not is_protected(buffer.address)
    cupti.call(*copy, sides=2)
    assert is_protected(buffer.address)
    cupti.call(*copy, sides=1, status=1)
    cupti.call(*copy, sides=2, status=1)  # a copy that fails
    watched.found()
    buffer.array[:] = 1
    assert "write after write" in [race.kind for race in watched.found()]


def test_other_copies_keep_the_protection(buffer: Buffer, watched: Watched, cupti: Cupti) -> None:
    buffer.download()
    cupti.call("cuMemcpyAsync", "QQNP", MEMORY, MEMORY + 4096, 16, SIDE, sides=1)
    assert is_protected(buffer.address)
