"""Which order the calls of the driver make between the operations of streams."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from support.cupti import (
    BLOCKING,
    CONTEXT,
    CONTEXT_DESTROYED,
    EVENT,
    FAILURE,
    FAR,
    LOCKED,
    MAIN,
    MEMORY,
    NOT_READY,
    OTHER_CONTEXT,
    PAGEABLE,
    SIDE,
    Watched,
)
from support.threads import in_thread

if TYPE_CHECKING:
    from support.cupti import Cupti

LEGACY, PER_THREAD = 0, 2


def test_streams_without_a_wait_race(cupti: Cupti, watched: Watched) -> None:
    cupti.fill(MAIN)
    cupti.copy(SIDE, MEMORY + 4096, MEMORY)
    (race,) = watched.found()
    assert race.kind == "read after write"
    assert (race.previous.operation, race.previous.stream) == ("memset", MAIN)
    assert (race.current.operation, race.current.stream) == ("memcpy", SIDE)


def test_a_wait_for_an_event_orders_streams(cupti: Cupti, watched: Watched) -> None:
    cupti.fill(MAIN)
    cupti.record(MAIN)
    cupti.wait(SIDE)
    cupti.copy(SIDE, MEMORY + 4096, MEMORY)
    assert watched.found() == []


def test_an_event_that_is_recorded_too_early_orders_nothing(cupti: Cupti, watched: Watched) -> None:
    cupti.record(MAIN)
    cupti.fill(MAIN)
    cupti.wait(SIDE)
    cupti.fill(SIDE)
    assert len(watched.found()) == 1


def test_other_processes_may_order_streams(cupti: Cupti, watched: Watched) -> None:
    """Another process may wait for the first event before it records the second event."""
    ours, theirs = ctypes.c_uint64(EVENT), ctypes.c_uint64(EVENT + 16)
    cupti.call("cuEventCreate", "PI", ctypes.addressof(ours), 4 | 2)
    cupti.call("cuIpcOpenEventHandle", "P64s", ctypes.addressof(theirs), b"")
    cupti.fill(MAIN)
    cupti.record(MAIN)
    cupti.wait(SIDE, EVENT + 16)
    cupti.fill(SIDE)
    assert watched.found() == []
    cupti.fill(FAR, MEMORY + 4096)
    cupti.call("cuEventDestroy_v2", "P", EVENT + 16, sides=1)
    cupti.wait(SIDE, EVENT + 16)  # another event by now, which was never recorded
    cupti.fill(SIDE, MEMORY + 4096)
    assert len(watched.found()) == 1


def test_events_that_are_not_shared_order_nothing_more(cupti: Cupti, watched: Watched) -> None:
    made = ctypes.c_uint64(EVENT)
    cupti.call("cuEventCreate", "PI", ctypes.addressof(made), 2)
    cupti.fill(MAIN)
    cupti.record(MAIN, EVENT + 16)
    cupti.wait(SIDE)
    cupti.fill(SIDE)
    assert len(watched.found()) == 1


def test_a_wait_of_the_host_orders_streams(cupti: Cupti, watched: Watched) -> None:
    for name in ("cuStreamSynchronize", "cuStreamQuery"):
        cupti.fill(MAIN)
        cupti.call(name, "P", MAIN)
        cupti.fill(SIDE)
        assert watched.found() == []
        cupti.call("cuCtxSynchronize", "P", 0)


def test_a_query_of_a_busy_stream_orders_nothing(cupti: Cupti, watched: Watched) -> None:
    cupti.fill(MAIN)
    cupti.record(MAIN)
    cupti.call("cuStreamQuery", "P", MAIN, status=NOT_READY)
    cupti.call("cuEventQuery", "P", EVENT, status=NOT_READY)
    cupti.fill(SIDE)
    assert len(watched.found()) == 1


def test_blocking_streams_wait_for_the_default_stream(cupti: Cupti, watched: Watched) -> None:
    cupti.fill(LEGACY)
    cupti.fill(BLOCKING)
    cupti.fill(1)  # the other handle of the legacy default stream
    cupti.fill(PER_THREAD)
    assert watched.found() == []
    cupti.fill(MAIN)
    assert len(watched.found()) > 0


def test_the_default_streams_of_devices_are_different_streams(cupti: Cupti, watched: Watched) -> None:
    cupti.fill(LEGACY)
    cupti.call("cuMemsetD8Async", "QBNP", MEMORY, 0, 1024, LEGACY, context=OTHER_CONTEXT)
    (race,) = watched.found()
    assert (race.previous.device, race.current.device) == (0, 1)


def test_the_per_thread_streams_of_threads_are_different_streams(cupti: Cupti, watched: Watched) -> None:
    cupti.fill(PER_THREAD)
    in_thread(cupti.fill, PER_THREAD)
    assert len(watched.found()) == 1


def test_the_device_of_a_stream_does_not_depend_on_the_context(cupti: Cupti, watched: Watched) -> None:
    cupti.launch(FAR, context=CONTEXT)
    assert {use.device for use in watched.uses()} == {1}


def test_a_stream_is_asked_for_once(cupti: Cupti, watched: Watched) -> None:
    cupti.fill(MAIN)
    cupti.fill(SIDE, MEMORY + 4096)
    asked = cupti.stub.stub_questions()
    for _ in range(5):
        cupti.fill(MAIN)
        cupti.fill(SIDE, MEMORY + 4096)
        cupti.record(MAIN)
    assert cupti.stub.stub_questions() == asked


def test_threads_meet_the_same_stream(cupti: Cupti, watched: Watched) -> None:
    """The order of a stream does not get lost where two threads meet the stream at the same time."""

    def meet() -> None:
        in_thread(cupti.fill, MAIN)

    function = ctypes.CFUNCTYPE(None)(meet)
    cupti.stub.stub_meanwhile(function)
    cupti.fill(MAIN)
    assert [step[:3] for step in watched.steps()] == [("work", 0, MAIN)] * 2
    assert watched.found() == []


def test_copies_of_page_locked_memory_race_on_the_host_side(cupti: Cupti, watched: Watched) -> None:
    cupti.copy(MAIN, LOCKED, MEMORY)
    cupti.copy(SIDE, MEMORY + 4096, LOCKED)
    (race,) = watched.found()
    assert (race.kind, race.overlap) == ("read after write", (LOCKED, 1024))


def test_copies_of_pageable_memory_do_not_race_on_the_host_side(cupti: Cupti, watched: Watched) -> None:
    cupti.copy(MAIN, PAGEABLE, MEMORY)
    cupti.copy(SIDE, MEMORY + 4096, PAGEABLE)
    cupti.copy(MAIN, PAGEABLE, MEMORY)
    assert watched.found() == []


def test_interleaved_rows_do_not_race(cupti: Cupti, watched: Watched) -> None:
    cupti.call("cuMemsetD2D8Async", "QNBNNP", MEMORY, 64, 0, 32, 16, MAIN)
    cupti.call("cuMemsetD2D8Async", "QNBNNP", MEMORY + 32, 64, 0, 32, 16, SIDE)
    assert watched.found() == []
    cupti.call("cuMemsetD2D8Async", "QNBNNP", MEMORY + 31, 64, 0, 32, 16, SIDE)
    assert len(watched.found()) == 1


# Captures


def begin_capture(cupti: Cupti, *streams: int) -> None:
    for stream in streams:
        cupti.capture(stream, 7)
    cupti.call("cuStreamBeginCapture_v2", "PI", streams[0], 0)


def end_capture(cupti: Cupti, stream: int, *streams: int, status: int = 0) -> None:
    cupti.call("cuStreamEndCapture", "PP", stream, 0, sides=1)
    if status == 0:
        for captured in (stream, *streams):
            cupti.capture(captured, 0)
    cupti.call("cuStreamEndCapture", "PP", stream, 0, sides=2, status=status)


def test_captured_work_is_no_operation(cupti: Cupti, watched: Watched) -> None:
    cupti.fill(SIDE)
    before = watched.steps()
    begin_capture(cupti, MAIN)
    cupti.fill(MAIN)
    cupti.launch(MAIN)
    cupti.copy(MAIN, MEMORY, MEMORY + 512, 16)
    cupti.record(MAIN)
    cupti.wait(MAIN)
    assert watched.steps() == before
    end_capture(cupti, MAIN)
    cupti.fill(MAIN)
    assert len(watched.found()) == 1


def test_a_stream_that_joins_a_capture_is_captured_too(cupti: Cupti, watched: Watched) -> None:
    begin_capture(cupti, MAIN)
    cupti.fill(MAIN)
    cupti.record(MAIN)
    cupti.capture(SIDE, 7)
    cupti.wait(SIDE)
    cupti.fill(SIDE)
    cupti.fill(BLOCKING)
    end_capture(cupti, MAIN, SIDE)
    assert [step[0] for step in watched.steps()] == ["work"]
    cupti.fill(SIDE)
    assert len(watched.found()) == 1  # the blocking stream did not wait


def test_a_capture_from_before_the_watch_is_found(cupti: Cupti) -> None:
    cupti.capture(MAIN, 7)
    made = Watched(cupti)
    try:
        cupti.fill(MAIN)
        assert made.steps() == []
    finally:
        made.watch.end()


def test_a_capture_that_cannot_end_goes_on(cupti: Cupti, watched: Watched) -> None:
    begin_capture(cupti, MAIN)
    end_capture(cupti, MAIN, status=FAILURE)
    cupti.fill(MAIN)
    assert watched.steps() == []


def test_without_a_capture_the_driver_is_not_asked_for_captures(cupti: Cupti, watched: Watched) -> None:
    begin_capture(cupti, MAIN)
    end_capture(cupti, MAIN)
    cupti.fill(MAIN)
    asked = cupti.stub.stub_questions()
    cupti.fill(MAIN)
    assert cupti.stub.stub_questions() == asked


# Handles


def test_streams_of_a_destroyed_context_are_forgotten(cupti: Cupti, watched: Watched) -> None:
    cupti.fill(MAIN)
    cupti.fill(FAR, MEMORY + 4096)
    assert cupti.stub.stub_resource(CONTEXT_DESTROYED, OTHER_CONTEXT) == 1
    asked = cupti.stub.stub_questions()
    cupti.fill(MAIN)
    assert cupti.stub.stub_questions() == asked
    cupti.fill(FAR, MEMORY + 4096)
    assert cupti.stub.stub_questions() > asked


def test_an_unknown_stream_is_left_out(cupti: Cupti, watched: Watched) -> None:
    cupti.fill(0x999900)
    assert watched.steps() == []


def test_a_created_stream_replaces_the_stream_before(cupti: Cupti, watched: Watched) -> None:
    handle = ctypes.c_uint64(MAIN)
    cupti.fill(MAIN)
    cupti.call("cuStreamCreate", "PI", ctypes.addressof(handle), 1)
    cupti.fill(MAIN)
    assert len(watched.found()) == 1
