"""The emulated runtime tells a race detector of streams, events, synchronisations, copies, graphs and memory."""

from __future__ import annotations

import ast
import os
from typing import Any

import numpy as np
import pytest

from support.emulated_streams import new_stream
from support.folders import REPOSITORY
from support.race_recorder import BOTH, READ, WRITE, RaceRecorder, span
from support.threads import in_thread
from tcuda import AcceleratorError
from tcuda._runtime.protocol import (
    CAPTURE_RELAXED,
    EVENT_DISABLE_TIMING,
    EVENT_INTERPROCESS,
    EVENT_RECORD_EXTERNAL,
    EVENT_WAIT_EXTERNAL,
    MEMCPY_DEFAULT,
    MEMCPY_DEVICE_TO_DEVICE,
    MEMCPY_DEVICE_TO_HOST,
    MEMCPY_HOST_TO_DEVICE,
    STREAM_DEFAULT,
    STREAM_PER_THREAD,
)
from tcuda.emulation.runtime import EmulatedRuntime
from tcuda.emulation.runtime.process_files import ProcessFile
from tcuda.emulation.runtime.watch import RaceWatcher
from tcuda.emulation.runtime.watcher import Watcher

pytestmark = pytest.mark.emulated


@pytest.fixture
def recorder(r: EmulatedRuntime) -> RaceRecorder:
    """A recorder that watches."""
    made = RaceRecorder()
    watch(r, made)
    return made


def watch(r: EmulatedRuntime, recorder: Any) -> None:
    r.watchRaces(recorder)


def test_the_calls_know_no_detector() -> None:
    """Require that calls report to the watcher, and that the watch alone asks whether there is a detector."""
    asking = []
    for path in (REPOSITORY / "tcuda" / "emulation" / "runtime").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr == "detector" and path.name != "watch.py":
                asking.append(f"{path.name}:{node.lineno}")
    assert not asking


def test_a_detector_hears_all_that_a_watcher_may_hear() -> None:
    """Require a method of the detector's watcher for each method of the null watcher."""
    assert vars(Watcher).keys() - {"__module__", "__doc__"} <= vars(RaceWatcher).keys()


# Streams and events


def test_streams_that_exist_are_announced(r: EmulatedRuntime) -> None:
    blocking, other = new_stream(r, STREAM_DEFAULT), new_stream(r)
    recorder = RaceRecorder()
    watch(r, recorder)
    assert recorder.take() == [("stream_created", 0, blocking, True), ("stream_created", 0, other, False)]


