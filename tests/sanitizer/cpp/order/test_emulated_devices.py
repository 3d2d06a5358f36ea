"""Programs on emulated devices: a missing wait is a race, and no program with all its waits is accused."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.threads import in_thread
from tcuda import _core
from tcuda._process.ledger import ledger
from tcuda._runtime.protocol import CAPTURE_RELAXED, STREAM_DEFAULT, STREAM_PER_THREAD
from tcuda.emulation import xp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.fixture_types import OutputOf
    from tcuda.emulation.runtime import EmulatedRuntime

pytestmark = pytest.mark.emulated


class Found(list[_core.Race]):
    """The races that a detector has found."""

    def take(self) -> list[tuple[str, str, str]]:
        """Return the kind and the names of both operations of each race since the last call, the later one first."""
        taken = [(race.kind, race.current.operation, race.previous.operation) for race in self]
        self.clear()
        return taken


@pytest.fixture
def found(runtime: EmulatedRuntime) -> Iterator[Found]:
    """A list to which a detector adds its races until the test ends."""
    tcuda.init()
    gc.collect()
    tcuda.synchronize()
    races = Found()
    detector = _core.RaceDetector(races.append)
    detector.attach(ledger())
    runtime.watchRaces(detector)
    yield races
    runtime.watchRaces(None)
    detector.detach()
    tcuda.synchronize()


@pytest.fixture
def side() -> tcuda.Stream:
    """A stream that the default stream does not wait for, and that a capture does not use by itself."""
    return tcuda.Stream()


def add_on(stream: tcuda.Stream, array: Any) -> Any:
    """Return ``array + 1``, computed on ``stream``."""
    with tcuda.stream(stream):
        return array + 1


def line_of(access: _core.RaceAccess) -> str:
    """Return the line of this file in the stack of an access."""
    return next(frame["name"] for frame in access.stack if frame["filename"] == __file__)


RACE = [("read after write", "add", "multiply")]


# Waits


def test_a_missing_wait_is_found(found: Found, side: tcuda.Stream) -> None:
    y = xp.ones(8) * 2
    z = add_on(side, y)
    (race,) = found
    assert (race.kind, race.use_after_free) == ("read after write", False)
    assert (race.current.operation, race.current.label, race.current.stream) == ("add", "x1", side.cuda_stream)
    assert (race.previous.operation, race.previous.label, race.previous.stream) == ("multiply", "out", 0)
    assert line_of(race.current) == "add_on"
    assert line_of(race.previous) == "test_a_missing_wait_is_found"
    assert race.overlap == (y.data.ptr, 64)
    assert race.allocation is not None
    assert (race.allocation.address, race.allocation.size) == (y.data.ptr, 64)
    assert z.tolist() == [3] * 8


WAITS: dict[str, Callable[[tcuda.Stream], object]] = {
    "wait_stream": lambda side: side.wait_stream(tcuda.current_stream()),
    "wait_event": lambda side: side.wait_event(tcuda.current_stream().record_event()),
    "stream.synchronize": lambda side: tcuda.current_stream().synchronize(),
    "event.synchronize": lambda side: tcuda.current_stream().record_event().synchronize(),
    "synchronize": lambda side: tcuda.synchronize(),
    "get": lambda side: xp.ones(1).get(),
    "stream.query": lambda side: until(tcuda.current_stream().query),
    "event.query": lambda side: until(tcuda.current_stream().record_event().query),
}


def until(done: Callable[[], bool]) -> None:
    while not done():
        pass


@pytest.mark.parametrize("wait", WAITS)
def test_a_wait_orders(found: Found, side: tcuda.Stream, wait: str) -> None:
    y = xp.ones(8) * 2
    WAITS[wait](side)
    add_on(side, y)
    assert found == []


def test_a_query_that_finds_work_orders_nothing(found: Found, side: tcuda.Stream) -> None:
    y = xp.ones(8) * 2
    tcuda._sleep(1_000_000)
    assert not tcuda.current_stream().query()
    add_on(side, y)
    assert found.take() == RACE


def test_a_wait_is_for_the_record_before_the_wait(found: Found, side: tcuda.Stream) -> None:
    event = tcuda.Event()
    x = xp.ones(8)
    event.record()
    side.wait_event(event)
    y = x * 2
    event.record()
    add_on(side, y)
    assert found.take() == RACE
    side.wait_event(event)
    add_on(side, y)
    assert found.take() == []


def test_a_write_after_a_read_is_a_race(found: Found, side: tcuda.Stream) -> None:
    y = xp.ones(8)
    side.wait_stream(tcuda.current_stream())
    z = add_on(side, y)
    y.fill(0)
    assert found.take() == [("write after read", "fill", "add")]
    z.fill(0)
    assert found.take() == [("write after write", "fill", "add")]


def test_an_upload_from_pageable_memory_is_work_of_its_stream(found: Found, side: tcuda.Stream) -> None:
    y = xp.ones(8)
    tcuda.synchronize()
    with tcuda.stream(side):
        y.set(np.zeros(8))
    z = y + 1
    assert found.take() == [("read after write", "add", "memcpy")]
    del z


# Regions


def test_two_readers_and_disjoint_elements_do_not_race(found: Found, side: tcuda.Stream) -> None:
    y = xp.zeros((4, 4))
    side.wait_stream(tcuda.current_stream())
    z = y.sum(), add_on(side, y)
    tcuda.synchronize()
    y[:, ::2] = 1
    with tcuda.stream(side):
        y[:, 1::2] = 2
        assert found.take() == []
        y[::-1, 3] = 5
        y[0, 0] = 7
    assert found.take() == [("write after write", "assign", "assign")]
    del z


# Default streams


@pytest.mark.parametrize("waits", [True, False])
def test_two_streams_that_draw_from_one_bit_generator_race(found: Found, side: tcuda.Stream, waits: bool) -> None:
    generator = xp.random.default_rng(1)
    tcuda.synchronize()
    generator.random(3)
    if waits:
        side.wait_stream(tcuda.current_stream())
    with tcuda.stream(side):
        generator.standard_normal(3)
    assert [race[1:] for race in found.take()] == [("standard_normal", "random_uniform")] * (not waits)


def test_two_streams_may_draw_from_the_default_generator(found: Found, side: tcuda.Stream) -> None:
    xp.random.rand(3)
    with tcuda.stream(side):
        xp.random.gamma(2.0, 1.0, 3)
    assert found.take() == []


@pytest.mark.parametrize("blocking", [True, False])
def test_the_legacy_default_stream_waits_for_blocking_streams(
    runtime: EmulatedRuntime, found: Found, blocking: bool
) -> None:
    handle = runtime.streamCreateWithPriority(STREAM_DEFAULT if blocking else 1, 0)
    stream = tcuda.ExternalStream(handle)
    y = xp.ones(8) * 2
    z = add_on(stream, y)
    z += 1
    assert len(found.take()) == (0 if blocking else 2)
    tcuda.synchronize()
    runtime.streamDestroy(handle)


def test_per_thread_default_streams_are_streams_of_their_own(found: Found) -> None:
    mine = tcuda.ExternalStream(STREAM_PER_THREAD)
    with tcuda.stream(mine):
        y = xp.ones(8) * 2
    made: list[Any] = []

    def work() -> None:
        made.append(add_on(tcuda.ExternalStream(STREAM_PER_THREAD), y))

    in_thread(work)
    assert found.take() == RACE
    total = y.sum() + made[0].sum()
    assert found.take() == [], "the legacy default stream waits for the streams of all threads"
    del total


# Memory


def test_a_block_that_is_handed_out_again_is_a_use_after_free(found: Found, side: tcuda.Stream) -> None:
    y = xp.ones(8) * 2
    side.wait_stream(tcuda.current_stream())
    z = add_on(side, y)
    address = y.data.ptr
    del y
    again = xp.zeros(8)
    assert again.data.ptr == address
    (race,) = found
    assert (race.kind, race.use_after_free) == ("write after read", True)
    assert race.previous_allocation is not None
    assert race.previous_allocation.freed_stack
    del z


def test_record_stream_keeps_a_block_until_the_stream_is_done(found: Found, side: tcuda.Stream) -> None:
    y = xp.ones(8) * 2
    side.wait_stream(tcuda.current_stream())
    with tcuda.stream(side):
        z = y + 1
        tcuda._sleep(1_000_000)
    address = y.data.ptr
    tcuda.memory.record_stream(y, side)
    del y
    assert xp.zeros(8).data.ptr != address
    tcuda.emulation.clock().advance(2_000_000)  # type: ignore[attr-defined]
    again = xp.zeros(8)
    assert again.data.ptr == address
    assert found == []
    del z


@pytest.mark.parametrize("backend", ["native", "cudaMallocAsync", "cupy"])
def test_memory_of_every_source_may_go_to_another_stream(output_of: OutputOf, backend: str) -> None:
    printed = output_of(
        """
