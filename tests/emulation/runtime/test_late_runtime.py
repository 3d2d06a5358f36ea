"""The calls of the runtime with the late schedule: which work each call does."""

from __future__ import annotations

import ctypes
import functools
import gc
import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda._runtime.protocol import (
    EVENT_DISABLE_TIMING,
    EVENT_INTERPROCESS,
    EVENT_RECORD_EXTERNAL,
    EVENT_WAIT_EXTERNAL,
    MEMCPY_DEVICE_TO_HOST,
    MEMCPY_HOST_TO_DEVICE,
    STREAM_DEFAULT,
    STREAM_NON_BLOCKING,
    STREAM_PER_THREAD,
)
from tcuda.emulation.runtime.late_runtime import LateRuntime
from tcuda.emulation.runtime.schedule import MOST_PENDING

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

pytestmark = pytest.mark.emulated

LATER = 10**9


@pytest.fixture
def r() -> LateRuntime:
    """A runtime with two new devices."""
    return LateRuntime(devices=2, memory=64 << 20)


@pytest.fixture
def done() -> list[str]:
    return []


@pytest.fixture
def launch(r: LateRuntime, done: list[str]) -> Callable[[str, int], None]:
    """Launch work on a stream that appends its name to ``done``."""
    return lambda name, stream: r.launch(stream, lambda: done.append(name), 0)


def new_stream(r: LateRuntime, flags: int = STREAM_NON_BLOCKING) -> int:
    return r.streamCreateWithPriority(flags, 0)


def recorded(r: LateRuntime, stream: int) -> int:
    event = r.eventCreateWithFlags(0)
    r.eventRecord(event, stream)
    return event


def byte_at(ptr: int) -> int:
    return ctypes.c_ubyte.from_address(ptr).value


def test_the_default_stream_waits_once_for_the_work_of_each_blocking_stream(
    r: LateRuntime, launch: Callable[[str, int], None], done: list[str]
) -> None:
    for number in range(20):
        launch(str(number), new_stream(r, STREAM_DEFAULT))
    default = r.devices[0].default
    launch("first", 0)
    assert default.last is not None
    assert len(default.last.before) == 20
    launch("second", 0)
    assert len(default.last.before) == 1
    r.streamSynchronize(0)
    assert done[-2:] == ["first", "second"]
    assert len(done) == 22


def test_a_stream_does_its_own_work_only(r: LateRuntime, launch: Callable[[str, int], None], done: list[str]) -> None:
    a, b = new_stream(r), new_stream(r)
    launch("a", a)
    launch("b", b)
    assert done == []
    r.streamSynchronize(a)
    assert done == ["a"]
    r.deviceSynchronize()
    assert done == ["a", "b"]


def test_a_device_does_its_own_work_only(r: LateRuntime, launch: Callable[[str, int], None], done: list[str]) -> None:
    launch("here", 0)
    r.setDevice(1)
    launch("there", 0)
    r.deviceSynchronize()
    assert done == ["there"]
    r.setDevice(0)
    r.deviceSynchronize()
    assert done == ["there", "here"]


def test_an_event_stands_for_the_work_before_its_record(
    r: LateRuntime, launch: Callable[[str, int], None], done: list[str]
) -> None:
    a, b = new_stream(r), new_stream(r)
    launch("before", a)
    event = recorded(r, a)
    launch("after", a)
    r.streamWaitEvent(b, event)
    launch("b", b)
    r.streamSynchronize(b)
    assert done == ["before", "b"]
    r.eventSynchronize(recorded(r, a))
    assert done == ["before", "b", "after"]


def test_a_query_does_the_work_that_it_finds_complete(
    r: LateRuntime, launch: Callable[[str, int], None], done: list[str]
) -> None:
    stream = new_stream(r)
    launch("a", stream)
    event = recorded(r, stream)
    r.sleep(1_000_000, stream)
    launch("b", stream)
    r.clock.advance(100_000)
    assert r.streamQuery(stream) == Status.NOT_READY
    assert done == []
    assert r.eventQuery(event) == Status.SUCCESS
    assert done == ["a"]
    r.clock.advance(LATER)
    assert r.streamQuery(stream) == Status.SUCCESS
    assert done == ["a", "b"]


def test_an_elapsed_time_is_that_of_complete_events(
    r: LateRuntime, launch: Callable[[str, int], None], done: list[str]
) -> None:
    first = recorded(r, 0)
    launch("a", 0)
    second = recorded(r, 0)
    r.clock.advance(LATER)
    assert r.eventElapsedTime(first, second) > 0
    assert done == ["a"]


