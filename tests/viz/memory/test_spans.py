"""The ranges of memory that the segments had at every event."""

from __future__ import annotations

from typing import Any

import pytest

from support.snapshots import block, event, segment
from tcuda._viz.memory.spans import spans


def rows(trace: list[dict[str, Any]], *segments: dict[str, Any]) -> list[tuple[int, int, int, int | None]]:
    return [(span.address, span.size, span.start, span.end) for span in spans(trace, segments)]


@pytest.mark.parametrize(
    ("trace", "found"),
    [
        ([], [(100, 50, 0, None)]),
        ([event("segment_alloc", 100, 50)], [(100, 50, 1, None)]),
        ([event("segment_free", 300, 7)], [(100, 50, 0, None), (300, 7, 0, 1)]),
        ([event("segment_alloc", 300, 7), event("segment_free", 300, 7)], [(100, 50, 0, None), (300, 7, 1, 2)]),
        (
            [event("segment_free", 100, 20), event("segment_alloc", 100, 50)],
            [(100, 20, 0, 1), (100, 50, 2, None)],
        ),
        (
            [event("segment_map", 110, 10), event("segment_map", 120, 30)],
            [(100, 10, 0, None), (110, 10, 1, None), (120, 30, 2, None)],
        ),
    ],
)
def test_spans_begin_and_end_with_the_events_of_segments(trace: list[dict[str, Any]], found: object) -> None:
    assert rows(trace, segment(100, block(100, 50))) == found


@pytest.mark.long
def test_the_time_grows_in_proportion_to_the_events() -> None:
    count = 60_000
    starts = [event("segment_alloc", 10 * number + 1, 5) for number in range(count)]
    found = spans(starts, [segment(10 * number, block(10 * number, 9)) for number in range(count)])
    assert len(found) == 3 * count  # the part in the middle of each segment, and the parts at its sides


def test_a_span_has_the_pool_of_its_segment_and_a_freed_one_has_none() -> None:
    found = spans([event("segment_free", 1, 5)], [segment(100, block(100, 50), segment_pool_id=(1, 2))])
    assert [span.pool for span in found] == [None, (1, 2)]
