"""The causes of findings: findings that one call mends are one entry in the text, in the data, and in an error."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.made_races import access, tell
from support.race_reports import FILE, SIDE, race, race_in_kernel, unwritten_read
from support.race_reports import access as made
from tcuda.sanitizer import CUDASanitizerErrors, check
from tcuda.sanitizer._causes import causes_of, mends_of
from tcuda.sanitizer._words import words_of

if TYPE_CHECKING:
    from collections.abc import Callable

emulated = pytest.mark.emulated


def causes(*findings: dict[str, Any]) -> list[list[int]]:
    return causes_of([{**finding, "words": words_of(finding)} for finding in findings])


def later(line: int, **more: Any) -> dict[str, Any]:
    """Return a race of the same streams, whose wait is missing before a later line."""
    values = {"current": made("add", "read", SIDE, line), "before": {"file": FILE, "line": line}, **more}
    return race(**values)


def test_a_wait_before_the_first_race_orders_the_later_work_of_both_streams() -> None:
    assert causes(race(), later(15), later(16)) == [[0, 1, 2]]


def test_work_that_comes_after_the_wait_needs_another_wait() -> None:
    assert causes(race(), later(20, previous=made("add", "write", 0, 18))) == [[0], [1]]


def test_a_wait_of_another_stream_is_another_cause() -> None:
    other = later(15, missing="other.wait_stream(main)", current=made("add", "read", 0x62, 15))
    assert causes(race(), other) == [[0], [1]]


def test_a_race_of_another_kind_of_call_is_another_cause() -> None:
    assert causes(race(), later(15, missing="tcuda.memory.record_stream(x, main)")) == [[0], [1]]


def test_findings_with_the_same_advice_have_one_cause() -> None:
    assert causes(race(), race(previous=made("add", "write", 0, 30))) == [[0, 1]]


def test_two_freed_arrays_without_names_are_two_causes() -> None:
    values = {"use_after_free": True, "missing": "tcuda.memory.record_stream(array, side)", "before": None}
    one, other = race(**values), race(**values, previous=made("add", "write", 0, 11))
    assert causes(one, one, other) == [[0, 1], [2]]


def test_kernels_and_reads_of_unwritten_memory_have_causes_of_their_own() -> None:
    assert causes(race_in_kernel(), race_in_kernel() | {"kernel": "second"}) == [[0], [1]]
    assert causes(unwritten_read(), unwritten_read()) == [[0], [1]]


def without_barrier(
    early: int, late: int, call: str = "__syncthreads()", *, next_round: bool = False, **more: Any
) -> dict[str, Any]:
    """Return a race of two lines of a kernel, which a barrier between the lines orders."""
    found = race_in_kernel(**more)
    lines = (late, early) if next_round else (early, late)
    return found | {
        "missing": call,
        "advice": f"A barrier (`{call}`) between line {lines[0]} and line {lines[1]} orders them.",
        "before": {"file": "kernel.cu", "line": lines[1]},
        "previous": found["previous"] | {"line": {"file": "kernel.cu", "line": early}},
        "current": found["current"] | {"line": {"file": "kernel.cu", "line": late}},
    }


def test_one_missing_barrier_of_a_kernel_is_one_cause() -> None:
    found = [without_barrier(early, late) for early in range(1, 6) for late in range(7, 15)]
    assert causes(*found) == [list(range(40))]
    worded = [{**finding, "words": words_of(finding)} for finding in found]
    told = mends_of(worded, range(40))
    assert told is not None
    assert told.startswith("one barrier between line 5 and line 7 mends these 40: also kernel.cu:8")


def test_lines_between_which_no_barrier_stands_for_all_are_two_causes() -> None:
    assert causes(without_barrier(2, 4), without_barrier(4, 6), without_barrier(1, 9)) == [[0, 2], [1]]
    # Each two of these have lines in common, and all three have none.
    assert causes(without_barrier(1, 9), without_barrier(2, 4), without_barrier(6, 8)) == [[0, 1], [2]]


def test_rounds_of_a_loop_have_a_barrier_of_their_own() -> None:
    round_ends = [without_barrier(*lines, next_round=True) for lines in ((4, 6), (4, 7), (5, 6))]
    assert causes(without_barrier(4, 6), *round_ends, without_barrier(5, 6)) == [[0, 4], [1, 2, 3]]
    worded = [{**finding, "words": words_of(finding)} for finding in round_ends]
    assert mends_of(worded, range(3)) == "one call mends these 3: also kernel.cu:7"


def test_barriers_of_warps_and_of_other_kernels_are_other_causes() -> None:
    others = [without_barrier(2, 5, "__syncwarp()"), without_barrier(2, 5) | {"kernel": "second"}]
    assert causes(without_barrier(2, 5), *others, without_barrier(3, 5)) == [[0, 3], [1], [2]]


def test_a_line_that_is_not_known_is_a_cause_of_its_own() -> None:
    unknown = without_barrier(2, 5)
    unknown["current"] = unknown["current"] | {"line": None}
    assert causes(without_barrier(2, 5), unknown | {"advice": "other"}) == [[0], [1]]


def test_numbers_of_other_processes_are_not_compared() -> None:
    assert causes(race(processes=[7]), later(15, processes=[8])) == [[0], [1]]


def test_the_line_names_the_other_places() -> None:
    found = [race(), *(later(line) for line in range(15, 20))]
    found = [{**finding, "words": words_of(finding)} for finding in found]
    assert mends_of(found, [0]) is None
    assert mends_of(found, [0, 1]) == f"one call mends these 2: also {FILE}:15"
    assert mends_of(found, range(6)) == (
        f"one call mends these 6: also {FILE}:15, {FILE}:16, {FILE}:17 and 2 more lines"
    )
    assert mends_of(found, [0, 0]) == "one call mends these 2"


def ten_reads(main: tcuda.Stream, side: tcuda.Stream) -> None:
    """Read ten arrays on a stream that does not wait."""
    for place in range(10):
        tell(main, "fill", access(place, label=f"x{place}"))
    for place in range(10):
        tell(side, f"add{place}", access(place, label=f"x{place}"))


@emulated
def test_ten_races_of_one_missing_wait_are_one_entry() -> None:
    with check(mode="collect") as report:
        ten_reads(tcuda.Stream(), tcuda.Stream())
    data = json.loads(json.dumps(report.as_dict()))
    assert len(report) == len(data["races"]) == 10
    (cause,) = data["causes"]
    assert (cause["call"], cause["findings"]) == ("side.wait_stream(main)", 10)
    assert [found["cause"] for found in data["races"]] == [1] * 10
    assert str(report).count("missing: ") == 1
    assert "\n   one call mends these 10\n" in str(report)


@emulated
def test_an_error_has_an_entry_for_each_cause() -> None:
    main, side = tcuda.Stream(), tcuda.Stream()
    arrays = [access(place, label=f"x{place}") for place in range(3)]
    with check():
        for array in arrays:
            tell(main, "fill", array)
        with pytest.raises(CUDASanitizerErrors) as caught:
            tell(side, "add", *arrays)
    assert len(caught.value.errors) == 3
    assert str(caught.value).count("missing: ") == 1
    assert str(caught.value).endswith("\n   one call mends these 3")


@emulated
def test_races_with_the_same_words_are_one() -> None:
    main, side = tcuda.Stream(), tcuda.Stream()

    def both() -> None:
        tell(main, "fill", access())
        tell(side, "add", access())
        main.wait_stream(side)

    def called_by(function: Callable[[], None]) -> None:
        function()

    with check(mode="collect") as report:
        both()
        called_by(both)
    assert len(report) == 1
    assert report.count(report[0]) == 2
    assert len(report.as_dict()["races"]) == 1
