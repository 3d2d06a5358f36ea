"""Which bytes two accesses have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.core import for_tests
from support.examples import examples
from support.happens_before import bytes_of
from support.races import BOTH, READ, WRITE, Watch, X, access, read, strided, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda import _core


def race_of(left: _core.RaceUse, right: _core.RaceUse) -> _core.Race | None:
    """Return the race of two writes."""
    watch = Watch()
    main, side = watch.streams(2)
    watch.detector.work(0, main, "first", [left])
    watch.detector.work(0, side, "second", [right])
    return watch.races[0] if watch.races else None


def overlap(left: _core.RaceUse, right: _core.RaceUse) -> tuple[int, int] | None:
    """Return the common bytes of two writes, as a race says them."""
    race = race_of(left, right)
    return None if race is None else race.overlap


def test_ranges_overlap_in_their_common_bytes() -> None:
    assert overlap(write(X, 100), write(X + 60, 100)) == (X + 60, 40)
    assert overlap(write(X, 100), write(X + 20, 10)) == (X + 20, 10)
    assert overlap(write(X, 100), write(X + 100, 100)) is None


def test_interleaved_views_are_disjoint() -> None:
    even = strided(WRITE, X, 4, (1000,), (8,))
    odd = strided(WRITE, X + 4, 4, (1000,), (8,))
    assert overlap(even, odd) is None
    assert overlap(even, even) == (X, 999 * 8 + 4)


def test_columns_of_a_large_matrix_are_disjoint() -> None:
    rows, columns = 1_000_000, 64
    left = strided(WRITE, X, 4, (rows, 32), (columns * 4, 4))
    right = strided(WRITE, X + 32 * 4, 4, (rows, 32), (columns * 4, 4))
    assert overlap(left, right) is None
    middle = strided(WRITE, X + 31 * 4, 4, (rows, 2), (columns * 4, 4))
    assert overlap(left, middle) == (X + 31 * 4, (rows - 1) * columns * 4 + 4)


def test_steps_without_a_common_multiple_meet() -> None:
    thirds = strided(WRITE, X, 1, (1_000_000,), (3,))
    fifths = strided(WRITE, X + 1, 1, (1_000_000,), (5,))
    first, size = overlap(thirds, fifths) or (0, 0)
    assert first == X + 6
    assert first + size - 1 == X + max(range(6, 3 * 1_000_000 - 2, 15))


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((10, 10), (40, 4)),
        ((10, 10), (4, 40)),
        ((10, 10), (-40, -4)),
        ((2, 5, 10), (200, 40, 4)),
        ((10, 1, 10, 3), (40, 7, 4, 0)),
    ],
)
def test_an_array_without_gaps_is_a_range(shape: Sequence[int], strides: Sequence[int]) -> None:
    begin = X + sum(-stride * (count - 1) for count, stride in zip(shape, strides, strict=True) if stride < 0)
    array = strided(WRITE, begin, 4, shape, strides)
    assert overlap(array, write(X, 400)) == (X, 400)
    assert overlap(array, write(X + 400, 1)) is None


def test_an_array_without_items_has_no_bytes() -> None:
    assert overlap(strided(WRITE, X, 4, (10, 0), (40, 4)), write(X, 400)) is None
    assert overlap(write(X, 0), write(X, 400)) is None


def test_a_scalar_has_the_bytes_of_its_item() -> None:
    assert overlap(strided(WRITE, X, 8, (), ()), write(X, 400)) == (X, 8)


def test_the_region_of_a_report_is_that_of_the_caller(watch: Watch) -> None:
    main, side = watch.streams(2)
    watch.detector.work(0, main, "flip", [strided(BOTH, X + 36, 4, (10,), (-4,))])
    watch.detector.work(0, side, "sum", [strided(READ, X, 4, (2, 5), (20, 4))])
    (race,) = watch.races
    assert race.previous.region == (X + 36, 4, (10,), (-4,))
    assert race.current.region == (X, 4, (2, 5), (20, 4))
    assert race.previous.kind == "read and write"
    assert race.kind == "read after write"


def test_a_search_that_takes_too_long_calls_the_race_possible(watch: Watch) -> None:
    main, side = watch.streams(2)
    # Three levels with strides of large primes: the bytes cannot be compared in few steps.
    left = strided(WRITE, X, 1, (997, 991, 499), (1_000_003, 997, 2))
    right = strided(WRITE, X + 1, 1, (991, 983, 499), (1_000_033, 991, 2))
    watch.detector.work(0, main, "first", [left])
    watch.detector.work(0, side, "second", [right])
    (race,) = watch.races
    assert (race.previous.confidence, race.current.confidence) == ("possible", "possible")
    assert not race.is_overlap_exact


@pytest.mark.parametrize("kind", [READ, WRITE, BOTH])
def test_a_possible_access_does_not_take_the_place_of_an_exact_one(kind: int, watch: Watch) -> None:
    main, side = watch.streams(2)
    watch.detector.work(0, main, "exact", [write()])
    for _ in range(100):
        watch.detector.work(0, main, "possible", [access(kind, confidence="possible")])
    assert for_tests.sizes_of_detector(watch.detector)["accesses"] == 2
    watch.detector.work(0, side, "second", [write()])
    assert [race.previous.operation for race in watch.races] == ["exact", "possible"]
    assert [race.previous.confidence for race in watch.races] == ["exact", "possible"]


def test_an_exact_access_takes_the_place_of_a_possible_one(watch: Watch) -> None:
    main, side = watch.streams(2)
    watch.detector.work(0, main, "possible", [access(BOTH, confidence="possible")])
    watch.detector.work(0, main, "exact", [write()])
    assert for_tests.sizes_of_detector(watch.detector)["accesses"] == 1
    watch.detector.work(0, side, "second", [write()])
    assert [race.previous.operation for race in watch.races] == ["exact"]


def test_a_race_that_is_exact_later_is_reported_again(watch: Watch) -> None:
    main, side = watch.streams(2)
    for confidence in ("possible", "exact", "possible", "exact"):
        watch.detector.device_synchronized(0)
        watch.detector.work(0, main, "first", [write()])
        watch.detector.work(0, side, "second", [access(READ, confidence=confidence)])
    assert [(race.current.confidence, race.count) for race in watch.races] == [("possible", 2), ("exact", 2)]


def test_the_confidence_of_an_access_is_in_the_report(watch: Watch) -> None:
    main, side = watch.streams(2)
    watch.detector.work(0, main, "first", [access(WRITE, confidence="possible")])
    watch.detector.work(0, side, "second", [read()])
    (race,) = watch.races
    assert (race.previous.confidence, race.current.confidence) == ("possible", "exact")


@st.composite
def arrays(draw: st.DrawFn) -> _core.RaceUse:
    """Draw an array as a program makes them: a view of a matrix, or any strides at all."""
    if draw(st.booleans()):
        rows, columns = draw(st.integers(1, 6)), draw(st.integers(1, 12))
        row_step, column_step = draw(st.integers(1, 3)), draw(st.integers(1, 3))
        itemsize = draw(st.sampled_from([1, 2, 4]))
        begin = X + draw(st.integers(0, 30)) * itemsize
        return strided(WRITE, begin, itemsize, (rows, columns), (36 * itemsize * row_step, itemsize * column_step))
    shape = draw(st.lists(st.integers(1, 5), max_size=4))
    strides = [draw(st.integers(-40, 40)) for _ in shape]
    return strided(WRITE, X + draw(st.integers(0, 60)), draw(st.integers(1, 5)), shape, strides)


@settings(max_examples=examples(250), deadline=None)
@given(left=arrays(), right=arrays())
def test_the_common_bytes_are_those_of_both_arrays(left: _core.RaceUse, right: _core.RaceUse) -> None:
    common = bytes_of(left) & bytes_of(right)
    race = race_of(left, right)
    if race is None:
        assert not common
    elif race.current.confidence == "exact":
        assert race.overlap == (min(common), max(common) + 1 - min(common))
    else:  # the search has given up, and the range may be too large
        first, size = race.overlap
        assert all(first <= place < first + size for place in common)