def test_streams_are_announced_when_they_are_created_and_destroyed(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    r.setDevice(1)
    stream = new_stream(r)
    r.streamDestroy(stream)
    assert recorder.take() == [("stream_created", 1, stream, False), ("stream_destroyed", 1, stream)]


def test_nothing_is_told_after_the_end_of_the_watch(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    r.watchRaces(None)
    new_stream(r)
    r.memsetAsync(r.malloc(8), 0, 8, 0)
    r.deviceSynchronize()
    assert recorder.take() == []


def test_events_order_streams(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    stream, event = new_stream(r), r.eventCreateWithFlags(0)
    recorder.take()
    r.streamWaitEvent(stream, event)
    assert recorder.take() == [], "the event has no record"
    r.eventRecord(event, 0)
    r.streamWaitEvent(stream, event)
    r.eventSynchronize(event)
    r.eventDestroy(event)
    assert recorder.take() == [
        ("event_recorded", event, 0, 0),
        ("event_waited", event, 0, stream),
        ("event_synchronized", event),
        ("event_destroyed", event),
    ]


def test_a_query_counts_when_it_succeeds(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    stream, event = new_stream(r), r.eventCreateWithFlags(0)
    r.sleep(1_000_000, stream)
    r.eventRecord(event, stream)
    recorder.take()
    assert r.eventQuery(event) == r.streamQuery(stream) == 600
    assert recorder.take() == []
    r.clock.advance(1_000_000)
    assert r.eventQuery(event) == r.streamQuery(stream) == 0
    assert recorder.take() == [("event_synchronized", event), ("stream_synchronized", 0, stream)]


def test_an_elapsed_time_says_that_both_events_are_complete(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    first, last = r.eventCreateWithFlags(0), r.eventCreateWithFlags(0)
    for event in (first, last):
        r.eventRecord(event, 0)
    recorder.take()
    r.eventElapsedTime(first, last)
    assert recorder.take() == [("event_synchronized", first), ("event_synchronized", last)]


def test_synchronisations_are_told(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    r.setDevice(1)
    r.streamSynchronize(0)
    r.deviceSynchronize()
    assert recorder.take() == [("stream_synchronized", 1, 0), ("device_synchronized", 1)]


def test_per_thread_streams_are_told_in_the_thread(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    ptr = r.malloc(8)
    recorder.take()

    def work() -> None:
        r.memsetAsync(ptr, 0, 8, STREAM_PER_THREAD)

    in_thread(work)
    assert recorder.take() == [("work", 0, STREAM_PER_THREAD, "memset", [span(ptr, 8, WRITE, "a")])]


# Copies


def test_a_copy_within_a_device_reads_and_writes(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    first, second = r.malloc(64), r.malloc(64)
    stream = new_stream(r)
    recorder.take()
    r.memcpyAsync(second, first + 8, 16, MEMCPY_DEFAULT, stream)
    assert recorder.take() == [
        ("work", 0, stream, "memcpy", [span(second, 16, WRITE, "dst"), span(first + 8, 16, READ, "src")])
    ]


def test_a_copy_of_rows_has_gaps(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    first, second = r.malloc(64), r.malloc(64)
    r.memcpy2DAsync(second, 8, first, 16, 4, 3, MEMCPY_DEVICE_TO_DEVICE, 0)
    assert recorder.operations() == [
        ("memcpy", [(second, 1, (3, 4), (8, 1), WRITE, "dst"), (first, 1, (3, 4), (16, 1), READ, "src")])
    ]


def test_a_copy_of_nothing_has_no_access(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    r.memcpyAsync(r.malloc(8), r.malloc(8), 0, MEMCPY_DEFAULT, 0)
    r.memsetAsync(r.malloc(8), 0, 0, 0)
    assert [accesses for _, accesses in recorder.operations()] == [[], []]


def test_a_copy_between_devices_is_work_of_its_stream(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    here = r.malloc(8)
    r.setDevice(1)
    there = r.malloc(8)
    stream = new_stream(r)
    recorder.take()
    accesses = [span(there, 8, WRITE, "dst"), span(here, 8, READ, "src")]
    r.memcpyPeerAsync(there, 1, here, 0, 8, stream)
    assert recorder.take() == [("work", 1, stream, "memcpy", accesses)]
    r.memcpyPeerAsync(there, 1, here, 0, 8, 0)
    assert recorder.take() == [("work_together", [(0, 0), (1, 0)], "memcpy", accesses)]
    r.memcpyAsync(there, here, 8, MEMCPY_DEFAULT, 0)
    assert recorder.take() == [("work_together", [(0, 0), (1, 0)], "memcpy", accesses)]


def test_pageable_memory_is_accessed_by_the_host(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    host, ptr, stream = np.zeros(8, np.uint8), r.malloc(8), new_stream(r)
    recorder.take()
    r.memcpyAsync(ptr, host.ctypes.data, 8, MEMCPY_HOST_TO_DEVICE, stream)
    assert recorder.take() == [("work", 0, stream, "memcpy", [span(ptr, 8, WRITE, "dst")])]
    r.memcpyAsync(host.ctypes.data, ptr, 8, MEMCPY_DEVICE_TO_HOST, stream)
    assert recorder.take() == [
        ("work", 0, stream, "memcpy", [span(ptr, 8, READ, "src")]),
        ("stream_synchronized", 0, stream),
    ]


def test_page_locked_memory_is_accessed_by_the_stream(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    host, ptr, stream = np.zeros(8, np.uint8), r.malloc(8), new_stream(r)
    address = host.ctypes.data
    recorder.take()
    r.hostRegister(address, 8, 0)
    r.memcpyAsync(ptr, address, 8, MEMCPY_HOST_TO_DEVICE, stream)
    r.memcpyAsync(address, ptr, 8, MEMCPY_DEVICE_TO_HOST, stream)
    r.hostUnregister(address)
    assert recorder.take() == [
        ("host_registered", address, 8),
        ("work", 0, stream, "memcpy", [span(ptr, 8, WRITE, "dst"), span(address, 8, READ, "src")]),
        ("work", 0, stream, "memcpy", [span(address, 8, WRITE, "dst"), span(ptr, 8, READ, "src")]),
        ("memory_unmapped", address, 8),
        ("host_unregistered", address),
    ]


def test_a_blocking_copy_synchronises_unless_both_sides_are_on_devices(
    r: EmulatedRuntime, recorder: RaceRecorder
) -> None:
    host, first, second = np.zeros(8, np.uint8), r.malloc(8), r.malloc(8)
    for dst, src in ((first, host.ctypes.data), (host.ctypes.data, first), (second, first)):
        r.memcpy(dst, src, 8, MEMCPY_DEFAULT)
    calls = [call[0] for call in recorder.take() if not call[0].startswith("memory")]
    assert calls == ["work", "stream_synchronized", "work", "stream_synchronized", "work"]


# Memory


def test_the_detector_knows_memory_of_the_driver(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    ptr = r.malloc(24)
    r.free(ptr)
    r.free(0)
    assert recorder.take() == [
        ("memory_allocated", ptr, 24, 0, 0),
        ("memory_freed", ptr),
        ("memory_unmapped", ptr, 24),
        ("device_synchronized", 0),
    ]


def test_a_free_in_the_order_of_a_stream_is_a_write(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    stream = new_stream(r)
    recorder.take()
    ptr = r.mallocAsync(24, stream)
    r.freeAsync(ptr, stream)
    assert recorder.take() == [
        ("memory_allocated", ptr, 24, 0, stream),
        ("memory_freed", ptr),
        ("work", 0, stream, "cudaFreeAsync", [span(ptr, 24, WRITE, "ptr")]),
        ("memory_unmapped", ptr, 24),
    ]


def test_the_events_of_the_allocator_are_told(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    driver, stream = r._parts.driver_streams, new_stream(r)
    r.sleep(1_000_000, stream)
    recorder.take()
    event = driver.record(0, stream)
    assert driver.query(0, event) == 600
    assert recorder.take() == [("event_recorded", event, 0, stream)]
    r.clock.advance(1_000_000)
    assert driver.query(0, event) == driver.query_stream(0, stream) == driver.synchronize_stream(0, stream) == 0
    assert driver.synchronize_device(0, 0) == driver.destroy_event(0, event) == 0
    assert recorder.take() == [
        ("event_synchronized", event),
        ("stream_synchronized", 0, stream),
        ("stream_synchronized", 0, stream),
        ("device_synchronized", 0),
        ("event_destroyed", event),
    ]


def test_two_events_of_the_allocator_at_the_same_time_are_different(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    driver, streams = (
        r._parts.driver_streams,
        [new_stream(r), new_stream(r)],
    )
    assert len({driver.record(0, stream) for stream in streams}) == 2


def test_an_event_of_the_allocator_from_before_the_watch_stays_valid(r: EmulatedRuntime) -> None:
    driver, stream = r._parts.driver_streams, new_stream(r)
    r.sleep(1_000_000, stream)
    before = driver.record(0, stream)
    watch(r, recorder := RaceRecorder())
    during = driver.record(0, stream)
    r.watchRaces(None)
    recorder.take()
    assert driver.query(0, before) == driver.query(0, during) == 600
    r.clock.advance(1_000_000)
    assert driver.query(0, before) == driver.query(0, during) == 0
    assert recorder.take() == []


def test_memory_of_another_process_is_forgotten_at_the_last_close(
    r: EmulatedRuntime, recorder: RaceRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, other = r.malloc(24), EmulatedRuntime(devices=1, memory=1 << 20)
    handle = other.ipcGetMemHandle(other.malloc(24))
    monkeypatch.setattr(ProcessFile, "open", lambda name: os.dup(other.devices[0].memory.descriptor()))
    opened = r.ipcOpenMemHandle(handle)
    assert r.ipcOpenMemHandle(handle) == opened != here
    recorder.take()
    r.ipcCloseMemHandle(opened)
    assert recorder.take() == []
    r.ipcCloseMemHandle(opened)
    [(name, address, size)] = recorder.take()
    assert (name, address) == ("memory_unmapped", opened)
    assert size >= 24


# Launches and graphs


def test_a_kernel_is_told_when_its_work_is_done(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    seen: list[int] = []
    access = span(4096, 8, WRITE, "out")
    r.launch(0, lambda: seen.append(1), 8, name="add", accesses=lambda: [access] * len(seen))
    assert recorder.take() == [("work", 0, 0, "add", [access])]


def test_a_kernel_that_fails_is_not_told(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    with pytest.raises(ZeroDivisionError):
        r.launch(0, lambda: 1 // 0, 8, accesses=[span(4096, 8, WRITE, "out")])
    with pytest.raises(AcceleratorError):
        r.launch(77, lambda: None, 8, accesses=[span(4096, 8, WRITE, "out")])
    assert recorder.take() == []


def test_a_collective_is_one_operation(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    access = span(4096, 8, BOTH, "recvbuff")
    streams = [(0, 0), (1, 0)]
    r.launchTogether(streams, lambda: None, 5, name="all_reduce", addresses=(), nbytes=8, accesses=[access])
    assert recorder.take() == [("work_together", streams, "all_reduce", [access])]


def test_a_graph_has_the_accesses_and_the_stacks_of_its_capture(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    first, second, ptr = new_stream(r), new_stream(r), r.malloc(16)
    event, last = r.eventCreateWithFlags(0), r.eventCreateWithFlags(0)
    recorder.take()
    access = span(ptr, 8, READ, "x")
    r.streamBeginCapture(first, CAPTURE_RELAXED)
    r.memsetAsync(ptr, 0, 16, first)
    r.eventRecord(event, first)
    r.streamWaitEvent(second, event)
    r.launch(second, lambda: None, 8, name="read", accesses=[access])
    r.eventRecord(last, second)
    r.launch(first, lambda: None, 8, name="also", accesses=lambda: [access])
    r.streamWaitEvent(first, last)
    r.sleep(1, first)
    executable = r.graphInstantiate(r.streamEndCapture(first), 0)
    assert recorder.take() == [], "no operation has run"
    nodes = [
        ("memset", [span(ptr, 16, WRITE, "a")], [], 1),
        ("read", [access], [0], 2),
        ("also", (), [0], 3),
        ("tcuda_spin", (), [1, 2], 4),
    ]
    r.graphLaunch(executable, first)
    r.graphLaunch(executable, 0)
    measured = ("set_node", nodes, 2, [access])  # the accesses are a function, so each launch asks for them
    assert recorder.take() == [
        ("graph", nodes),
        measured,
        ("launch", nodes, 0, first),
        measured,
        ("launch", nodes, 0, 0),
    ]


def test_a_graph_that_was_captured_before_the_watch_has_its_accesses(r: EmulatedRuntime) -> None:
    stream, ptr = new_stream(r), r.malloc(16)
    r.streamBeginCapture(stream, CAPTURE_RELAXED)
    r.memsetAsync(ptr, 0, 16, stream)
    r.memcpyAsync(ptr, ptr + 8, 4, MEMCPY_DEFAULT, stream)
    executable = r.graphInstantiate(r.streamEndCapture(stream), 0)
    watch(r, recorder := RaceRecorder())
    r.graphLaunch(executable, 0)
    nodes = [
        ("memset", [span(ptr, 16, WRITE, "a")], [], 0),
        ("memcpy", [span(ptr, 4, WRITE, "dst"), span(ptr + 8, 4, READ, "src")], [0], 0),
    ]
    assert recorder.take()[1:] == [("graph", nodes), ("launch", nodes, 0, 0)]


def test_another_detector_learns_a_graph_anew(r: EmulatedRuntime, recorder: RaceRecorder) -> None:
    stream = new_stream(r)
    r.streamBeginCapture(stream, CAPTURE_RELAXED)
    r.sleep(1, stream)
    executable = r.graphInstantiate(r.streamEndCapture(stream), 0)
    r.graphLaunch(executable, 0)
    watch(r, other := RaceRecorder())
    r.graphLaunch(executable, 0)
    assert [call[0] for call in other.take()] == ["stream_created", "graph", "launch"]


def test_a_launch_waits_for_external_events_and_records_external_events(
    r: EmulatedRuntime, recorder: RaceRecorder
) -> None:
    stream, waited, recorded = new_stream(r), r.eventCreateWithFlags(0), r.eventCreateWithFlags(0)
    r.eventRecord(waited, 0)
    r.streamBeginCapture(stream, CAPTURE_RELAXED)
    r.streamWaitEvent(stream, waited, EVENT_WAIT_EXTERNAL)
    r.eventRecordWithFlags(recorded, stream, EVENT_RECORD_EXTERNAL)
    executable = r.graphInstantiate(r.streamEndCapture(stream), 0)
    recorder.take()
    r.graphLaunch(executable, stream)
    assert [call for call in recorder.take() if call[0] != "graph"] == [
        ("event_waited", waited, 0, stream),
        ("launch", [("event wait", (), [], 0), ("event record", (), [0], 0)], 0, stream),
        ("event_recorded", recorded, 0, stream),
    ]


def test_a_node_that_waits_for_an_event_of_the_same_launch_comes_after_its_record(
    r: EmulatedRuntime, recorder: RaceRecorder
) -> None:
    first, second, fork, join = new_stream(r), new_stream(r), *(r.eventCreateWithFlags(0) for _ in range(2))
    event = r.eventCreateWithFlags(0)
    r.eventRecord(event, 0)
    r.streamBeginCapture(first, CAPTURE_RELAXED)
    r.eventRecord(fork, first)
    r.streamWaitEvent(second, fork)
    r.eventRecordWithFlags(event, first, EVENT_RECORD_EXTERNAL)
    r.streamWaitEvent(second, event, EVENT_WAIT_EXTERNAL)
    r.eventRecord(join, second)
    r.streamWaitEvent(first, join)
    executable = r.graphInstantiate(r.streamEndCapture(first), 0)
    r.graphLaunch(executable, 0)
    [nodes] = [call[1] for call in recorder.take() if call[0] == "graph"]
    assert [dependencies for _, _, dependencies, _ in nodes] == [[], [0]]


# Other processes


def test_a_shared_event_that_this_process_has_recorded_is_an_event_like_any_other(
    r: EmulatedRuntime, recorder: RaceRecorder
) -> None:
    event, stream = r.eventCreateWithFlags(EVENT_INTERPROCESS | EVENT_DISABLE_TIMING), new_stream(r)
    r.ipcGetEventHandle(event)
    r.eventRecord(event, 0)
    recorder.take()
    r.streamWaitEvent(stream, event)
    assert recorder.take() == [("event_waited", event, 0, stream)]


def test_a_record_of_another_process_stands_for_all_shared_events_of_this_process(
    r: EmulatedRuntime, recorder: RaceRecorder
) -> None:
    flags = EVENT_INTERPROCESS | EVENT_DISABLE_TIMING
    mine, theirs, stream = r.eventCreateWithFlags(flags), r.eventCreateWithFlags(flags), new_stream(r)
    for event in (mine, theirs):
        r.ipcGetEventHandle(event)
    r.eventRecord(mine, stream)
    slot: Any = r._machine.events.by_handle[theirs].slot  # type: ignore[attr-defined]
    slot.write(0)  # as another process does
    [others] = {call[3] for call in recorder.take() if call[:2] == ("event_waited", mine)}
    r.streamWaitEvent(0, theirs)
    (name, met, *place), waited = recorder.take()
    assert (name, place) == ("event_recorded", [0, others])
    assert waited == ("event_waited", met, 0, 0)
    r.eventSynchronize(theirs)
    assert recorder.take()[-1] == ("event_synchronized", met)
