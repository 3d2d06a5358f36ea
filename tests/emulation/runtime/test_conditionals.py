"""Conditional nodes of the emulated runtime: how often a body runs, its time, and what a body may contain."""

from __future__ import annotations

import ctypes
import functools
import gc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.emulated_streams import new_stream
from support.race_recorder import READ, WRITE, RaceRecorder, span
from support.statuses import status_of
from tcuda._runtime.protocol import (
    CAPTURE_RELAXED,
    CONDITIONAL_IF,
    CONDITIONAL_WHILE,
    EVENT_RECORD_EXTERNAL,
    EVENT_WAIT_EXTERNAL,
    MEMCPY_DEVICE_TO_DEVICE,
    MEMCPY_DEVICE_TO_HOST,
    MEMCPY_HOST_TO_DEVICE,
)
from tcuda.emulation.runtime import EmulatedRuntime, costs
from tcuda.emulation.runtime.late_runtime import LateRuntime

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.emulated

KINDS = [CONDITIONAL_IF, CONDITIONAL_WHILE]
MS = 1_000_000  # ns, and as many cycles


def watch(r: EmulatedRuntime, recorder: Any) -> None:
    r.watchRaces(recorder)


class Program:
    """A graph with one conditional node, whose flag is a byte of device memory."""

    def __init__(self, r: EmulatedRuntime, kind: int, body: Callable[[int], object]) -> None:
        self.r = r
        self.stream, self.inner = new_stream(r), new_stream(r)
        self.flag = r.malloc(512)
        r.streamBeginCapture(self.stream, CAPTURE_RELAXED)
        made = r.streamAddConditional(self.stream, kind, self.flag, 1)
        r.streamBeginCaptureToGraph(self.inner, made.body, CAPTURE_RELAXED)
        body(self.inner)
        if kind == CONDITIONAL_WHILE:
            r.streamSetConditional(self.inner, made.handle, self.flag, 1)
        assert r.streamEndCapture(self.inner) == made.body
        self.body = made.body
        self.graph = r.streamEndCapture(self.stream)

    def launch(self, value: int) -> None:
        ctypes.memset(self.flag, value, 1)
        executable = self.r.graphInstantiate(self.graph, 0)
        self.r.graphLaunch(executable, self.stream)
        self.r.streamSynchronize(self.stream)
        self.r.graphExecDestroy(executable)


@pytest.fixture(params=["at once", "late", "late, in a random order"])
def r(request: pytest.FixtureRequest) -> EmulatedRuntime:
    """A runtime with two devices, with each schedule."""
    if request.param == "at once":
        return EmulatedRuntime(devices=2, memory=1 << 20)
    return LateRuntime(devices=2, memory=1 << 20, seed=0 if request.param == "late" else 3)


@pytest.mark.parametrize(("value", "runs"), [(0, 0), (1, 1), (2, 1), (255, 1)])
def test_an_if_node_runs_its_body_once_if_the_flag_is_not_zero(r: EmulatedRuntime, value: int, runs: int) -> None:
    ran: list[int] = []
    program = Program(r, CONDITIONAL_IF, lambda stream: r.launch(stream, lambda: ran.append(1), 0))
    assert ran == []
    program.launch(value)
    assert len(ran) == runs


@pytest.mark.parametrize("rounds", [0, 1, 5])
def test_a_while_node_repeats_its_body_until_the_flag_is_zero(r: EmulatedRuntime, rounds: int) -> None:
    flag = 0

    def decrement() -> None:
        ran.append(1)
        ctypes.memset(flag, rounds - len(ran), 1)

    ran: list[int] = []
    program = Program(r, CONDITIONAL_WHILE, lambda stream: r.launch(stream, decrement, 0))
    flag = program.flag
    program.launch(rounds)
    assert len(ran) == rounds


def test_a_flag_of_four_bytes_is_zero_if_all_bytes_are(r: EmulatedRuntime) -> None:
    stream, inner, flag, ran = new_stream(r), new_stream(r), r.malloc(512), list[int]()
    r.streamBeginCapture(stream, CAPTURE_RELAXED)
    made = r.streamAddConditional(stream, CONDITIONAL_IF, flag, 4)
    r.streamBeginCaptureToGraph(inner, made.body, CAPTURE_RELAXED)
    r.launch(inner, lambda: ran.append(1), 0)
    r.streamEndCapture(inner)
    executable = r.graphInstantiate(r.streamEndCapture(stream), 0)
    for value in (0, 1 << 24):
        ctypes.c_int32.from_address(flag).value = value
        r.graphLaunch(executable, stream)
        r.streamSynchronize(stream)
    assert len(ran) == 1