@pytest.mark.parametrize("flags", [STREAM_DEFAULT, STREAM_NON_BLOCKING])
def test_the_default_stream_waits_for_blocking_streams_and_they_for_it(
    r: LateRuntime, launch: Callable[[str, int], None], done: list[str], flags: int
) -> None:
    stream = new_stream(r, flags)
    launch("stream", stream)
    launch("default", 0)
    launch("later", stream)
    r.streamSynchronize(stream)
    ordered = flags == STREAM_DEFAULT
    assert done == (["stream", "default", "later"] if ordered else ["stream", "later"])
    r.streamSynchronize(0)
    assert done.count("default") == 1


def test_the_work_of_a_destroyed_stream_goes_on(
    r: LateRuntime, launch: Callable[[str, int], None], done: list[str]
) -> None:
    for name in ("a", "b"):
        stream = new_stream(r, STREAM_DEFAULT)
        launch(name, stream)
        r.streamDestroy(stream)
    launch("default", 0)
    r.streamSynchronize(0)
    assert sorted(done[:2]) == ["a", "b"]
    assert done[2] == "default"


def test_the_stream_of_the_thread_blocks(r: LateRuntime, launch: Callable[[str, int], None], done: list[str]) -> None:
    launch("thread", STREAM_PER_THREAD)
    launch("default", 0)
    r.streamSynchronize(0)
    assert done == ["thread", "default"]


def test_pageable_memory_is_read_by_the_call_and_page_locked_memory_later(r: LateRuntime) -> None:
    host = np.full(512, 1, np.uint8)
    for locked in (False, True):
        ptr = r.malloc(512)
        if locked:
            r.hostRegister(host.ctypes.data, 512, 0)
        host[:] = 1
        r.memcpyAsync(ptr, host.ctypes.data, 512, MEMCPY_HOST_TO_DEVICE, 0)
        host[:] = 2
        r.streamSynchronize(0)
        assert byte_at(ptr) == byte_at(ptr + 511) == (2 if locked else 1)
    r.hostUnregister(host.ctypes.data)


def test_much_pageable_memory_does_all_work(done: list[str]) -> None:
    r = LateRuntime(1, 1 << 30)
    host, ptr = np.zeros(100 << 20, np.uint8), r.malloc(100 << 20)
    r.launch(0, lambda: done.append("old"), 0)
    for _ in range(2):
        r.memcpyAsync(ptr, host.ctypes.data, host.nbytes, MEMCPY_HOST_TO_DEVICE, 0)
        assert done == []
    r.memcpyAsync(ptr, host.ctypes.data, host.nbytes, MEMCPY_HOST_TO_DEVICE, 0)
    assert done == ["old"]
    assert len(r.schedule) == 1


def test_rows_of_pageable_memory_are_read_by_the_call(r: LateRuntime) -> None:
    host = np.arange(64, dtype=np.uint8)
    ptr = r.malloc(512)
    r.memcpy2DAsync(ptr, 32, host.ctypes.data, 16, 8, 4, MEMCPY_HOST_TO_DEVICE, 0)
    host[:] = 0
    r.streamSynchronize(0)
    assert [byte_at(ptr + 32 * row + 7) for row in range(4)] == [7, 23, 39, 55]


def test_a_copy_to_pageable_memory_waits_and_one_to_page_locked_memory_does_not(r: LateRuntime) -> None:
    ptr, host = r.malloc(512), np.zeros(512, np.uint8)
    r.memsetAsync(ptr, 7, 512, 0)
    r.memcpyAsync(host.ctypes.data, ptr, 512, MEMCPY_DEVICE_TO_HOST, 0)
    assert host.tolist() == [7] * 512
    r.hostRegister(host.ctypes.data, 512, 0)
    r.memsetAsync(ptr, 8, 512, 0)
    r.memcpyAsync(host.ctypes.data, ptr, 512, MEMCPY_DEVICE_TO_HOST, 0)
    assert host.tolist() == [7] * 512
    r.hostUnregister(host.ctypes.data)  # the program may free the memory now
    assert host.tolist() == [8] * 512


