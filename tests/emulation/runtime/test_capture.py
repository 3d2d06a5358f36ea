"""Graphs of the emulated runtime: the captured work, and the order and the time of that work in a launch."""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.emulated_streams import new_stream
from support.statuses import status_of
from tcuda import AcceleratorError
from tcuda._runtime.protocol import (
    CAPTURE_GLOBAL,
    CAPTURE_RELAXED,
    CAPTURE_STATUS_ACTIVE,
    CAPTURE_STATUS_INVALIDATED,
    CAPTURE_STATUS_NONE,
    CAPTURE_THREAD_LOCAL,
    EVENT_RECORD_EXTERNAL,
    EVENT_WAIT_EXTERNAL,
    GRAPH_DOT_VERBOSE,
    MEMCPY_DEVICE_TO_DEVICE,
    MEMCPY_DEVICE_TO_HOST,
    MEMCPY_HOST_TO_DEVICE,
    STREAM_DEFAULT,
    STREAM_NON_BLOCKING,
)
from tcuda.emulation.backend.backend import Backend
from tcuda.emulation.runtime import EmulatedRuntime, costs
from tcuda.emulation.runtime.clock import CALL

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


pytestmark = pytest.mark.emulated

MS = 1_000_000  # ns, and as many cycles
HOUR = 3_600_000 * MS
MODES = {"global": CAPTURE_GLOBAL, "thread local": CAPTURE_THREAD_LOCAL, "relaxed": CAPTURE_RELAXED}


def launch_on(r: EmulatedRuntime, stream: int, work: Callable[[], object], **options: Any) -> None:
    """Launch ``work`` as a kernel on ``stream``."""
    r.launch(stream, work, 0, **options)


def capture(r: EmulatedRuntime, stream: int, work: Callable[[], object] = lambda: None) -> int:
    """Return a graph that is captured from ``work``."""
    r.streamBeginCapture(stream, CAPTURE_RELAXED)
    work()
    return r.streamEndCapture(stream)


def executable(r: EmulatedRuntime, stream: int, work: Callable[[], object] = lambda: None) -> int:
    """Return an executable graph that is captured from ``work``."""
    graph = capture(r, stream, work)
    handle = r.graphInstantiate(graph, 0)
    r.graphDestroy(graph)
    return handle


def wait_for(r: EmulatedRuntime, stream: int, other: int) -> None:
    """Let ``stream`` wait for ``other``."""
    event = r.eventCreateWithFlags(0)
    r.eventRecord(event, other)
    r.streamWaitEvent(stream, event)
    r.eventDestroy(event)


