"""The activity of an emulated device: the time of work is exact, however many operations there are."""

from __future__ import annotations

import pytest

from tcuda.emulation.runtime.activity import Activity, _covered, _joined
from tcuda.emulation.runtime.clock import Clock

pytestmark = pytest.mark.emulated

MANY = 20_000
"""More operations than a device keeps."""


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def activity(clock: Clock) -> Activity:
    return Activity(clock)


def test_operations_with_gaps_that_are_complete(clock: Clock, activity: Activity) -> None:
    for _ in range(MANY):
        now = clock.now()
        activity.append((now, now + 10))
        clock.wait_until(now + 30)
    assert activity.until(clock.now()) == 10 * MANY
    assert len(activity) < MANY


def test_operations_that_are_queued_in_one_stream(clock: Clock, activity: Activity) -> None:
    for place in range(MANY):
        activity.append((10 * place, 10 * place + 10))
    assert activity.until(clock.now()) == 0
    assert activity.until(clock.wait_until(105)) == 105
    assert activity.until(clock.wait_until(10 * MANY)) == 10 * MANY
    assert len(activity) < MANY


def test_operations_that_are_queued_with_gaps(clock: Clock, activity: Activity) -> None:
    for place in range(MANY):
        activity.append((30 * place, 30 * place + 10))
    assert activity.until(clock.wait_until(30 * MANY // 2)) == 10 * MANY // 2
    assert activity.until(clock.wait_until(30 * MANY)) == 10 * MANY


def test_operations_of_two_streams_that_overlap(clock: Clock, activity: Activity) -> None:
    for _ in range(MANY):
        now = clock.now()
        activity.append((now, now + 20))
        activity.append((now + 10, now + 30))
        clock.wait_until(now + 40)
    assert activity.until(clock.now()) == 30 * MANY


def test_the_latest_operations_are_kept_for_the_share_of_time(clock: Clock, activity: Activity) -> None:
    for _ in range(MANY):
        now = clock.now()
        activity.append((now, now + 10))
        clock.wait_until(now + 30)
    end = clock.now()
    assert activity.within(end - 30_000, end) == 10_000


def test_intervals_are_joined_where_no_gap_is_between() -> None:
    assert list(_joined([(30, 40), (0, 10), (10, 20), (35, 38), (39, 50)])) == [(0, 20), (30, 50)]


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
def test_the_union_of_intervals_within_0_and_100(intervals: list[tuple[int, int]], expected: int) -> None:
    assert _covered(intervals, 0, 100) == expected


def test_the_sum_never_falls_if_old_operations_are_forgotten(clock: Clock, activity: Activity) -> None:
    activity.append((0, 10))
    clock.advance(10)
    assert activity.until(clock.now()) == 10
    activity.clear()
    assert activity.until(clock.now()) == 10
