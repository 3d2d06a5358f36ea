"""The history of allocations that the page shows."""

from __future__ import annotations

from support.snapshots import (
    LOAD,
    alloc,
    block,
    event,
    free,
    only_device,
    segment,
    snapshot,
)
from tcuda._viz.memory import devices
from tcuda._viz.shared.stacks import NO_STACK


def test_allocations_live_from_their_event_to_the_end_of_their_free() -> None:
    device = only_device(trace=[alloc(1, 100), alloc(2, 300), *free(1, 100), alloc(3, 50), *free(2, 300)])
    assert device.history.live == [0, 100, 400, 400, 300, 350, 350, 50]
    assert [(a.address, a.start, a.released, a.end) for a in device.history.allocations] == [
        (1, 1, 3, 4),
        (2, 2, 6, 7),
        (3, 5, None, None),
    ]
    assert (device.history.peak, device.peak_bytes) == (2, 400)


def test_an_address_can_be_reused() -> None:
    device = only_device(trace=[alloc(1, 100), *free(1, 100), alloc(1, 70), *free(1, 70)])
    assert device.history.live == [0, 100, 100, 0, 70, 70, 0]


def test_memory_awaiting_free_is_live() -> None:
    device = only_device(
        segment(1, block(1, 512, "active_awaiting_free", requested_size=100)),
        trace=[alloc(1, 100), event("free_requested", 1, 100)],
    )
    assert device.history.live == [0, 100, 100]
    (allocation,) = device.history.allocations
    assert (allocation.released, allocation.end) == (2, None)


def test_allocations_whose_events_are_lost_begin_before_the_trace() -> None:
    device = only_device(
        segment(10, block(10, 512, requested_size=500, frames=LOAD), block(522, 512), block(1034, 512, "inactive")),
        segment(5000, block(5000, 1024), stream=7),
        trace=[
            event("free_completed", 1, 30),  # the events of its allocation and of its request to free are lost
            *free(2, 40),
            alloc(5000, 1000),
            event("free_requested", 522, 400),
        ],
    )
    past = device.history
    assert past.live == [970, 940, 940, 900, 1900, 1900]
    found = {allocation.address: allocation for allocation in past.allocations}
    assert {address: (a.start, a.released, a.end) for address, a in found.items()} == {
        1: (0, None, 1),
        2: (0, 2, 3),
        10: (0, None, None),
        522: (0, 5, None),
        5000: (4, None, None),
    }
    assert found[10].size == 500  # the requested size, like the sizes of events
    assert found[1].stack == NO_STACK  # the stack of a free is not the stack of the allocation
    assert found[522].stack != NO_STACK  # the block at the end of the trace has the stack
    assert [allocation.address for allocation in past.allocations] == [10, 522, 2, 1, 5000]
    assert (past.peak, device.peak_bytes) == (4, 1900)


def test_without_a_trace_the_blocks_at_the_end_are_shown() -> None:
    device = only_device(
        segment(1, block(1, 1000), block(1001, 24, "inactive")), segment(5000, block(5000, 2000), stream=3)
    )
    assert (device.events, device.history.live, device.history.peak) == (0, [3000], 0)
    assert [(a.address, a.size, a.stream) for a in device.history.allocations] == [(1, 1000, 0), (5000, 2000, 3)]
    assert (device.history.reserved, device.history.times) == ([], [])


def test_a_free_without_completion_ends_at_its_request() -> None:
    device = only_device(trace=[alloc(1, 100), event("free_requested", 1, 100)])
    assert device.history.live == [0, 100, 0]


def test_a_free_that_was_not_recorded_ends_at_the_next_allocation() -> None:
    device = only_device(trace=[alloc(1, 100), alloc(1, 60), *free(1, 60)])
    assert device.history.live == [0, 100, 60, 60, 0]
    device = only_device(trace=[alloc(1, 100), alloc(1, 160)])
    assert (device.peak_bytes, [site.usage.at_peak for site in device.sites]) == (160, [160])


def test_a_second_free_changes_nothing() -> None:
    device = only_device(trace=[alloc(1, 100), *free(1, 100), *free(1, 100)])
    assert device.history.live == [0, 100, 100, 0, 0, 0]
    assert len(device.history.allocations) == 1


def test_reserved_memory_is_computed_backwards_from_the_end() -> None:
    device = only_device(
        segment(1, block(1, 700, "inactive")),
        trace=[
            event("segment_free", 9000, 200),
            alloc(1, 5),
            event("segment_map", 1, 600),
            event("segment_unmap", 1, 50),
            event("segment_alloc", 1, 100),
        ],
    )
    assert device.history.reserved == [(0, 250), (1, 50), (3, 650), (4, 600), (5, 700)]
    assert device.reserved_bytes == 700


def test_events_of_out_of_memory_and_of_snapshots_are_marks() -> None:
    oom = {"action": "oom", "size": 99, "device_free": 11, "stream": 0, "frames": []}  # torch records no address
    device = only_device(trace=[alloc(1, 5), oom, event("snapshot", 0, 0)])
    marks = device.history.marks
    assert [(mark.event, mark.action, mark.size, mark.device_free) for mark in marks] == [
        (2, "oom", 99, 11),
        (3, "snapshot", 0, None),
    ]


def test_times_never_go_back_and_may_be_absent() -> None:
    trace = [alloc(1, 5, time_us=10), alloc(2, 5, time_us=9), alloc(3, 5, time_us=12)]
    assert only_device(trace=trace).history.times == [10, 10, 12]
    del trace[1]["time_us"]
    assert only_device(trace=trace).history.times == []


def test_allocations_have_the_scope_of_their_memory() -> None:
    trace = [
        *[{**each, "scope": "before"} for each in free(5000, 30)],
        alloc(513, 512, [], scope="fft"),  # without the stack, which the block has
        alloc(6000, 20, scope="fft.plan"),
        alloc(7000, 20),
    ]
    blocks = block(1, 512, scope="state"), block(513, 512, frames=LOAD, scope="fft")
    [device], stacks = devices(snapshot(segment(1, *blocks), traces=[trace]))
    allocations = device.history.allocations
    found = {each.address: (stacks.scopes[each.stack], len(stacks.stacks[each.stack])) for each in allocations}
    assert found == {1: ("state", 2), 513: ("fft", 3), 5000: ("before", 0), 6000: ("fft.plan", 2), 7000: ("", 2)}


def test_notes_have_the_metadata_of_the_program() -> None:
    trace = [alloc(1, 5), alloc(2, 5, user_metadata="epoch 3", compile_context="1/0"), alloc(3, 5, user_metadata="x")]
    assert [allocation.note for allocation in only_device(trace=trace).history.allocations] == ["", "epoch 3, 1/0", "x"]
