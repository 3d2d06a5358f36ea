"""Emulated time: work that overlaps, work that waits, and the same times in every run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tcuda
from support.emulated_streams import new_stream
from tcuda._runtime.protocol import (
    CAPTURE_RELAXED,
    MEMCPY_DEVICE_TO_DEVICE,
    MEMCPY_DEVICE_TO_HOST,
    MEMCPY_HOST_TO_DEVICE,
    STREAM_DEFAULT,
    STREAM_NON_BLOCKING,
    STREAM_PER_THREAD,
)
from tcuda.emulation.backend.backend import Backend
from tcuda.emulation.runtime import EmulatedRuntime, costs, parse_memory
from tcuda.emulation.runtime.clock import CALL, Clock

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.emulated

MS = 1_000_000  # ns, and as many cycles
HOUR = 3_600_000 * MS


def elapsed(r: EmulatedRuntime, work: Callable[[], object]) -> int:
    """Return the time, in nanoseconds, that ``work`` and a wait for the device take."""
    start = r.clock.now()
    work()
    r.deviceSynchronize()
    return r.clock.now() - start


def test_work_on_one_stream_runs_in_order(r: EmulatedRuntime) -> None:
    stream = new_stream(r)
    assert elapsed(r, lambda: [r.sleep(MS, stream), r.sleep(MS, stream)]) == 2 * MS + CALL


def test_work_on_two_streams_overlaps(r: EmulatedRuntime) -> None:
    first, second = new_stream(r), new_stream(r)
    assert elapsed(r, lambda: [r.sleep(MS, first), r.sleep(MS, second)]) == MS + 2 * CALL


@pytest.mark.parametrize(("waits", "expected"), [("after all work is queued", 50 * MS), ("before", 100 * MS)])
def test_a_wait_of_a_thread_advances_the_clock_for_all_devices(r: EmulatedRuntime, waits: str, expected: int) -> None:
    queued = Barrier(2)

    def sleep(device: int) -> None:
        r.setDevice(device)
        r.sleep(50 * MS, new_stream(r))
        if waits != "before":
            queued.wait(60)
        r.deviceSynchronize()

    start = r.clock.now()
    with ThreadPoolExecutor(2) as pool:
        if waits == "before":
            for device in range(2):
                pool.submit(sleep, device).result()
        else:
            list(pool.map(sleep, range(2)))
    assert expected <= r.clock.now() - start < expected + MS


def test_work_on_two_devices_overlaps(r: EmulatedRuntime) -> None:
    r.sleep(MS, 0)
    r.setDevice(1)
    r.sleep(MS, 0)
    r.deviceSynchronize()
    assert r.clock.now() == MS + 2 * CALL


@pytest.mark.parametrize(("flags", "waits"), [(STREAM_DEFAULT, True), (STREAM_NON_BLOCKING, False)])
def test_the_default_stream_and_blocking_streams_wait_for_each_other(
    r: EmulatedRuntime, flags: int, waits: bool
) -> None:
    stream = new_stream(r, flags)
    there = elapsed(r, lambda: [r.sleep(MS, stream), r.sleep(MS, 0)])
    back = elapsed(r, lambda: [r.sleep(MS, 0), r.sleep(MS, stream)])
    assert there == back == (2 * MS + CALL if waits else MS + 2 * CALL)


def test_the_per_thread_stream_is_a_blocking_stream_of_its_own(r: EmulatedRuntime) -> None:
    stream = new_stream(r)
    assert elapsed(r, lambda: [r.sleep(MS, STREAM_PER_THREAD), r.sleep(MS, stream)]) == MS + 2 * CALL
    assert elapsed(r, lambda: [r.sleep(MS, STREAM_PER_THREAD), r.sleep(MS, 0)]) == 2 * MS + CALL


def test_a_wait_joins_two_timelines(r: EmulatedRuntime) -> None:
    first, second = new_stream(r), new_stream(r)
    event = r.eventCreateWithFlags(0)

    def work() -> None:
        r.sleep(MS, first)
        r.eventRecord(event, first)
        r.streamWaitEvent(second, event)
        r.sleep(MS, second)

    assert elapsed(r, work) == pytest.approx(2 * MS, abs=5 * CALL)


def test_the_elapsed_time_of_events_follows_the_model(r: EmulatedRuntime) -> None:
    stream = new_stream(r)
    start, end = r.eventCreateWithFlags(0), r.eventCreateWithFlags(0)
    r.eventRecord(start, stream)
    r.launch(0, lambda: None, nbytes=2_000_000, flops=0)  # on the default stream, so the time does not count
    r.sleep(3 * MS, stream)
    r.eventRecord(end, stream)
    r.eventSynchronize(end)
    assert r.eventElapsedTime(start, end) == pytest.approx(3, abs=0.01)


def test_the_clock_can_be_advanced_on_the_host(r: EmulatedRuntime) -> None:
    stream = new_stream(r)
    r.sleep(MS, stream)
    assert r.streamQuery(stream) == 600
    r.clock.advance(MS)
    assert r.streamQuery(stream) == 0


def test_the_clock_does_not_go_back() -> None:
    clock = Clock()
    assert (clock.advance(5), clock.wait_until(3), clock.now()) == (5, 5, 5)
    with pytest.raises(ValueError, match="cannot go back by 1 ns"):
        clock.advance(-1)
    assert clock.now() == 5


def test_copies_to_page_locked_memory_are_faster_and_do_not_block_the_host(r: EmulatedRuntime) -> None:
    ptr, host, stream = r.malloc(1 << 19), np.zeros(1 << 16), new_stream(r)
    address, size = host.ctypes.data, host.nbytes

    def copy_out() -> int:
        r.memcpyAsync(address, ptr, size, MEMCPY_DEVICE_TO_HOST, stream)
        return r.streamQuery(stream)

    assert copy_out() == 0  # a copy to pageable memory is complete when the call returns
    pageable = elapsed(r, copy_out)
    r.hostRegister(address, size, 0)
    assert copy_out() == 600
    r.streamSynchronize(stream)
    assert elapsed(r, copy_out) < pageable
    r.hostUnregister(address)


def test_a_copy_to_the_device_does_not_block_the_host(r: EmulatedRuntime) -> None:
    ptr, host, stream = r.malloc(1 << 19), np.zeros(1 << 16), new_stream(r)
    r.memcpyAsync(ptr, host.ctypes.data, host.nbytes, MEMCPY_HOST_TO_DEVICE, stream)
    assert r.streamQuery(stream) == 600


def test_the_time_of_a_copy_depends_on_its_devices(r: EmulatedRuntime) -> None:
    size = 1 << 19
    here = r.malloc(size)
    r.setDevice(1)
    there = r.malloc(size)
    r.setDevice(0)
    within = elapsed(r, lambda: r.memcpyAsync(here, here, size, MEMCPY_DEVICE_TO_DEVICE, 0))
    between = elapsed(r, lambda: r.memcpyPeerAsync(there, 1, here, 0, size, 0))
    assert within == costs.copy_on_device(size) + CALL
    assert between == costs.copy_between_devices(size) + CALL


def test_copies_between_devices_copy_the_bytes_and_check_the_devices(r: EmulatedRuntime) -> None:
    source, result = np.arange(64.0), np.zeros(64)
    here = r.malloc(512)
    r.setDevice(1)
    there = r.malloc(512)
    r.memcpy(here, source.ctypes.data, 512, MEMCPY_HOST_TO_DEVICE)
    r.memcpyPeerAsync(there, 1, here, 0, 512, 0)
    r.memcpy(result.ctypes.data, there, 512, MEMCPY_DEVICE_TO_HOST)
    np.testing.assert_array_equal(result, source)
    with pytest.raises(tcuda.AcceleratorError):
        r.memcpyPeerAsync(there, 0, here, 1, 512, 0)


def test_free_waits_for_the_device_and_free_async_does_not(r: EmulatedRuntime) -> None:
    stream = new_stream(r)
    first, second = r.malloc(512), r.mallocAsync(512, stream)
    r.sleep(MS, stream)
    r.freeAsync(second, stream)
    assert r.streamQuery(stream) == 600
    r.free(first)
    assert r.streamQuery(stream) == 0
    assert r.memGetInfo()[0] == r.memGetInfo()[1]


def test_work_must_be_launched_on_the_device_of_its_stream(r: EmulatedRuntime) -> None:
    stream = new_stream(r)
    r.setDevice(1)
    with pytest.raises(tcuda.AcceleratorError) as caught:
        r.sleep(MS, stream)
    assert caught.value.error_code == 400


def test_an_event_is_recorded_on_its_own_device(r: EmulatedRuntime) -> None:
    event = r.eventCreateWithFlags(0)
    r.setDevice(1)
    with pytest.raises(tcuda.AcceleratorError) as caught:
        r.eventRecord(event, 0)
    assert caught.value.error_code == 400


def test_captured_work_takes_no_time_and_does_not_run(r: EmulatedRuntime) -> None:
    stream = new_stream(r)
    r.streamBeginCapture(stream, CAPTURE_RELAXED)
    ran: list[int] = []
    r.launch(stream, lambda: ran.append(1), nbytes=1 << 30)
    r.graphDestroy(r.streamEndCapture(stream))
    assert ran == []
    assert r.streamQuery(stream) == 0
    assert r.devices[0].activity.until(HOUR) == 0


def test_work_that_fails_takes_no_time(r: EmulatedRuntime) -> None:
    with pytest.raises(ZeroDivisionError):
        r.launch(0, lambda: 1 // 0, nbytes=1 << 30)
    assert r.streamQuery(0) == 0
    assert r.devices[0].activity.until(HOUR) == 0


def test_two_runs_take_the_same_time() -> None:
    def program() -> int:
        r = EmulatedRuntime(devices=1, memory=1 << 20)
        stream = new_stream(r)
        for index in range(20):
            r.sleep(MS * index, stream)
            r.launch(0, lambda: None, nbytes=index << 20, flops=index << 30)
            while r.streamQuery(0) == 600:
                pass
        r.deviceSynchronize()
        return r.clock.now()

    assert program() == program() > 0


def test_a_stream_of_another_device_cannot_be_made_current(r: EmulatedRuntime) -> None:
    class Elsewhere:
        ptr, device_id = 0, 1

    backend = Backend(r)
    for make_current in (backend.use_stream, backend.enter_stream):
        with pytest.raises(RuntimeError, match=r"created on \(1\) does not match with the current device \(0\)"):
            make_current(Elsewhere())
    assert backend.current_stream().ptr == 0


@pytest.mark.parametrize(
    ("text", "size"), [("1024", 1024), ("1KiB", 1024), ("1.5 GiB", 3 << 29), ("2gib", 2 << 30), ("7B", 7), (42, 42)]
)
def test_memory_sizes(text: int | str, size: int) -> None:
    assert parse_memory(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "2GB", "two", "-1GiB", "1e9"])
def test_other_texts_are_no_memory_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="is not a memory size"):
        parse_memory(text)
