"""The release of graphs that the device may still run: nothing waits, and the memory comes back after the replays."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.busy_streams import keep_busy
from support.captures import MODES, captured
from support.pools import held_by, settle
from support.sizes import MIB

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 64 * MIB

pytestmark = pytest.mark.usefixtures("allocator_as_found")


@pytest.fixture
def stream(xp: Any) -> tcuda.Stream:
    """A stream of its own; its busy kernel is loaded."""
    made = tcuda.Stream()
    keep_busy(made, 10)
    tcuda.synchronize()
    return made


def memory_of(capture: Callable[[], Any], **options: Any) -> tuple[tcuda.CUDAGraph, tuple[int, int]]:
    """Capture work whose arrays die; return the graph and its pool."""
    graph, array = captured(capture, **options)
    del array
    return graph, graph.pool()


def active() -> int:
    """Return the bytes of the arrays that live, or that graphs keep."""
    return tcuda.memory_stats()["active_bytes.all.current"]


@pytest.mark.parametrize("busy", ["the replay", "other work"])
def test_nothing_waits(xp: Any, stream: tcuda.Stream, busy: str) -> None:
    graph, pool = memory_of(lambda: xp.zeros(SIZE, "uint8"))
    with tcuda.stream(stream):
        keep_busy(stream)
        if busy == "the replay":
            graph.replay()
    graph.reset()
    assert not stream.query()
    assert held_by(pool) >= SIZE
    settle()
    assert held_by(pool) == 0


def test_the_contents_stay_until_the_replay_is_done(xp: Any, stream: tcuda.Stream) -> None:
    y = xp.zeros(MIB)
    before = active()
    x = [xp.full(MIB, 3.0)]
    graph, _ = memory_of(lambda: y.__iadd__(x[0] * 2))
    with tcuda.stream(stream):
        keep_busy(stream)
        graph.replay()
    address = x[0].data.ptr
    x.clear()
    del graph
    others = [xp.ones(MIB) for _ in range(3)]
    if not stream.query():  # a GPU may be done meanwhile
        assert address not in [other.data.ptr for other in others]
    tcuda.synchronize()
    assert (y.get() == 6).all()
    del others
    settle()
    assert active() == before


def test_a_capture_into_the_same_pool_gets_other_memory(xp: Any, stream: tcuda.Stream) -> None:
    handle, y = tcuda.graph_pool_handle(), xp.zeros(MIB)
    temporaries = []

    def work(value: float) -> Callable[[], Any]:
        def captured_work() -> None:
            temporary = xp.full(MIB, value)
            temporaries.append(temporary.data.ptr)
            tcuda._sleep(1_000_000)
            y.__iadd__(temporary)

        return captured_work

    tcuda._sleep(10)
    first, _ = memory_of(work(1.0), pool=handle)
    with tcuda.stream(stream):
        keep_busy(stream)
        first.replay()
    first.reset()
    with tcuda.stream(tcuda.Stream()):
        second = tcuda.CUDAGraph()
        second.capture_begin(pool=handle)
        work(2.0)()
        second.capture_end()
        assert not stream.query()
    assert temporaries[0] != temporaries[1]
    assert second.pool() == handle
    tcuda.synchronize()
    second.replay()
    tcuda.synchronize()
    assert (y.get() == 3).all()
    second.reset()
    settle()
    assert held_by(handle) == 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("begins", ["before the release", "after the release"])
def test_a_capture_of_another_thread_stays_valid(xp: Any, stream: tcuda.Stream, mode: str, begins: str) -> None:
    graph, pool = memory_of(lambda: xp.zeros(SIZE, "uint8"))
    x = xp.ones(1000)
    x + 1
    other = tcuda.CUDAGraph()
    begun, released = threading.Event(), threading.Event()
    made: list[Any] = []

    def capture() -> None:
        with tcuda.stream(tcuda.Stream()):
            if begins == "after the release":
                released.wait()
            other.capture_begin(capture_error_mode=mode)
            begun.set()
            released.wait()
            made.append(x + 1)
            other.capture_end()

    with tcuda.stream(stream):
        keep_busy(stream)
        graph.replay()
    thread = threading.Thread(target=capture)
    thread.start()
    if begins == "before the release":
        begun.wait()
    graph.reset()
    released.set()
    thread.join()
    held = held_by(pool)
    assert held >= SIZE or stream.query()  # a GPU may be done meanwhile
    other.replay()
    tcuda.synchronize()
    assert (made.pop().get() == 2).all()
    other.reset()
    settle()
    assert held_by(pool) == 0


def test_a_release_in_a_capture_is_completed_after_the_capture(xp: Any, stream: tcuda.Stream) -> None:
    x = xp.ones(MIB, "uint8")
    graph, pool = memory_of(lambda: xp.zeros(SIZE, "uint8"))
    second = tcuda.CUDAGraph()
    graph.replay()
    tcuda.synchronize()
    with tcuda.graph(second):
        graph.reset()
        x += 1
        assert held_by(pool) >= SIZE
    settle()
    assert held_by(pool) == 0
    second.reset()


@pytest.mark.parametrize("wanting", ["empty_cache", "an allocation"])
def test_who_needs_the_memory_waits(xp: Any, stream: tcuda.Stream, wanting: str) -> None:
    tcuda.empty_cache()
    fraction = tcuda.get_per_process_memory_fraction()
    graph, pool = memory_of(lambda: xp.zeros(SIZE, "uint8"))
    with tcuda.stream(stream):
        keep_busy(stream)
        graph.replay()
    graph.reset()
    if wanting == "empty_cache":
        tcuda.empty_cache()
    else:
        total = tcuda.get_device_properties(0).total_memory
        tcuda.set_per_process_memory_fraction((tcuda.memory_reserved() + SIZE / 2) / total)
        try:
            xp.empty(SIZE, "uint8")
        finally:
            tcuda.set_per_process_memory_fraction(fraction)
    assert stream.query()
    assert held_by(pool) == 0


def test_many_graphs_can_be_released_at_a_time(xp: Any, stream: tcuda.Stream) -> None:
    graphs = [memory_of(lambda: xp.zeros(MIB, "uint8")) for _ in range(20)]
    keep_busy(stream)
    for graph, _ in graphs:
        graph.reset()
    assert not stream.query()
    assert sum(held_by(pool) for _, pool in graphs) >= 20 * MIB
    settle()
    assert sum(held_by(pool) for _, pool in graphs) <= 2 * MIB  # one pool is kept for the next capture
    tcuda.empty_cache()
    assert sum(held_by(pool) for _, pool in graphs) == 0


def test_the_next_graph_takes_the_memory_of_the_last_one(xp: Any) -> None:
    def taken() -> int:
        return tcuda.memory_stats()["num_device_alloc"]

    first, _ = memory_of(lambda: xp.zeros(1000, "uint8"))
    first.reset()
    settle()
    before = taken()
    second, pool = memory_of(lambda: xp.zeros(1000, "uint8"))
    assert taken() == before
    assert held_by(pool) == 2 * MIB
    second.reset()