def test_no_copy_to_pageable_memory_is_pending_after_an_exception(r: LateRuntime) -> None:
    ptr, host = r.malloc(512), np.zeros(512, np.uint8)

    def fail() -> None:
        raise InterruptedError  # as a signal handler does while the call waits

    r.launch(0, fail, 0)
    with pytest.raises(InterruptedError):
        r.memcpyAsync(host.ctypes.data, ptr, 512, MEMCPY_DEVICE_TO_HOST, 0)
    assert len(r.schedule) == 0  # the program may free the memory


def test_freed_memory_is_free_when_the_pending_work_is_done(r: LateRuntime, done: list[str]) -> None:
    stream, ptr = new_stream(r), r.malloc(32 << 20)
    r.memsetAsync(ptr, 3, 32 << 20, 0)
    r.launch(stream, lambda: done.append(str(byte_at(ptr))), 0)
    r.free(ptr)
    assert done == ["0"], "nothing orders the two streams"
    assert len(r.schedule) == 0
    assert r.devices[0].memory.kept == 0
    with pytest.raises(AcceleratorError) as raised:
        r.free(ptr)
    assert raised.value.error_code == Status.INVALID_VALUE


def test_memory_that_the_allocator_frees_stays_accessible(r: LateRuntime, done: list[str]) -> None:
    memory = r.devices[0].memory
    ptr = memory.allocate(32 << 20)
    r.memsetAsync(ptr, 3, 32 << 20, 0)
    r.launch(0, lambda: done.append(str(byte_at(ptr))), 0)
    assert memory.release(ptr)
    assert memory.used == 0
    assert memory.kept == 32 << 20
    r.launch(0, lambda: done.append("next"), 0)
    assert done == []
    r.deviceSynchronize()
    assert done == ["3", "next"]
    r.launch(0, lambda: None, 0)
    assert memory.kept == 0


def test_much_memory_that_the_allocator_frees_does_all_work(r: LateRuntime, done: list[str]) -> None:
    r = LateRuntime(1, 2 << 30)
    memory = r.devices[0].memory
    r.launch(0, lambda: done.append("old"), 0)
    for _ in range(2):
        assert memory.release(memory.allocate(200 << 20))
    r.launch(0, lambda: done.append("new"), 0)
    assert done == ["old"]
    assert memory.kept == 0


def test_an_error_of_work_is_raised_once_by_the_call_that_waits(r: LateRuntime, done: list[str]) -> None:
    def fail() -> None:
        raise AcceleratorError(Status.ILLEGAL_ADDRESS, "kernel")

    r.launch(0, fail, 0)
    r.launch(0, lambda: done.append("later"), 0)
    with pytest.raises(AcceleratorError) as raised:
        r.streamSynchronize(0)
    assert raised.value.error_code == Status.ILLEGAL_ADDRESS
    assert done == []
    r.streamSynchronize(0)
    assert done == ["later"]


def test_a_query_returns_the_status_of_failed_work(r: LateRuntime) -> None:
    def fail() -> None:
        raise AcceleratorError(Status.ILLEGAL_ADDRESS, "kernel")

    r.launch(0, fail, 0)
    r.clock.advance(LATER)
    assert r.streamQuery(0) == Status.ILLEGAL_ADDRESS
    assert r.streamQuery(0) == Status.SUCCESS


@pytest.mark.parametrize("entry", ["query", "query_stream", "synchronize", "synchronize_stream", "synchronize_device"])
def test_the_allocator_does_work_and_leaves_the_error_to_the_program(
    r: LateRuntime, done: list[str], entry: str
) -> None:
    def fail() -> None:
        raise ValueError("late")

    streams = r._parts.driver_streams
    stream = new_stream(r)
    r.launch(stream, fail, 0)
    r.launch(stream, lambda: done.append("after"), 0)
    event = streams.record(0, stream)
    if entry.startswith("query"):
        assert getattr(streams, entry)(0, event if entry == "query" else stream) == Status.NOT_READY
        assert done == []
        r.clock.advance(LATER)
    assert getattr(streams, entry)(0, stream if entry.endswith("stream") else event) == Status.SUCCESS
    assert done == ["after"]
    assert streams.destroy_event(0, event) == Status.SUCCESS
    with pytest.raises(ValueError, match="late"):
        r.streamSynchronize(stream)
    r.streamSynchronize(stream)


def test_a_program_that_never_waits_does_its_oldest_work(r: LateRuntime, done: list[str]) -> None:
    for place in range(MOST_PENDING + 5):
        r.launch(0, lambda place=place: done.append(str(place)), 0)
    assert done == ["0", "1", "2", "3", "4"]
    r.deviceSynchronize()
    assert done == [str(place) for place in range(MOST_PENDING + 5)]