def test_the_node_comes_between_the_work_before_and_after(r: EmulatedRuntime) -> None:
    stream, inner, flag, ran = new_stream(r), new_stream(r), r.malloc(512), list[str]()
    r.streamBeginCapture(stream, CAPTURE_RELAXED)
    r.launch(stream, lambda: ran.append("before"), 0)
    made = r.streamAddConditional(stream, CONDITIONAL_IF, flag, 1)
    r.streamBeginCaptureToGraph(inner, made.body, CAPTURE_RELAXED)
    r.launch(inner, lambda: ran.append("body"), 0)
    r.streamEndCapture(inner)
    r.launch(stream, lambda: ran.append("after"), 0)
    executable = r.graphInstantiate(r.streamEndCapture(stream), 0)
    ctypes.memset(flag, 1, 1)
    r.graphLaunch(executable, stream)
    r.streamSynchronize(stream)
    assert ran == ["before", "body", "after"]


def test_a_nested_loop_runs_in_every_round_of_the_outer_loop(r: EmulatedRuntime) -> None:
    outer_flag, inner_flag, innermost, ran = 0, r.malloc(512), new_stream(r), list[str]()

    def begin_round() -> None:
        ran.append("outer")
        ctypes.memset(inner_flag, 2, 1)
        ctypes.memset(outer_flag, 3 - ran.count("outer"), 1)

    def decrement() -> None:
        ran.append("inner")
        ctypes.memset(inner_flag, 0 if ran[-2:] == ["inner", "inner"] else 1, 1)

    def body(stream: int) -> None:
        r.launch(stream, begin_round, 0)
        made = r.streamAddConditional(stream, CONDITIONAL_WHILE, inner_flag, 1)
        r.streamBeginCaptureToGraph(innermost, made.body, CAPTURE_RELAXED)
        r.launch(innermost, decrement, 0)
        r.streamSetConditional(innermost, made.handle, inner_flag, 1)
        r.streamEndCapture(innermost)

    program = Program(r, CONDITIONAL_WHILE, body)
    outer_flag = program.flag
    program.launch(1)
    assert ran == ["outer", "inner", "inner"] * 3


