"""A fused function is one launch on emulated devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda._runtime.protocol import CAPTURE_RELAXED
from tcuda.emulation import xp

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda.emulation.runtime import EmulatedRuntime

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]


def launches(runtime: EmulatedRuntime, function: Callable[..., Any], *args: Any) -> int:
    stream = tcuda.Stream()
    with tcuda.stream(stream):
        runtime.streamBeginCapture(stream.cuda_stream, CAPTURE_RELAXED)
        try:
            result = function(*args)
        finally:
            graph = runtime.streamEndCapture(stream.cuda_stream)
    assert result is not None
    nodes, _ = runtime.graphContents(graph)
    runtime.graphDestroy(graph)
    return nodes


def test_the_operations_of_a_fused_function_are_one_node_of_a_graph(runtime: EmulatedRuntime) -> None:
    def distance(x: Any, y: Any) -> Any:
        return xp.sum(xp.sqrt(x * y + 1) - x, axis=0)

    x = xp.ones((3, 4))
    assert launches(runtime, distance, x, x) == 5
    assert launches(runtime, xp.fuse(distance), x, x) == 1


def test_an_array_on_another_device_is_refused() -> None:
    with tcuda.device(1):
        other = xp.ones(3)
    with pytest.raises(ValueError, match="Array device must be same as the current device"):
        xp.fuse(kernel_name="fused")(lambda x, y: x + y)(xp.ones(3), other)


def test_a_failed_trace_leaves_the_namespace_as_before() -> None:
    x = xp.ones(3)
    with pytest.raises(TypeError, match="cannot be fused"):
        xp.fuse(kernel_name="fused")(lambda x: xp.sort(x))(x)
    assert isinstance(xp.sort(x), xp.ndarray)