class TestALaunch:
    def test_does_the_captured_work_every_time(self, r: EmulatedRuntime) -> None:
        stream, ran = new_stream(r), list[int]()
        graph = executable(r, stream, lambda: [launch_on(r, stream, functools.partial(ran.append, n)) for n in (1, 2)])
        assert ran == []
        r.graphLaunch(graph, stream)
        r.graphLaunch(graph, 0)
        assert ran == [1, 2, 1, 2]

    def test_copies_and_fills_memory(self, r: EmulatedRuntime) -> None:
        stream, host = new_stream(r), np.zeros(512, np.uint8)
        source, target, size = r.malloc(512), r.malloc(512), host.nbytes

        def work() -> None:
            r.memsetAsync(source, 7, 256, stream)
            r.memcpyAsync(target, source, size, MEMCPY_DEVICE_TO_DEVICE, stream)
            r.memcpyAsync(host.ctypes.data, target, size, MEMCPY_DEVICE_TO_HOST, stream)

        graph = executable(r, stream, work)
        for value in (3, 5):
            host[:] = value
            r.memcpy(source, host.ctypes.data, size, MEMCPY_HOST_TO_DEVICE)
            r.graphLaunch(graph, stream)
            assert host.tolist() == [7] * 256 + [value] * 256

    def test_copies_between_devices(self, r: EmulatedRuntime) -> None:
        stream, host = new_stream(r), np.full(512, 9, np.uint8)
        here = r.malloc(512)
        r.setDevice(1)
        there = r.malloc(512)
        r.memcpy(there, host.ctypes.data, 512, MEMCPY_HOST_TO_DEVICE)
        r.setDevice(0)
        graph = executable(r, stream, lambda: r.memcpyPeerAsync(here, 0, there, 1, 512, stream))
        host[:] = 0
        r.graphLaunch(graph, stream)
        r.memcpy(host.ctypes.data, here, 512, MEMCPY_DEVICE_TO_HOST)
        assert host.tolist() == [9] * 512

    def test_outlives_the_graph(self, r: EmulatedRuntime) -> None:
        stream, ran = new_stream(r), list[int]()
        graph = capture(r, stream, lambda: launch_on(r, stream, lambda: ran.append(1)))
        first, second = r.graphInstantiate(graph, 0), r.graphInstantiate(graph, 0)
        r.graphDestroy(graph)
        r.graphExecDestroy(first)
        r.graphLaunch(second, stream)
        assert ran == [1]
        assert status_of(lambda: r.graphLaunch(first, stream)) == 1

    def test_that_fails_takes_no_time(self, r: EmulatedRuntime) -> None:
        stream = new_stream(r)
        graph = executable(r, stream, lambda: launch_on(r, stream, lambda: 1 // 0))
        with pytest.raises(ZeroDivisionError):
            r.graphLaunch(graph, stream)
        assert r.streamQuery(stream) == 0

    def test_of_an_empty_graph_does_nothing(self, r: EmulatedRuntime) -> None:
        stream = new_stream(r)
        r.graphLaunch(executable(r, stream), stream)
        assert r.streamQuery(stream) == 0
        assert r.devices[0].activity.until(HOUR) == 0

    def test_goes_to_a_stream_of_another_device(self, r: EmulatedRuntime) -> None:
        stream, ran = new_stream(r), list[int]()
        graph = executable(r, stream, lambda: [r.sleep(MS, stream), launch_on(r, stream, lambda: ran.append(1))])
        r.setDevice(1)
        r.graphLaunch(graph, 0)
        assert ran == [1]
        other, used = (device.activity.until(HOUR) for device in r.devices[:2])
        assert other == 0
        assert used > MS


class TestTime:
    def elapsed(self, r: EmulatedRuntime, graph: int, stream: int) -> int:
        start = r.clock.now()
        r.graphLaunch(graph, stream)
        r.deviceSynchronize()
        return r.clock.now() - start - CALL

    def test_on_one_stream_adds_up(self, r: EmulatedRuntime) -> None:
        stream = new_stream(r)
        graph = executable(r, stream, lambda: [r.sleep(MS, stream), r.sleep(2 * MS, stream)])
        assert r.clock.now() == 0
        assert self.elapsed(r, graph, stream) == 3 * MS
        activity = r.devices[0].activity
        assert (activity.within(CALL, CALL + 3 * MS), activity.until(HOUR)) == (3 * MS, 3 * MS)

    def test_on_forked_streams_is_the_time_of_the_longest_path(self, r: EmulatedRuntime) -> None:
        stream, other, third = (new_stream(r) for _ in range(3))

        def work() -> None:
            r.sleep(MS, stream)
            wait_for(r, other, stream)
            wait_for(r, third, stream)
            r.sleep(2 * MS, other)
            r.sleep(5 * MS, third)
            r.sleep(MS, stream)
            wait_for(r, stream, other)
            r.sleep(10 * MS, stream)  # overlaps the work on the third stream, which joins later
            wait_for(r, stream, third)
            r.sleep(MS, stream)

        assert self.elapsed(r, executable(r, stream, work), stream) == (1 + 2 + 10 + 1) * MS

    def test_of_captured_kernels_follows_the_model(self, r: EmulatedRuntime) -> None:
        stream, ptr = new_stream(r), r.malloc(1 << 19)

        def work() -> None:
            launch_on(r, stream, lambda: None, flops=1 << 30)
            r.memsetAsync(ptr, 0, 1 << 19, stream)

        expected = costs.kernel(0, 1 << 30) + costs.kernel(1 << 19)
        assert self.elapsed(r, executable(r, stream, work), stream) == expected

    def test_begins_after_earlier_work_on_the_stream(self, r: EmulatedRuntime) -> None:
        stream = new_stream(r)
        graph = executable(r, stream, lambda: r.sleep(MS, stream))
        r.sleep(MS, stream)
        assert self.elapsed(r, graph, stream) == 2 * MS - CALL

    def test_of_two_launches_of_a_graph_does_not_overlap(self, r: EmulatedRuntime) -> None:
        stream, other = new_stream(r), new_stream(r)
        graph, same = (executable(r, stream, lambda: r.sleep(MS, stream)) for _ in range(2))
        r.graphLaunch(graph, other)
        assert self.elapsed(r, same, stream) == MS
        r.graphLaunch(graph, other)
        assert self.elapsed(r, graph, stream) == 2 * MS - CALL

    def test_of_external_events_is_set_by_each_launch(self, r: EmulatedRuntime) -> None:
        stream, other = new_stream(r), new_stream(r)
        start, end = r.eventCreateWithFlags(0), r.eventCreateWithFlags(0)

        def work() -> None:
            r.eventRecordWithFlags(start, stream, EVENT_RECORD_EXTERNAL)
            r.sleep(3 * MS, stream)
            r.eventRecordWithFlags(end, stream, EVENT_RECORD_EXTERNAL)

        graph = executable(r, stream, work)
        for _ in range(2):
            r.graphLaunch(graph, other)
            assert r.eventQuery(end) == 600
            r.eventSynchronize(end)
            assert r.eventElapsedTime(start, end) == 3.0
            assert r.streamQuery(other) == 0

    def test_includes_the_wait_for_an_external_event(self, r: EmulatedRuntime) -> None:
        stream, other, event = new_stream(r), new_stream(r), r.eventCreateWithFlags(0)

        def work() -> None:
            r.streamWaitEvent(stream, event, EVENT_WAIT_EXTERNAL)
            r.sleep(MS, stream)

        graph = executable(r, stream, work)
        assert self.elapsed(r, graph, stream) == MS  # the event was never recorded
        r.sleep(5 * MS, other)
        r.eventRecord(event, other)
        assert self.elapsed(r, graph, stream) == 6 * MS - 2 * CALL


class TestStatus:
    @pytest.mark.parametrize(
        "call",
        [
            lambda r, path: r.graphInstantiate(0x1234560, 0),
            lambda r, path: r.graphLaunch(0x1234560, 0),
            lambda r, path: r.graphExecDestroy(0x1234560),
            lambda r, path: r.graphContents(0x1234560),
            lambda r, path: r.graphDebugDotPrint(0x1234560, str(path), 0),
        ],
        ids=["instantiate", "launch", "destroy", "contents", "print"],
    )
    def test_of_an_unknown_handle(
        self, r: EmulatedRuntime, tmp_path: Path, call: Callable[[EmulatedRuntime, Path], object]
    ) -> None:
        assert status_of(lambda: call(r, tmp_path / "graph")) == 1
        assert not list(tmp_path.iterdir())

    def test_of_a_launch_on_a_stream_that_captures(self, r: EmulatedRuntime) -> None:
        stream, ran = new_stream(r), list[int]()
        graph = executable(r, stream, lambda: launch_on(r, stream, lambda: ran.append(1)))
        r.streamBeginCapture(stream, CAPTURE_RELAXED)
        assert status_of(lambda: r.graphLaunch(graph, stream)) == 900
        assert status_of(lambda: r.streamEndCapture(stream)) == 901
        assert ran == []

    @pytest.mark.parametrize("mode", MODES)
    def test_of_a_launch_beside_a_capture(self, r: EmulatedRuntime, mode: str) -> None:
        stream, other, ran = new_stream(r), new_stream(r), list[int]()
        graph = executable(r, stream, lambda: launch_on(r, stream, lambda: ran.append(1)))
        r.streamBeginCapture(stream, MODES[mode])
        r.graphLaunch(graph, other)
        r.graphLaunch(graph, 0)
        r.streamEndCapture(stream)
        assert ran == [1, 1]

    def test_of_a_launch_on_the_null_stream_beside_a_blocking_stream_that_captures(self, r: EmulatedRuntime) -> None:
        blocking, ran = new_stream(r, STREAM_DEFAULT), list[int]()
        graph = executable(r, blocking, lambda: launch_on(r, blocking, lambda: ran.append(1)))
        r.streamBeginCapture(blocking, CAPTURE_RELAXED)
        assert status_of(lambda: r.graphLaunch(graph, 0)) == 906
        assert status_of(lambda: r.streamEndCapture(blocking)) == 901
        assert ran == []

    def test_of_a_launcher_that_refuses(self, r: EmulatedRuntime) -> None:
        stream, blocking, ran = new_stream(r), new_stream(r, STREAM_DEFAULT), list[int]()
        graph = executable(r, stream, lambda: launch_on(r, stream, lambda: ran.append(1)))
        backend = Backend(r)
        launcher = backend.graph_launcher(graph)
        launch = launcher.launch
        assert not launcher.launched
        for capturing, current, status in ((stream, stream, 900), (blocking, 0, 906)):
            r.streamBeginCapture(capturing, CAPTURE_RELAXED)
            backend.enter_stream(types.SimpleNamespace(ptr=current, device_id=0))
            assert launch() == status
            backend.exit_stream()
            r.graphDestroy(r.streamEndCapture(capturing))
        assert ran == []
        assert launch() == 0
        assert ran == [1]
        r.graphExecDestroy(graph)
        assert launch() == 1

    def test_of_work_on_a_stream_whose_capture_is_invalidated(self, r: EmulatedRuntime) -> None:
        stream, ran = new_stream(r), list[int]()
        r.streamBeginCapture(stream, CAPTURE_RELAXED)
        assert r.streamQuery(stream) == 900
        assert status_of(lambda: launch_on(r, stream, lambda: ran.append(1))) == 901
        assert status_of(lambda: r.sleep(1, stream)) == 901
        assert status_of(lambda: r.streamEndCapture(stream)) == 901
        assert ran == []


class TestCaptureInfo:
    def test_tells_captures_apart(self, r: EmulatedRuntime) -> None:
        stream, other = new_stream(r), new_stream(r)
        assert r.streamGetCaptureInfo(stream) == (CAPTURE_STATUS_NONE, 0)
        numbers = []
        for _ in range(2):
            r.streamBeginCapture(stream, CAPTURE_RELAXED)
            wait_for(r, other, stream)
            status, number = r.streamGetCaptureInfo(stream)
            assert status == CAPTURE_STATUS_ACTIVE
            assert r.streamGetCaptureInfo(other) == (status, number)
            numbers.append(number)
            r.streamQuery(stream)
            assert r.streamGetCaptureInfo(other) == (CAPTURE_STATUS_INVALIDATED, number)
            assert status_of(lambda: r.streamEndCapture(stream)) == 901
        assert 0 < numbers[0] < numbers[1]

    @pytest.mark.parametrize("flags", [STREAM_DEFAULT, STREAM_NON_BLOCKING])
    def test_of_the_null_stream_depends_on_blocking_streams(self, r: EmulatedRuntime, flags: int) -> None:
        stream = new_stream(r, flags)
        r.streamBeginCapture(stream, CAPTURE_RELAXED)
        expected = 906 if flags == STREAM_DEFAULT else 0
        assert status_of(lambda: r.streamGetCaptureInfo(0)) == expected
        assert status_of(lambda: r.streamIsCapturing(0)) == expected
        r.setDevice(1)
        assert r.streamGetCaptureInfo(0) == (CAPTURE_STATUS_NONE, 0)
        r.streamEndCapture(stream)

    @pytest.mark.parametrize(("flags", "of_null"), [(STREAM_DEFAULT, 2**64 - 1), (STREAM_NON_BLOCKING, 0)])
    def test_has_the_number_that_the_allocator_reads(self, r: EmulatedRuntime, flags: int, of_null: int) -> None:
        stream, streams = (
            new_stream(r, flags),
            r._parts.driver_streams,
        )
        assert streams.capture_of(0, stream) == streams.capture_of(0, 0) == 0
        r.streamBeginCapture(stream, CAPTURE_RELAXED)
        assert streams.capture_of(0, stream) == r.streamGetCaptureInfo(stream)[1]
        assert streams.capture_of(0, 0) == of_null
        assert streams.capture_of(1, 0) == 0
        r.streamEndCapture(stream)


class TestContents:
    def test_are_the_nodes_and_the_addresses_of_device_memory(self, r: EmulatedRuntime) -> None:
        stream, host = new_stream(r), np.zeros(8)
        first, second, third = (r.malloc(512) for _ in range(3))

        def work() -> None:
            r.memsetAsync(first, 0, 512, stream)
            r.memcpyAsync(second, first, 64, MEMCPY_DEVICE_TO_DEVICE, stream)
            r.memcpyAsync(host.ctypes.data, first, 64, MEMCPY_DEVICE_TO_HOST, stream)
            r.sleep(1, stream)
            launch_on(r, stream, lambda: None, addresses=[third, first])

        nodes, addresses = r.graphContents(capture(r, stream, work))
        assert nodes == 5
        assert sorted(addresses) == sorted({first, second, third})

    def test_of_an_empty_graph(self, r: EmulatedRuntime) -> None:
        assert r.graphContents(capture(r, new_stream(r))) == (0, [])

    def test_are_printed_as_a_dot_file(self, r: EmulatedRuntime, tmp_path: Path) -> None:
        stream, other, ptr = new_stream(r), new_stream(r), r.malloc(512)

        def work() -> None:
            r.memsetAsync(ptr, 0, 512, stream)
            wait_for(r, other, stream)
            launch_on(r, other, lambda: None, name='of "a\\b"')
            r.sleep(1, stream)
            wait_for(r, stream, other)
            r.memcpyAsync(ptr, ptr + 256, 64, MEMCPY_DEVICE_TO_DEVICE, stream)

        graph, path = capture(r, stream, work), tmp_path / "graph.dot"
        r.graphDebugDotPrint(graph, str(path), 0)
        assert (
            path.read_text()
            == r"""digraph dot {
subgraph cluster_1 {
label="graph_1" graph[style="dashed"];
"graph_1_node_0"[style="bold" shape="octagon" label="0\nmemset\n"];
"graph_1_node_1"[style="bold" shape="octagon" label="1\nof \"a\\b\"\n"];
"graph_1_node_2"[style="bold" shape="octagon" label="2\ntcuda_spin\n"];
"graph_1_node_3"[style="bold" shape="octagon" label="3\nmemcpy\n"];
"graph_1_node_0" -> "graph_1_node_1";
"graph_1_node_0" -> "graph_1_node_2";
"graph_1_node_1" -> "graph_1_node_3";
"graph_1_node_2" -> "graph_1_node_3";
}
}
"""
        )
        r.graphDebugDotPrint(graph, str(path), GRAPH_DOT_VERBOSE)
        assert rf'label="0\nmemset\n{ptr:#x}\n512 bytes\n"' in path.read_text()

    def test_cannot_be_printed_into_a_missing_folder(self, r: EmulatedRuntime, tmp_path: Path) -> None:
        graph = capture(r, new_stream(r))
        with pytest.raises(AcceleratorError, match="cudaErrorOperatingSystem") as raised:
            r.graphDebugDotPrint(graph, str(tmp_path / "missing" / "graph.dot"), 0)
        assert raised.value.error_code == 304


class TestMemoryOfAGraph:
    def test_lives_as_long_as_the_graph(self, r: EmulatedRuntime) -> None:
        stream, pointers = new_stream(r), list[int]()

        def work() -> None:
            pointers.append(r.mallocAsync(4096, stream))
            r.memsetAsync(pointers[0], 1, 4096, stream)
            r.freeAsync(pointers[0], stream)

        graph = executable(r, stream, work)
        for _ in range(2):
            r.graphLaunch(graph, stream)
            r.free(pointers[0])  # CUDA lets a program free the memory of a graph without a free node
            assert r.devices[0].memory.used == 4096
        r.graphExecDestroy(graph)
        assert r.devices[0].memory.used == 0

    def test_is_freed_when_a_capture_fails(self, r: EmulatedRuntime) -> None:
        stream = new_stream(r)
        r.streamBeginCapture(stream, CAPTURE_RELAXED)
        r.mallocAsync(4096, stream)
        r.streamQuery(stream)
        assert status_of(lambda: r.streamEndCapture(stream)) == 901
        assert r.devices[0].memory.used == 0

    def test_from_outside_is_freed_by_a_launch(self, r: EmulatedRuntime) -> None:
        stream, ptr = new_stream(r), r.malloc(4096)
        graph = executable(r, stream, lambda: r.freeAsync(ptr, stream))
        assert r.devices[0].memory.used == 4096
        r.graphLaunch(graph, stream)
        assert r.devices[0].memory.used == 0
        assert status_of(lambda: r.graphLaunch(graph, stream)) == 1