class TestTime:
    @pytest.fixture
    def r(self) -> EmulatedRuntime:
        return EmulatedRuntime(devices=2, memory=1 << 20)

    @pytest.mark.parametrize("rounds", [0, 1, 4])
    def test_a_loop_takes_the_time_of_its_rounds(self, r: EmulatedRuntime, rounds: int) -> None:
        flag, ran = 0, list[int]()

        def decrement() -> None:
            ran.append(1)
            ctypes.memset(flag, rounds - len(ran), 1)

        program = Program(r, CONDITIONAL_WHILE, lambda stream: (r.launch(stream, decrement, 0), r.sleep(MS, stream)))
        flag = program.flag
        before = r.clock.now()
        program.launch(rounds)
        slept = rounds * (MS * 1_000_000 // costs.CLOCK_KHZ)
        assert slept <= r.clock.now() - before < slept + MS // 2

    def test_the_late_schedule_counts_one_round_before_any_run(self) -> None:
        late = LateRuntime(devices=1, memory=1 << 20)
        program = Program(late, CONDITIONAL_IF, lambda stream: late.sleep(MS, stream))
        executable = late.graphInstantiate(program.graph, 0)
        before = late.clock.now()
        late.graphLaunch(executable, program.stream)
        late.streamSynchronize(program.stream)
        assert late.clock.now() - before >= MS * 1_000_000 // costs.CLOCK_KHZ


class TestWhatABodyMayContain:
    def test_kernels_copies_and_fills(self, r: EmulatedRuntime) -> None:
        a, b, host = r.malloc(512), r.malloc(512), np.zeros(16, np.uint8)

        def body(stream: int) -> None:
            r.launch(stream, lambda: None, 0)
            r.memsetAsync(a, 7, 16, stream)
            r.memcpyAsync(b, a, 16, MEMCPY_DEVICE_TO_DEVICE, stream)

        Program(r, CONDITIONAL_IF, body).launch(1)
        r.memcpy(host.ctypes.data, b, 16, MEMCPY_DEVICE_TO_HOST)
        assert host.tolist() == [7] * 16

    def test_copies_of_page_locked_memory(self, r: EmulatedRuntime) -> None:
        host, a = np.full(16, 3, np.uint8), r.malloc(512)
        r.hostRegister(host.ctypes.data, 16, 0)
        program = Program(
            r, CONDITIONAL_IF, lambda stream: r.memcpyAsync(a, host.ctypes.data, 16, MEMCPY_HOST_TO_DEVICE, stream)
        )
        program.launch(1)
        back = np.zeros(16, np.uint8)
        r.memcpy(back.ctypes.data, a, 16, MEMCPY_DEVICE_TO_HOST)
        r.hostUnregister(host.ctypes.data)
        assert back.tolist() == [3] * 16

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize(
        "operation",
        ["pageable copy", "event record", "event wait", "allocation", "another device", "memory of another device"],
    )
    def test_other_nodes_are_refused_when_the_graph_is_instantiated(
        self, r: EmulatedRuntime, kind: int, operation: str
    ) -> None:
        host, here, event = np.zeros(16, np.uint8), r.malloc(512), r.eventCreateWithFlags(0)
        r.setDevice(1)
        there, stream_there = r.malloc(512), new_stream(r)
        r.setDevice(0)

        def on_another_device(stream: int) -> None:
            r.eventRecord(event, stream)
            r.setDevice(1)
            r.streamWaitEvent(stream_there, event)
            r.launch(stream_there, lambda: None, 0)
            done = r.eventCreateWithFlags(0)
            r.eventRecord(done, stream_there)
            r.setDevice(0)
            r.streamWaitEvent(stream, done)

        bodies: dict[str, Callable[[int], object]] = {
            "pageable copy": lambda stream: r.memcpyAsync(here, host.ctypes.data, 16, MEMCPY_HOST_TO_DEVICE, stream),
            "event record": lambda stream: r.eventRecordWithFlags(event, stream, EVENT_RECORD_EXTERNAL),
            "event wait": lambda stream: r.streamWaitEvent(stream, event, EVENT_WAIT_EXTERNAL),
            "allocation": lambda stream: r.mallocAsync(64, stream),
            "another device": on_another_device,
            "memory of another device": lambda stream: r.memcpyPeerAsync(here, 0, there, 1, 16, stream),
        }
        program = Program(r, kind, bodies[operation])
        assert status_of(lambda: r.graphInstantiate(program.graph, 0)) == 1
        if operation == "memory of another device":
            r.deviceEnablePeerAccess(1)
            assert r.graphInstantiate(program.graph, 0) > 0


class TestErrors:
    def test_a_node_needs_a_capture(self, r: EmulatedRuntime) -> None:
        stream, flag = new_stream(r), r.malloc(512)
        assert status_of(lambda: r.streamAddConditional(stream, CONDITIONAL_IF, flag, 1)) == 401
        r.streamBeginCapture(stream, CAPTURE_RELAXED)
        assert status_of(lambda: r.streamAddConditional(stream, 7, flag, 1)) == 1
        assert status_of(lambda: r.streamSynchronize(stream)) == 900  # which invalidates the capture
        assert status_of(lambda: r.streamAddConditional(stream, CONDITIONAL_IF, flag, 1)) == 901

    def test_the_stream_must_be_of_the_current_device(self, r: EmulatedRuntime) -> None:
        stream, flag = new_stream(r), r.malloc(512)
        r.streamBeginCapture(stream, CAPTURE_RELAXED)
        r.setDevice(1)
        assert status_of(lambda: r.streamAddConditional(stream, CONDITIONAL_IF, flag, 1)) == 400

    def test_a_capture_goes_only_into_a_body(self, r: EmulatedRuntime) -> None:
        program = Program(r, CONDITIONAL_IF, lambda stream: None)
        for graph in (program.graph, 12345):
            assert status_of(functools.partial(r.streamBeginCaptureToGraph, program.inner, graph, 0)) == 1
        assert status_of(lambda: r.streamBeginCaptureToGraph(0, program.body, 0)) == 900
        r.streamBeginCaptureToGraph(program.inner, program.body, CAPTURE_RELAXED)
        assert status_of(lambda: r.streamBeginCaptureToGraph(program.inner, program.body, 0)) == 401
        r.streamEndCapture(program.inner)

    def test_only_one_executable_of_a_graph_exists(self, r: EmulatedRuntime) -> None:
        program = Program(r, CONDITIONAL_IF, lambda stream: r.launch(stream, lambda: None, 0))
        first = r.graphInstantiate(program.graph, 0)
        assert status_of(lambda: r.graphInstantiate(program.graph, 0)) == 1
        r.graphExecDestroy(first)
        assert r.graphInstantiate(program.graph, 0) > 0

    def test_a_body_is_destroyed_with_its_graph(self, r: EmulatedRuntime) -> None:
        program = Program(r, CONDITIONAL_IF, lambda stream: r.launch(stream, lambda: None, 0))
        assert r.graphContents(program.body).nodes == 1
        assert status_of(lambda: r.graphDestroy(program.body)) == 1
        r.graphDestroy(program.graph)
        gc.collect()
        assert status_of(lambda: r.graphContents(program.body)) == 1


def test_a_drawing_has_the_body_inside_of_the_graph(r: EmulatedRuntime, tmp_path: Path) -> None:
    program = Program(r, CONDITIONAL_WHILE, lambda stream: r.launch(stream, lambda: None, 0, name="work"))
    path = tmp_path / "graph.dot"
    r.graphDebugDotPrint(program.graph, str(path), 0)
    lines = path.read_text().splitlines()
    begins = [place for place, line in enumerate(lines) if line.startswith("subgraph")]
    assert len(begins) == 2
    inside = lines[begins[1] : lines.index("}")]
    assert any("work" in line for line in inside)
    assert not any("while" in line for line in inside)
    assert lines[-3:] == ["}", "}", "}"]


def uses_of(place: int, told: list[Any]) -> list[Any]:
    """Return what the launch told last of the node at ``place``."""
    return [list(call[3]) for call in told if call[0] == "set_node" and call[2] == place][-1]


class TestRaces:
    """What a race detector is told: the accesses of a body that ran, and none of a body that did not run."""

    @pytest.fixture
    def r(self) -> EmulatedRuntime:
        return EmulatedRuntime(devices=2, memory=1 << 20)

    @pytest.mark.parametrize("value", [0, 1])
    def test_the_accesses_of_a_body_count_if_the_body_has_run(self, r: EmulatedRuntime, value: int) -> None:
        recorder = RaceRecorder()
        memory = r.malloc(512)
        program = Program(
            r,
            CONDITIONAL_IF,
            lambda stream: r.launch(stream, lambda: None, 0, name="work", accesses=[span(memory, 8, WRITE, "a")]),
        )
        watch(r, recorder)
        recorder.take()
        program.launch(value)
        told = recorder.take()
        (nodes,) = [call[1] for call in told if call[0] == "graph"]
        assert [node[0] for node in nodes] == ["tcuda_set_conditional", "if", "work"]
        assert [list(node[2]) for node in nodes] == [[], [0], [1]]
        assert nodes[0][1] == [span(program.flag, 1, READ, "flag")]
        assert uses_of(2, told) == ([span(memory, 8, WRITE, "a")] if value else [])

    def test_the_accesses_of_all_rounds_count(self, r: EmulatedRuntime) -> None:
        recorder, memory, ran = RaceRecorder(), r.malloc(512), list[int]()

        def work() -> None:
            ran.append(1)
            ctypes.memset(program.flag, 3 - len(ran), 1)

        def accesses() -> list[Any]:
            return [span(memory + len(ran), 1, WRITE, "a")]

        program = Program(r, CONDITIONAL_WHILE, lambda stream: r.launch(stream, work, 0, accesses=accesses))
        watch(r, recorder)
        recorder.take()
        program.launch(1)
        assert uses_of(2, recorder.take()) == [span(memory + number, 1, WRITE, "a") for number in (1, 2, 3)]
