"""Captures that nobody ends: reset() and the end of the graph undo all that the capture has set up."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.captures import MODES, captured, nothing_captures
from support.failing_calls import refused_calls
from support.garbage import collect_until
from support.pools import held_by, settle
from support.sizes import MIB
from support.threads import in_thread
from tcuda._process.captures import captures
from tcuda.memory import _snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("allocator_as_found")

SIZE = 64 * MIB


def abandon(work: Callable[[], Any], graph: tcuda.CUDAGraph | None = None, mode: str = "global") -> tcuda.CUDAGraph:
    """Return a graph whose capture ``work`` was never ended, because of an error."""
    made = graph or tcuda.CUDAGraph()
    with contextlib.suppress(KeyError), tcuda.stream(tcuda.Stream()):
        made.capture_begin(capture_error_mode=mode)
        work()
        raise KeyError
    return made


def reserved() -> int:
    settle()
    tcuda.empty_cache()
    return tcuda.memory_reserved()


def page_locked() -> int:
    """Return the bytes of page-locked memory that blocks in use have; CuPy may have some too."""
    tcuda.memory.empty_host_cache()
    return sum(segment["active_size"] for segment in _snapshot()["host_segments"])


def delete(graphs: list[tcuda.CUDAGraph]) -> None:
    graphs.clear()
    collect_until(lambda: not captures)


WAYS: dict[str, Callable[[list[tcuda.CUDAGraph]], None]] = {
    "reset()": lambda graphs: graphs[0].reset(),
    "the last reference": delete,
    "reset() in another thread": lambda graphs: in_thread(graphs[0].reset),
    "the last reference in another thread": lambda graphs: in_thread(delete, graphs),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_left(xp: Any, way: str, mode: str) -> None:
    before = reserved()
    graphs = [abandon(lambda: xp.zeros(SIZE, "uint8"), mode=mode)]
    opened = graphs[0]._open
    assert opened is not None
    pool = opened.pool
    del opened
    assert held_by(pool) >= SIZE
    WAYS[way](graphs)
    assert not captures
    assert nothing_captures()
    assert reserved() == before
    assert held_by(pool) == 0


def test_the_graph_captures_again(xp: Any, graph: tcuda.CUDAGraph) -> None:
    x = xp.zeros(10)
    abandon(lambda: x.__iadd__(1), graph)
    with pytest.raises(RuntimeError, match="already owns a captured graph"), tcuda.stream(tcuda.Stream()):
        graph.capture_begin()
    graph.reset()
    assert repr(graph) == "<tcuda.CUDAGraph: nothing captured>"
    captured(lambda: x.__iadd__(10), graph)
    graph.replay()
    assert (x.get() == 10).all()


def test_a_shared_pool_keeps_the_memory_of_the_other_graph(xp: Any, graph: tcuda.CUDAGraph) -> None:
    handle = tcuda.graph_pool_handle()
    _, y = captured(lambda: xp.ones(MIB), graph, pool=handle)
    with contextlib.suppress(KeyError), tcuda.stream(tcuda.Stream()):
        other = tcuda.CUDAGraph()
        other.capture_begin(handle)
        xp.zeros(SIZE, "uint8")
        raise KeyError
    del other
    assert nothing_captures()
    y.fill(0)
    graph.replay()
    assert (y.get() == 1).all()
    graph.reset()
    del y
    settle()
    tcuda.empty_cache()
    assert held_by(handle) == 0


def test_a_capture_that_ended_by_reset_cannot_be_ended_again(xp: Any, graph: tcuda.CUDAGraph) -> None:
    with pytest.raises(tcuda.AcceleratorError) as caught, tcuda.graph(graph):
        graph.reset()
    assert caught.value.error_code == 401
    assert nothing_captures()


@pytest.mark.parametrize("bodies", [1, 2])
def test_open_bodies_are_ended_too_and_the_current_stream_stays(xp: Any, bodies: int) -> None:
    flag, x = xp.ones((), bool), xp.zeros(10)
    before = reserved()
    graphs = [tcuda.CUDAGraph()]

    def work() -> None:
        for _ in range(bodies):
            graphs[0].begin_capture_to_if_node(flag)
        xp.zeros(SIZE, "uint8")
        x.__iadd__(1)

    abandon(work, graphs[0])
    current = tcuda.current_stream()
    graphs.clear()
    collect_until(lambda: not captures)
    assert tcuda.current_stream() == current
    assert not captures
    assert nothing_captures()
    assert reserved() == before


def test_other_captures_go_on(xp: Any, graph: tcuda.CUDAGraph) -> None:
    x = xp.zeros(10)
    with tcuda.stream(tcuda.Stream()):
        graph.capture_begin(capture_error_mode="relaxed")
        abandoned = abandon(lambda: xp.zeros(SIZE, "uint8"), mode="relaxed")
        x += 1
        del abandoned
        graph.capture_end()
    graph.replay()
    assert (x.get() == 1).all()


def test_the_pool_of_the_caller_is_released(xp: Any) -> None:
    pool = tcuda.MemPool()
    with tcuda.stream(tcuda.Stream()):
        made = tcuda.CUDAGraph()
        made.capture_begin(pool)
        xp.zeros(SIZE, "uint8")
    del made
    collect_until(lambda: not captures)
    pool_id = pool.id
    del pool
    settle()
    tcuda.empty_cache()
    assert held_by(pool_id) == 0


def capture_much(xp: Any, flag: Any, x: Any, made: tcuda.CUDAGraph) -> None:
    """Capture work of many kinds on two streams, with memory of the device and page-locked memory, and replay it."""
    side, external = tcuda.Stream(), tcuda.Event(external=True)
    generator = tcuda.Generator().manual_seed(3)
    with tcuda.stream(tcuda.Stream()):
        made.capture_begin()
        host = tcuda.memory.zeros_pinned(SIZE, "uint8")
        y = xp.empty(SIZE, "uint8")
        tcuda.memory.copy_async(y, host)
        side.wait_stream(tcuda.current_stream())
        with tcuda.stream(side):
            z = x * 2
            generator.random_sample(4)
        tcuda.current_stream().wait_stream(side)
        external.record()
        made.begin_capture_to_if_node(flag)
        z += 1
        made.end_capture_to_conditional_node()
        made.capture_end()
    made.replay()
    tcuda.synchronize()


@pytest.mark.parametrize("ends", ["the last reference", "reset()"])
def test_an_error_of_any_call_of_the_runtime_leaves_nothing(xp: Any, ends: str) -> None:
    flag, x = xp.ones((), bool), xp.zeros(10)
    before = page_locked()
    graphs: list[tcuda.CUDAGraph] = []
    left: list[tuple[int, ...]] = []

    def action() -> None:
        graphs.append(tcuda.CUDAGraph(keep_graph=True))
        capture_much(xp, flag, x, graphs[0])

    def release() -> None:
        kept = graphs[:] if ends == "reset()" else []
        for graph in kept:
            graph.reset()
        graphs.clear()
        pages = reserved()
        tcuda.memory.empty_host_cache()
        left.append((len(captures), pages, page_locked()))

    action()
    release()
    refused = refused_calls(action, release)
    assert left == [left[0]] * (len(refused) + 2)
    assert (left[0][0], left[0][2]) == (0, before)
    assert len(refused) >= 20
