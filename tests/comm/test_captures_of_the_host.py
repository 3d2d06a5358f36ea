"""Copies from NumPy arrays during a capture."""

from __future__ import annotations

import contextlib
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.placed_arrays import on
from support.statuses import status_of
from tcuda._base.statuses import Status
from tcuda.comm import broadcast, scatter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcuda._runtime.protocol import Runtime

pytestmark = pytest.mark.usefixtures("memory_comes_back")


@contextlib.contextmanager
def page_locked(runtime: Runtime, array: np.ndarray[Any, Any]) -> Iterator[None]:
    """Page-lock the memory of ``array`` for a scope."""
    address = array.ctypes.data
    runtime.hostRegister(address, array.nbytes, 0)
    del array  # so that a test can see whether something else keeps the array
    try:
        yield
    finally:
        runtime.hostUnregister(address)


COPIES: dict[str, Callable[[Any, Any], Any]] = {
    "broadcast": lambda values, out: broadcast(values, [0])[0],
    "broadcast to an array": lambda values, out: broadcast(values, out=[out])[0],
    "broadcast to a view": lambda values, out: broadcast(values.reshape(20, 10), out=[out.reshape(20, 10)[::-1]])[0],
    "scatter": lambda values, out: scatter(values, [0])[0],
    "scatter to an array": lambda values, out: scatter(values, out=[out[:4], out[4:]])[1],
}


@pytest.mark.parametrize("name", COPIES)
def test_every_launch_reads_page_locked_memory(runtime: Runtime, name: str) -> None:
    values, out, graph = np.zeros((10, 20)), on(0, np.zeros((10, 20))), tcuda.CUDAGraph()
    with page_locked(runtime, values):
        COPIES[name](values, out)  # compiles kernels
        with tcuda.graph(graph):
            made = COPIES[name](values, out)
        for launch in (1, 2):
            values[...] = launch
            graph.replay()
            assert set(made.get().ravel().tolist()) == {launch}
        del made, graph


def test_a_graph_keeps_the_memory_that_its_copies_read(runtime: Runtime) -> None:
    values, graph = np.ones(100), tcuda.CUDAGraph()
    kept = weakref.ref(values)
    with page_locked(runtime, values):
        with tcuda.graph(graph):
            (made,) = broadcast(values, [0])
        del values
        graph.replay()
        assert made.tolist() == [1] * 100
        assert kept() is not None
    del made, graph
    assert kept() is None


@pytest.mark.parametrize("name", ["pageable", "converted", "gaps", "partly page-locked"])
def test_copies_of_other_memory_are_refused(runtime: Runtime, name: str) -> None:
    memory, graph = np.zeros(1 << 16), tcuda.CUDAGraph()
    values = memory[:1024]
    array = on(0, np.zeros(100))
    sources = {
        "pageable": np.zeros(100),
        "converted": values.view(">f8"),
        "gaps": values[::2],
        "partly page-locked": memory,
    }
    with page_locked(runtime, values):
        with tcuda.graph(graph):
            array += 1
            status = status_of(lambda: broadcast(sources[name], [0]))
        assert status == Status.STREAM_CAPTURE_UNSUPPORTED
        graph.replay()
        assert array.tolist() == [1] * 100
