"""Work without an end: neither the time of a call nor the memory behind the calls grows with their number."""

from __future__ import annotations

import gc
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.emulated

PART = 1000
"""The calls of each part. The first parts fill what has a limit, such as the pending work of a late schedule."""

CALLS = (
    "upload of page-locked memory",
    "upload of parts of page-locked memory",
    "upload of pageable memory",
    "download to page-locked memory",
    "download",
    "record of an event",
    "wait for an event",
    "new event",
    "new stream",
    "switch of the stream",
    "universal function",
    "kernel",
    "copy on a device",
    "copy between devices",
    "function of the host",
    "callback",
    "replay",
    "replay that reads page-locked memory",
    "record of a stream",
    "random numbers",
)


def calls(xp: Any) -> dict[str, Callable[[], object]]:
    """Return a function for each of :data:`CALLS`."""
    locked, part = tcuda.memory.zeros_pinned(1000), iter(range(10**9))
    many = tcuda.memory.zeros_pinned(50_000)
    pageable = np.zeros(1000)
    x, y = xp.zeros(1000), xp.zeros(1000)
    few = xp.zeros(10)
    with tcuda.device(1):
        there = xp.zeros(1000)
    side, event = tcuda.Stream(), tcuda.Event()
    event.record()
    kernel = xp.ElementwiseKernel("float64 x", "float64 y", "y = x + 1", "one_more")
    graph, reading = tcuda.CUDAGraph(), tcuda.CUDAGraph()
    with tcuda.graph(graph):
        y[...] = x
    with tcuda.graph(reading):
        x.data.copy_from_host_async(locked.ctypes.data, x.nbytes, xp.cuda.get_current_stream())
    host = xp.cuda.Stream()

    def upload_a_part() -> None:
        begin = next(part) * 10 % (many.size - 10)
        few.set(many[begin : begin + 10])

    def record_a_new_event() -> None:
        new = tcuda.Event()
        new.record()
        side.wait_event(new)

    def switch() -> None:
        with tcuda.stream(side):
            pass

    functions = (
        lambda: xp.asarray(locked),
        upload_a_part,
        lambda: xp.asarray(pageable),
        lambda: x.get(out=locked, blocking=False),
        lambda: x.get(),
        event.record,
        lambda: side.wait_event(event),
        record_a_new_event,
        tcuda.Stream,
        switch,
        lambda: x + y,
        lambda: kernel(x, y),
        lambda: xp.copyto(y, x),
        lambda: there.data.copy_from_device_async(x.data, x.nbytes, xp.cuda.get_current_stream()),
        lambda: host.launch_host_func(id, None),
        lambda: host.add_callback(lambda *_: None, None),
        graph.replay,
        reading.replay,
        lambda: tcuda.memory.record_stream(xp.empty(1000), side),
        lambda: xp.random.rand(100),
    )
    return dict(zip(CALLS, functions, strict=True))


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize("waits", [False, True], ids=["never waits", "waits"])
@pytest.mark.parametrize("name", CALLS)
def test_the_next_call_takes_as_long_and_as_much_memory_as_the_first(xp: Any, name: str, waits: bool) -> None:
    call = calls(xp)[name]

    def part() -> float:
        begin = time.perf_counter()
        for number in range(PART):
            call()
            if waits and number % 100 == 0:
                tcuda.synchronize()
        return time.perf_counter() - begin

    part()
    times = [part() for _ in range(14)]
    growth = []
    for _ in range(3):  # Threads of other tests may allocate during a part. A leak grows in every part.
        gc.collect()
        before = sys.getallocatedblocks()
        part()
        gc.collect()
        growth.append(sys.getallocatedblocks() - before)
    assert min(growth) < PART / 10, growth
    assert min(times[-3:]) < 5 * max(times[:3]), times
