"""The segments that the page shows."""

from __future__ import annotations

from support.snapshots import (
    alloc,
    block,
    only_device,
    segment,
    snapshot,
)
from tcuda._viz.memory import devices
from tcuda._viz.memory.segments import ALLOCATED, AWAITING_FREE, FREE


def test_segments_are_grouped_by_pool_and_stream() -> None:
    device = only_device(
        segment(1, block(1, 10)),
        segment(100, block(100, 40), stream=5),
        segment(200, block(200, 20), segment_pool_id=[1, 0]),
        segment(300, block(300, 25)),
    )
    assert [(group.pool, group.stream, [s.address for s in group.segments]) for group in device.groups] == [
        ((0, 0), 5, [100]),
        ((0, 0), 0, [300, 1]),
        ((1, 0), 0, [200]),
    ]
    assert (device.segments, device.reserved_bytes) == (4, 95)


def test_a_group_has_the_sums_of_its_blocks() -> None:
    (group,) = only_device(
        segment(
            1000,
            block(1000, 512, requested_size=500),
            block(1512, 100, "inactive"),
            block(1612, 50, "active_awaiting_free"),
            block(1662, 60, "active_pending_free"),
            block(1722, 300, "inactive"),
        )
    ).groups
    assert [group.bytes_in(state) for state in (ALLOCATED, AWAITING_FREE, FREE)] == [512, 110, 400]
    assert (group.reserved, group.largest_free, group.rounding) == (1022, 300, 12)
    assert [each.offset for each in group.segments[0].blocks] == [0, 512, 612, 662, 722]


def test_blocks_of_older_versions_have_no_addresses() -> None:
    blocks = [block(0, 512), block(0, 88, "inactive"), block(0, 40)]
    for each in blocks:
        del each["address"], each["requested_size"]
    device = only_device(segment(1000, *blocks))
    assert [each.offset for each in device.groups[0].segments[0].blocks] == [0, 512, 600]
    assert [(a.address, a.size) for a in device.history.allocations] == [(1000, 512), (1600, 40)]


def test_devices_are_those_with_segments_or_events() -> None:
    found, _ = devices(snapshot(segment(1, block(1, 2), device=3), traces=[[], [alloc(1, 5)], []]))
    assert [(device.index, device.events, device.segments) for device in found] == [(1, 1, 0), (3, 0, 1)]
    found, _ = devices(snapshot())
    assert [(device.index, device.history.live) for device in found] == [(0, [0])]
