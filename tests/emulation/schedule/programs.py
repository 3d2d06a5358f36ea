"""Programs with all their waits, and the same programs with one wait missing, for two emulated devices.

Each program takes whether to wait, and returns numbers. The file prints the numbers of all programs as JSON, with and
without the wait.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

import tcuda
from tcuda._runtime import runtime
from tcuda.emulation import xp

if TYPE_CHECKING:
    from collections.abc import Callable

N = 8


def numbers(array: Any) -> list[float]:
    """Return the elements of ``array``, with -1 in place of NaN, which JSON does not have."""
    return [float(value) for value in np.nan_to_num(array.get(), nan=-1.0)]


def started() -> tuple[Any, Any]:
    """Return an array of zeros that is complete, and a side stream."""
    x = xp.zeros(N)
    tcuda.synchronize()
    return x, tcuda.Stream()


def page_locked() -> Any:
    host = np.zeros(N)
    runtime().hostRegister(host.ctypes.data, host.nbytes, 0)
    return host


def released(host: Any) -> None:
    runtime().hostUnregister(host.ctypes.data)


def read_after_write(waits: bool) -> list[float]:
    x, side = started()
    x += 1
    if waits:
        side.wait_stream(tcuda.current_stream())
    with tcuda.stream(side):
        y = x * 10
        side.synchronize()
        return numbers(y)


def write_after_read(waits: bool) -> list[float]:
    x, side = started()
    y = x + 5
    if waits:
        side.wait_stream(tcuda.current_stream())
    with tcuda.stream(side):
        x.fill(100)
    tcuda.synchronize()
    return numbers(y)


def write_after_write(waits: bool) -> list[float]:
    x, side = started()
    x.fill(1)
    if waits:
        side.wait_stream(tcuda.current_stream())
    with tcuda.stream(side):
        x.fill(2)
    tcuda.synchronize()
    return numbers(x)


def result_of_a_side_stream(waits: bool) -> list[float]:
    x, side = started()
    with tcuda.stream(side):
        y = x + 3
    if waits:
        tcuda.current_stream().wait_stream(side)
    return numbers(y + 1)


def event_recorded_too_early(waits: bool) -> list[float]:
    x, side = started()
    event = tcuda.Event()
    if not waits:
        event.record()
    x += 1
    if waits:
        event.record()
    side.wait_event(event)
    with tcuda.stream(side):
        return numbers(x * 2)


def wait_on_the_wrong_stream(waits: bool) -> list[float]:
    x, side = started()
    other = tcuda.Stream()
    x += 1
    (side if waits else other).wait_stream(tcuda.current_stream())
    with tcuda.stream(side):
        return numbers(x * 2)


def upload_buffer_used_again(waits: bool) -> list[float]:
    x, _ = started()
    host = page_locked()
    host[:] = 1
    x.set(host)
    if waits:
        tcuda.current_stream().synchronize()
    host[:] = 2
    found = numbers(x)
    released(host)
    return found


def page_locked_result_read_too_early(waits: bool) -> list[float]:
    x, _ = started()
    host = page_locked()
    x += 7
    x.get(out=host, blocking=False)
    if waits:
        tcuda.current_stream().synchronize()
    found: list[float] = host.tolist()
    released(host)
    return found


def double_buffer(waits: bool) -> list[float]:
    x, side = started()
    hosts, events = [page_locked(), page_locked()], [tcuda.Event(), tcuda.Event()]
    totals = []
    for step in range(6):
        slot = step % 2
        if waits:
            events[slot].synchronize()
        hosts[slot][:] = step
        with tcuda.stream(side):
            fresh = xp.empty(N)
            fresh.set(hosts[slot])
            totals.append(fresh + x)
            events[slot].record(side)
    tcuda.synchronize()
    found = [number for total in totals for number in numbers(total)]
    for host in hosts:
        released(host)
    return found


def memory_freed_while_another_stream_reads(waits: bool) -> list[float]:
    _, side = started()
    x = xp.full(N, 4.0)
    side.wait_stream(tcuda.current_stream())
    with tcuda.stream(side):
        y = x * 2
    if waits:
        tcuda.memory.record_stream(x, side)
    del x
    z = xp.full(N, 9.0)
    tcuda.synchronize()
    return [*numbers(y), *numbers(z)]


def fresh_memory_read_before_it_is_written(waits: bool) -> list[float]:
    _, side = started()
    x = xp.empty(N)
    side.wait_stream(tcuda.current_stream())
    with tcuda.stream(side):
        x.fill(6)
    if waits:
        tcuda.current_stream().wait_stream(side)
    return numbers(x + 1)


def graph_of(work: Callable[[], Any]) -> tuple[Any, Any]:
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        result = work()
    tcuda.synchronize()
    return graph, result


def graph_input_overwritten(waits: bool) -> list[float]:
    x, side = started()
    graph, y = graph_of(lambda: x * 10)
    x.fill(1)
    tcuda.synchronize()
    graph.replay()
    if waits:
        side.wait_stream(tcuda.current_stream())
    with tcuda.stream(side):
        x.fill(2)
    tcuda.synchronize()
    return numbers(y)


def graph_output_overwritten(waits: bool) -> list[float]:
    x, side = started()
    graph, y = graph_of(lambda: x * 10)
    x.fill(1)
    graph.replay()
    side.wait_stream(tcuda.current_stream())
    with tcuda.stream(side):
        kept = y + 0
    if waits:
        tcuda.current_stream().wait_stream(side)
    x.fill(2)
    graph.replay()
    tcuda.synchronize()
    return [*numbers(kept), *numbers(y)]


def branches_of_a_graph(waits: bool) -> list[float]:
    x, side = started()

    def work() -> Any:
        main = tcuda.current_stream()
        side.wait_stream(main)
        x.fill(3)
        if waits:
            side.wait_stream(main)
        with tcuda.stream(side):
            y = x * 2
        main.wait_stream(side)
        return y

    graph, y = graph_of(work)
    graph.replay()
    return numbers(y)


def another_device(waits: bool) -> list[float]:
    x, _ = started()
    x += 5
    with tcuda.device(1), tcuda.stream(tcuda.Stream(1)):
        if waits:
            tcuda.current_stream(1).wait_stream(tcuda.current_stream(0))
        return numbers(x.copy())


def source_on_another_device_overwritten(waits: bool) -> list[float]:
    x, _ = started()
    x.fill(5)
    tcuda.synchronize()
    with tcuda.device(1):
        side = tcuda.Stream()
        with tcuda.stream(side):
            y = x.copy()
    if waits:
        tcuda.current_stream(0).wait_stream(side)
    x.fill(6)
    tcuda.synchronize(0)
    side.synchronize()
    with tcuda.device(1):
        return numbers(y)


def rows_of_a_two_dimensional_copy(waits: bool) -> list[float]:
    x, side = started()
    x += 1
    y = xp.zeros(N)
    tcuda.synchronize()
    x += 1
    if waits:
        side.wait_stream(tcuda.current_stream())
    runtime().memcpy2DAsync(y.data.ptr, 16, x.data.ptr, 16, 8, N // 2, 3, side.cuda_stream)
    tcuda.synchronize()
    return numbers(y)


def sum_over_devices(waits: bool) -> list[float]:
    arrays = []
    for index in range(2):
        with tcuda.device(index):
            arrays.append(xp.full(N, 1.0 + index))
    for index in range(2):
        tcuda.synchronize(index)
    side = tcuda.Stream()
    with tcuda.stream(side):
        arrays[0] += 10
    if waits:
        tcuda.current_stream(0).wait_stream(side)
    total = tcuda.comm.reduce_add(arrays, 0)
    tcuda.synchronize()
    return numbers(total)


def reader_of_dlpack(waits: bool) -> list[float]:
    x, side = started()
    x += 1
    capsule = x.__dlpack__(stream=side.cuda_stream if waits else -1)
    with tcuda.stream(side):
        y = xp.from_dlpack(capsule) * 2
    tcuda.synchronize()
    return numbers(y)


PROGRAMS = [value for value in list(globals().values()) if "waits" in getattr(value, "__annotations__", ())]


def main() -> None:
    results = {}
    for program in PROGRAMS:
        results[program.__name__] = {"with": program(True), "without": program(False)}
        for index in range(2):
            tcuda.synchronize(index)
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
