"""The activity of an emulated device: the time of work is exact, however many operations there are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcuda._core import EmulatedActivity

pytestmark = pytest.mark.emulated

MANY = 20_000
"""More operations than a device keeps."""


@pytest.fixture
def activity() -> EmulatedActivity:
    return EmulatedActivity()


def test_operations_with_gaps_that_are_complete(activity: EmulatedActivity) -> None:
    for now in range(0, 30 * MANY, 30):
        activity.add(now, now + 10, now)
    assert activity.until(30 * MANY) == 10 * MANY
    assert activity.within(0, 30 * MANY) < 10 * MANY  # the oldest operations are a sum only


def test_operations_that_are_queued_in_one_stream(activity: EmulatedActivity) -> None:
    for place in range(MANY):
        activity.add(10 * place, 10 * place + 10, 0)
    assert [activity.until(now) for now in (0, 105, 10 * MANY, 20 * MANY)] == [0, 105, 10 * MANY, 10 * MANY]


def test_operations_that_are_queued_with_gaps(activity: EmulatedActivity) -> None:
    for place in range(MANY):
        activity.add(30 * place, 30 * place + 10, 0)
    assert activity.until(30 * MANY // 2) == 10 * MANY // 2
    assert activity.until(30 * MANY) == 10 * MANY


def test_operations_of_two_streams_that_overlap(activity: EmulatedActivity) -> None:
    for now in range(0, 40 * MANY, 40):
        activity.add(now, now + 20, now)
        activity.add(now + 10, now + 30, now)
    assert activity.until(40 * MANY) == 30 * MANY


def test_the_latest_operations_are_kept_for_the_share_of_time(activity: EmulatedActivity) -> None:
    for now in range(0, 30 * MANY, 30):
        activity.add(now, now + 10, now)
    assert activity.within(30 * MANY - 30_000, 30 * MANY) == 10_000


def test_operations_without_a_gap_are_one_interval(activity: EmulatedActivity) -> None:
    for place in range(MANY):
        activity.add(10 * place, 10 * place + 10, 10 * place)
    assert activity.within(0, 10 * MANY) == 10 * MANY  # of many intervals, the oldest would be a sum only


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([], 0),
        ([(10, 20)], 10),
        ([(0, 5), (95, 100)], 10),
        ([(10, 20), (20, 30)], 20),
        ([(10, 20), (15, 30)], 20),
        ([(10, 50), (20, 30), (40, 60)], 50),
        ([(40, 60), (10, 20)], 30),
        ([(10, 20), (10, 20)], 10),
        ([(-50, 10)], 10),
        ([(-50, -10)], 0),
        ([(90, 150)], 10),
        ([(100, 150)], 0),
        ([(-50, 150), (20, 30)], 100),
    ],
)
def test_the_union_of_intervals_within_0_and_100(
    activity: EmulatedActivity, intervals: list[tuple[int, int]], expected: int
) -> None:
    for start, end in intervals:
        activity.add(start, end, start)
    assert activity.within(0, 100) == expected


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 10)), max_size=12), st.integers(0, 50))
def test_the_time_of_work_is_that_of_the_union(operations: list[tuple[int, int]], now: int) -> None:
    activity = EmulatedActivity()
    for start, duration in operations:
        activity.add(start, start + duration, 0)
    busy = {each for start, duration in operations for each in range(start, start + duration)}
    assert activity.until(now) == sum(each < now for each in busy)