import tcuda
from tcuda import _core
from tcuda._process.lazy import cuda
from tcuda._process.ledger import ledger
from tcuda import xp

tcuda.init()
races = []
detector = _core.RaceDetector(races.append)
detector.attach(ledger())
cuda.watchRaces(detector)
first, second = tcuda.Stream(), tcuda.Stream()
with tcuda.stream(first):
    x = xp.ones(5000)
    x += 1
    del x
with tcuda.stream(second):
    y = xp.ones(5000)
    y += 1
assert races == [], races
second.wait_stream(first)
with tcuda.stream(first):
    x = xp.ones(5000)
second.wait_stream(first)
with tcuda.stream(second):
    x += 1
with tcuda.stream(first):
    del x
    z = xp.ones(5000)
print(races[0].kind)
""",
        TCUDA_RUNTIME="emulated",
        TCUDA_ALLOC_CONF=f"backend:{backend}",
    )
    assert printed == "write after write"


# Graphs


def graph_of(function: Callable[[], Any]) -> tuple[tcuda.CUDAGraph, Any]:
    """Return a graph of ``function``, and the result of the capture."""
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        result = function()
    return graph, result


def test_a_replay_that_overwrites_a_result_in_use_is_found(found: Found, side: tcuda.Stream) -> None:
    x = xp.ones(8)
    graph, y = graph_of(lambda: x * 2)
    graph.replay()
    side.wait_stream(tcuda.current_stream())
    z = add_on(side, y)
    graph.replay()
    (race,) = found
    assert (race.kind, race.current.operation, race.previous.operation) == ("write after read", "multiply", "add")
    assert line_of(race.current) == "<lambda>"
    assert race.current.launch_stack is not None
    assert any(frame["name"].startswith("test_a_replay") for frame in race.current.launch_stack)
    del z


@pytest.mark.parametrize("value", [True, False])
def test_a_body_races_only_if_it_runs(found: Found, side: tcuda.Stream, value: bool) -> None:
    x, flag = xp.zeros(8), xp.full((), value)
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        graph.begin_capture_to_if_node(flag)
        x += 1
        graph.end_capture_to_conditional_node()
    tcuda.synchronize()
    with tcuda.stream(side):
        graph.replay()
    x.fill(2)
    assert found.take() == ([("write after write", "fill", "add")] if value else [])


def test_a_loop_with_memory_of_its_own_has_no_race(found: Found) -> None:
    x, left = xp.ones(5000), xp.zeros((), "int32")

    def body() -> None:
        doubled = x * 2
        x[...] = doubled
        left.__isub__(1)

    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        before = x + 1
        tcuda.graphs.while_loop(left, body)
        after = x + before
    for rounds in (3, 0, 2):
        left.fill(rounds)
        graph.replay()
        after.sum()
    assert found.take() == []


def test_a_flag_that_is_written_during_a_replay_is_found(found: Found, side: tcuda.Stream) -> None:
    left, x = xp.zeros((), "int32"), xp.zeros(8)
    graph, _ = graph_of(lambda: tcuda.graphs.while_loop(left, lambda: x.fill(1)))
    tcuda.synchronize()
    with tcuda.stream(side):
        graph.replay()
    left.fill(2)
    assert found.take() == [("write after read", "fill", "tcuda_set_conditional")]


def test_an_input_that_is_written_during_a_replay_is_found(found: Found, side: tcuda.Stream) -> None:
    x = xp.ones(8)
    graph, _ = graph_of(lambda: x * 2)
    tcuda.synchronize()
    with tcuda.stream(side):
        graph.replay()
    x.fill(2)
    assert found.take() == [("write after read", "fill", "multiply")]


def test_replays_on_two_streams_are_in_order(found: Found, side: tcuda.Stream) -> None:
    x = xp.ones(8)
    graph, _ = graph_of(lambda: x * 2)
    tcuda.synchronize()
    graph.replay()
    with tcuda.stream(side):
        graph.replay()
    assert found == []


@pytest.mark.parametrize("waits", [True, False])
def test_branches_of_a_graph_race_if_nothing_orders_them(found: Found, side: tcuda.Stream, waits: bool) -> None:
    x, y = xp.ones(8), xp.ones(8)

    def work() -> None:
        nonlocal x
        current = tcuda.current_stream()
        side.wait_stream(current)
        x += 1
        if waits:
            side.wait_stream(current)
        with tcuda.stream(side):
            xp.negative(x, out=y)
        current.wait_stream(side)

    graph, _ = graph_of(work)
    assert found == [], "a capture runs nothing"
    graph.replay()
    assert found.take() == ([] if waits else [("read after write", "negative", "add")])


def test_a_graph_that_was_captured_before_the_watch_is_known(runtime: EmulatedRuntime, side: tcuda.Stream) -> None:
    x, stream = xp.ones(8), tcuda.Stream()
    with tcuda.stream(stream):
        runtime.streamBeginCapture(stream.cuda_stream, CAPTURE_RELAXED)
        x.fill(3)
        executable = runtime.graphInstantiate(runtime.streamEndCapture(stream.cuda_stream), 0)
    races = Found()
    runtime.watchRaces(_core.RaceDetector(races.append))
    try:
        runtime.graphLaunch(executable, stream.cuda_stream)
        z = add_on(side, x)
    finally:
        runtime.watchRaces(None)
        runtime.graphExecDestroy(executable)
    assert races.take() == [("read after write", "add", "fill")]
    del z


# Several devices


def test_a_copy_to_another_device_waits_for_both_sides(found: Found) -> None:
    x = xp.ones(8) * 2
    for copy in tcuda.comm.broadcast(x, [0, 1])[1:]:
        with tcuda.device(1):
            copy += 1
    x.fill(3)
    assert found == []


def test_a_copy_between_devices_without_a_wait_is_found(
    runtime: EmulatedRuntime, found: Found, side: tcuda.Stream
) -> None:
    x = xp.ones(8)
    with tcuda.device(1):
        y = xp.empty(8)
    side.wait_stream(tcuda.current_stream())
    runtime.memcpyPeerAsync(y.data.ptr, 1, x.data.ptr, 0, 64, side.cuda_stream)
    with tcuda.device(1):
        z = y + 1
    assert found.take() == [("read after write", "add", "memcpy")]
    x.fill(2)
    assert found.take() == [("write after read", "fill", "memcpy")]
    del z


def test_a_copy_between_devices_on_a_default_stream_is_in_order_on_both_devices(found: Found) -> None:
    x = xp.ones(8) * 2
    with tcuda.device(1):
        y = xp.asarray(x)
        y += 1
    x.fill(2)
    assert found == []


def test_a_collective_waits_for_its_own_streams_only(found: Found, side: tcuda.Stream) -> None:
    arrays = []
    for index in range(2):
        with tcuda.device(index):
            arrays.append(xp.ones(4, "f"))
    tcuda.nccl.all_reduce(arrays)
    arrays[0].sum()
    assert found.take() == []
    z = add_on(side, arrays[0])
    assert [kind for kind, *_ in found.take()] == ["read after write"]
    del z


# Page-locked memory


def test_two_streams_race_in_page_locked_memory(runtime: EmulatedRuntime, found: Found, side: tcuda.Stream) -> None:
    x, y, host = xp.ones(8), xp.ones(8), np.zeros(8)
    tcuda.synchronize()
    runtime.hostRegister(host.ctypes.data, host.nbytes, 0)
    try:
        x.get(out=host, blocking=False)
        y.set(host, side)
        assert found.take() == [("read after write", "memcpy", "memcpy")]
        tcuda.synchronize()
        y.set(host)
        x.get(out=host)
        assert found.take() == []
    finally:
        runtime.hostUnregister(host.ctypes.data)


# Errors


def test_an_error_of_the_detector_comes_when_the_work_is_done(runtime: EmulatedRuntime, side: tcuda.Stream) -> None:
    def refuse(race: _core.Race) -> None:
        raise ValueError(race.kind)

    y = xp.ones(8)
    tcuda.synchronize()
    runtime.watchRaces(_core.RaceDetector(refuse))
    try:
        y.fill(2)
        with tcuda.stream(side), pytest.raises(ValueError, match="write after write"):
            y.fill(3)
        with tcuda.stream(side), pytest.raises(ValueError, match="write after write"):
            runtime.memsetAsync(y.data.ptr, 0, 8, side.cuda_stream)
    finally:
        runtime.watchRaces(None)
    assert y.tolist() == [0, *[3] * 7]


def test_memory_without_a_pool_that_is_handed_out_again_is_no_race(found: Found, side: tcuda.Stream) -> None:
    addresses = set()
    with xp.cuda.using_allocator(None):
        for stream in (side, tcuda.default_stream()) * 2:
            x = xp.empty(1000)
            addresses.add(x.data.ptr)
            with tcuda.stream(stream):
                x += 1
            del x  # cudaFree() waits for the device
    assert len(addresses) == 1
    assert found == []