def test_done_work_is_not_kept(r: LateRuntime) -> None:
    class Memory:
        pass

    before = len([each for each in gc.get_objects() if isinstance(each, Memory)])
    stream = new_stream(r)
    for _ in range(100):
        r.launch(stream, functools.partial(id, Memory()), 0)
        recorded(r, stream)
    r.streamSynchronize(stream)
    assert len(r.schedule) == 0
    gc.collect()
    assert len([each for each in gc.get_objects() if isinstance(each, Memory)]) == before


def captured(r: LateRuntime, work: Callable[[int], None]) -> int:
    stream = new_stream(r)
    r.streamBeginCapture(stream, 2)
    work(stream)
    return r.graphInstantiate(r.streamEndCapture(stream), 0)


def test_launches_of_a_graph_are_late_and_in_order(
    r: LateRuntime, launch: Callable[[str, int], None], done: list[str]
) -> None:
    graph = captured(r, lambda stream: launch("node", stream))
    a, b = new_stream(r), new_stream(r)
    launch("before", a)
    r.graphLaunch(graph, a)
    r.graphLaunch(graph, b)
    assert done == []
    r.streamSynchronize(b)
    assert done == ["before", "node", "node"]


def test_the_nodes_of_two_graphs_are_mixed_with_some_seed() -> None:
    orders = []
    for seed in range(1, 9):
        r, done = LateRuntime(devices=1, memory=64 << 20, seed=seed), list[str]()

        def nodes(stream: int, name: str, r: LateRuntime = r, done: list[str] = done) -> None:
            for number in range(3):
                r.launch(stream, functools.partial(done.append, f"{name}{number}"), 0)

        for name in "ab":
            r.graphLaunch(captured(r, functools.partial(nodes, name=name)), new_stream(r))
        r.deviceSynchronize()
        for name in "ab":
            assert [each for each in done if each[0] == name] == [f"{name}{number}" for number in range(3)]
        orders.append("".join(each[0] for each in done))
    assert any(order not in ("aaabbb", "bbbaaa") for order in orders)
    assert {order[0] for order in orders} == {"a", "b"}


def test_an_event_in_a_graph_needs_only_the_nodes_before_it(
    r: LateRuntime, launch: Callable[[str, int], None], done: list[str]
) -> None:
    event = r.eventCreateWithFlags(0)

    def work(stream: int) -> None:
        launch("before", stream)
        r.eventRecordWithFlags(event, stream, EVENT_RECORD_EXTERNAL)
        launch("behind", stream)

    r.graphLaunch(captured(r, work), new_stream(r))
    r.eventSynchronize(event)
    assert done == ["before"]
    r.deviceSynchronize()
    assert done == ["before", "behind"]


def test_an_error_of_work_that_is_done_early_is_raised_by_the_next_wait() -> None:
    r = LateRuntime(devices=1, memory=64 << 20, seed=1)

    def fail() -> None:
        raise AcceleratorError(Status.ILLEGAL_ADDRESS, "kernel")

    streams = [new_stream(r) for _ in range(20)]
    for stream in streams:
        r.launch(stream, fail, 0)
    early = len(streams) - len(r.schedule)
    assert early > 0
    for _ in range(early):
        with pytest.raises(AcceleratorError):
            r._work.wait(())
    r._work.wait(())


def test_each_launch_of_a_graph_has_its_own_preparation(r: LateRuntime, done: list[str]) -> None:
    state: list[str] = []
    graph = captured(r, lambda stream: r.launch(stream, lambda: done.append(state[-1]), 0))
    for name in ("first", "second"):
        r.prepareLaunch(graph, r, lambda name=name: state.append(name))
        r.graphLaunch(graph, 0)
    r.graphLaunch(graph, 0)
    r.streamSynchronize(0)
    assert done == ["first", "second", "second"]


def test_external_events_of_a_graph_order_its_launches(
    r: LateRuntime, launch: Callable[[str, int], None], done: list[str]
) -> None:
    begin, end = (r.eventCreateWithFlags(0) for _ in range(2))
    side, other = new_stream(r), new_stream(r)

    def work(stream: int) -> None:
        r.streamWaitEvent(stream, begin, EVENT_WAIT_EXTERNAL)
        launch("node", stream)
        r.eventRecordWithFlags(end, stream, EVENT_RECORD_EXTERNAL)

    graph = captured(r, work)
    launch("before", side)
    r.eventRecord(begin, side)
    r.graphLaunch(graph, new_stream(r))
    r.streamWaitEvent(other, end)
    launch("after", other)
    r.streamSynchronize(other)
    assert done == ["before", "node", "after"]


