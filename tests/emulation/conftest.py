"""The fixtures of the tests of emulated arrays."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda._runtime.protocol import CAPTURE_RELAXED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.fixture_types import Captured
    from tcuda._runtime.protocol import Runtime


@pytest.fixture
def captured(runtime: Runtime) -> Iterator[Captured]:
    """Return a function that captures a function, and returns its result and a call that launches the graph.

    The runtime alone captures, without a pool and without an object that keeps memory.
    """
    executables: list[int] = []

    def capture(function: Callable[[], Any]) -> tuple[Any, Callable[[], None]]:
        stream = tcuda.Stream()
        with tcuda.stream(stream):
            runtime.streamBeginCapture(stream.cuda_stream, CAPTURE_RELAXED)
            try:
                result = function()
            finally:
                graph = runtime.streamEndCapture(stream.cuda_stream)
        executables.append(runtime.graphInstantiate(graph, 0))
        runtime.graphDestroy(graph)
        return result, functools.partial(runtime.graphLaunch, executables[-1], 0)

    yield capture
    for executable in executables:
        runtime.graphExecDestroy(executable)
