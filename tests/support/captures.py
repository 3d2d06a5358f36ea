"""Captures of work into graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable

MODES = ["global", "thread_local", "relaxed"]


def captured(function: Callable[[], Any], graph: tcuda.CUDAGraph | None = None, **options: Any) -> Any:
    """Capture ``function``; return the graph and the result of ``function``."""
    graph = graph or tcuda.CUDAGraph()
    with tcuda.graph(graph, **options):
        result = function()
    return graph, result


def nothing_captures() -> bool:
    """Return whether no stream captures, the default stream is current, and arrays can be created."""
    side = tcuda.graph.default_capture_stream
    made = tcuda.xp.zeros(10)
    return (
        not tcuda.is_current_stream_capturing()
        and (side is None or not side.is_capturing())
        and tcuda.current_stream() == tcuda.default_stream()
        and bool((made.get() == 0).all())
    )