def test_a_destroyed_graph_has_done_its_launches(
    r: LateRuntime, launch: Callable[[str, int], None], done: list[str]
) -> None:
    graph = captured(r, lambda stream: launch("node", stream))
    r.graphLaunch(graph, 0)
    r.graphExecDestroy(graph)
    assert done == ["node"]


def test_an_event_of_several_processes_is_recorded_after_the_work(
    r: LateRuntime, launch: Callable[[str, int], None], done: list[str]
) -> None:
    event = r.eventCreateWithFlags(EVENT_DISABLE_TIMING | EVENT_INTERPROCESS)
    launch("a", 0)
    r.eventRecord(event, 0)
    assert done == ["a"]


def test_work_that_meets_other_ranks_is_done_by_its_call(
    r: LateRuntime, launch: Callable[[str, int], None], done: list[str]
) -> None:
    a, b, other = new_stream(r), new_stream(r), new_stream(r)
    for name, stream in (("a", a), ("b", b), ("other", other)):
        launch(name, stream)
    r.launchTogether(
        [(0, a), (0, b)], lambda: done.append("meet"), 1000, name="meet", addresses=(), nbytes=0, meets=True
    )
    assert done == ["b", "a", "meet"]


def test_work_of_several_devices_is_work_of_each(r: LateRuntime, done: list[str]) -> None:
    for device in (0, 1):
        r.setDevice(device)
        r.launchTogether([(0, 0), (1, 0)], lambda: done.append("sum"), 1000, name="sum", addresses=(), nbytes=0)
        assert len(done) == device
        r.deviceSynchronize()
        assert len(done) == device + 1
    r.setDevice(0)


def test_a_graph_that_meets_other_ranks_is_done_by_its_launch_in_the_order_of_the_capture(
    r: LateRuntime, done: list[str]
) -> None:
    side = new_stream(r)

    def work(stream: int) -> None:
        event = recorded(r, stream)
        r.streamWaitEvent(side, event)
        for name, handle in (("first", stream), ("second", side)):
            r.launchTogether(
                [(0, handle)],
                lambda name=name: done.append(name),
                1000,
                name=name,
                addresses=(),
                nbytes=0,
                meets=True,
            )
        r.streamWaitEvent(stream, recorded(r, side))

    graph = captured(r, work)
    r.launch(0, lambda: done.append("before"), 0)
    r.graphLaunch(graph, 0)
    assert done == ["before", "first", "second"]


def test_fresh_memory_is_poisoned_after_the_work_of_its_earlier_owner(r: LateRuntime, done: list[str]) -> None:
    ptr = r.malloc(512)
    r.memsetAsync(ptr, 1, 512, 0)
    r.launch(0, lambda: done.append(str(byte_at(ptr))), 0)
    r.poison(ptr, 512, 0xFF, 0)
    r.deviceSynchronize()
    assert done == ["1"]
    assert byte_at(ptr) == 0xFF
    r.poison(ptr, 512, 0xFE, 0)
    assert byte_at(ptr) == 0xFE, "at once, because the stream is idle"


def test_a_signal_handler_cannot_wait_for_the_work_that_it_interrupts(r: LateRuntime) -> None:
    r.launch(0, lambda: r.streamSynchronize(0), 0)
    with pytest.raises(RuntimeError, match=r"Wait outside of the handler\."):
        r.streamSynchronize(0)
    r.streamSynchronize(0)


def test_a_forked_child_does_not_do_the_work_of_its_parent(r: LateRuntime) -> None:
    ptr = r.malloc(512)
    shared: npt.NDArray[np.uint8] = np.ctypeslib.as_array((ctypes.c_ubyte * 512).from_address(ptr))
    r.memsetAsync(ptr, 5, 512, 0)
    child = os.fork()
    if child == 0:
        os._exit(len(r.schedule))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert shared[0] == 0
    r.deviceSynchronize()
    assert shared[0] == 5


def test_other_processes_get_the_same_schedule() -> None:
    assert LateRuntime(1, 1 << 20, seed=7).environment()["TCUDA_EMULATED_SCHEDULE"] == "late:7"
