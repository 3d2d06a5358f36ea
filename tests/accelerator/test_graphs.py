"""Graphs of ``tcuda.accelerator``, which capture the current stream."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.pools import pool_of
from tcuda import accelerator

if TYPE_CHECKING:
    from pathlib import Path


def test_a_block_captures_the_current_stream(xp: Any) -> None:
    x = xp.zeros(3)
    accelerator.synchronize()
    graph, side = accelerator.Graph(), tcuda.Stream()
    with side, graph:
        assert accelerator.current_stream() is side
        x += 1
    assert x.get().tolist() == [0, 0, 0]
    for _ in range(3):
        graph.replay()
    assert x.get().tolist() == [3, 3, 3]


def test_a_default_stream_is_refused(xp: Any) -> None:
    graph = accelerator.Graph()
    with pytest.raises(RuntimeError, match="must be captured on a non-default stream"), graph:
        raise AssertionError("entered")
    assert not tcuda.is_current_stream_capturing()


def test_a_block_that_raises_drops_the_capture(xp: Any) -> None:
    x, graph = xp.zeros(3), accelerator.Graph()
    accelerator.synchronize()
    with tcuda.Stream():
        with pytest.raises(TypeError, match="unsupported operand"), graph:
            x += 1 + tcuda  # type: ignore[operator]
        assert not tcuda.is_current_stream_capturing()
        with pytest.raises(RuntimeError, match="without a preceding successful capture"):
            graph.replay()
        with graph:  # the graph can capture again
            x += 2
    graph.replay()
    assert x.get().tolist() == [2, 2, 2]


def test_a_capture_has_the_pool_and_the_mode_of_the_graph(xp: Any) -> None:
    handle = tcuda.graph_pool_handle()
    graph = accelerator.Graph(pool=handle, capture_error_mode="thread_local")
    with tcuda.Stream(), graph:
        y = xp.full(10, 2.0)
    assert graph.pool() == handle == pool_of(y)
    graph.reset()
    graph.graph_pool, graph.capture_error_mode = None, "strict"
    with tcuda.Stream():
        with pytest.raises(RuntimeError, match="Unknown capture error mode"):
            graph.capture_begin()
        graph.capture_error_mode = "default"
        graph.capture_begin()
        y = xp.full(10, 3.0)
        graph.capture_end()
    assert graph.pool() != handle
    graph.replay()
    assert (y.get() == 3).all()


def test_the_nodes_are_kept_on_request(xp: Any, tmp_path: Path) -> None:
    x, graph = xp.zeros(3), accelerator.Graph(keep_graph=True)
    accelerator.synchronize()
    graph.enable_debug_mode()
    with tcuda.Stream(), graph:
        x += 1
    graph.instantiate()
    graph.replay()
    graph.debug_dump(tmp_path / "graph.dot")
    assert (tmp_path / "graph.dot").read_text().startswith("digraph dot {")
    assert x.get().tolist() == [1, 1, 1]


def test_a_graph_cannot_be_copied() -> None:
    with pytest.raises(TypeError, match="both would own the same CUDA graph"):
        copy.copy(accelerator.Graph())
