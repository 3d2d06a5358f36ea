"""How races are reported: once each, to a function that may raise."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from support.core import for_tests
from support.races import SIZE, X, Y, read, write
from support.threads import in_threads
from tcuda import _core

if TYPE_CHECKING:
    from support.races import Watch


def race_once(watch: Watch, main: int, side: int) -> None:
    watch.detector.work(0, main, "fill", [write()])
    watch.detector.work(0, side, "sum", [read()])
    watch.detector.device_synchronized(0)


class TestEqualRaces:
    def test_are_counted(self, watch: Watch) -> None:
        main, side = watch.streams(2)
        for _ in range(5):
            race_once(watch, main, side)
        (race,) = watch.races
        assert race.count == 5
        assert for_tests.sizes_of_detector(watch.detector)["races"] == 1
        assert [known.count for known in watch.detector.races()] == [5]

    def test_have_the_same_lines(self, watch: Watch) -> None:
        main, side = watch.streams(2)
        race_once(watch, main, side)
        race_once(watch, main, side)
        assert len(watch.races) == 2

    def test_have_the_same_names(self, watch: Watch) -> None:
        main, side = watch.streams(2)
        for name in ("sum", "max"):
            watch.detector.work(0, main, "fill", [write()])
            watch.detector.work(0, side, name, [read()])
            watch.detector.device_synchronized(0)
        assert [race.current.operation for race in watch.races] == ["sum", "max"]

    def test_are_reported_again_after_they_are_forgotten(self, watch: Watch) -> None:
        main, side = watch.streams(2)
        for _ in range(2):
            race_once(watch, main, side)
            watch.detector.forget_races()
        assert len(watch.races) == 2
        assert watch.detector.races() == []

    def test_a_race_in_several_pieces_counts_once(self, watch: Watch) -> None:
        main, side, other = watch.streams(3)
        watch.detector.work(0, main, "fill", [write()])
        watch.detector.event_recorded(7, 0, main)
        watch.detector.event_waited(7, 0, other)
        watch.detector.work(0, other, "sum", [read(X + SIZE // 2, 8)])
        watch.detector.work(0, side, "sum", [read()])
        (race,) = watch.races
        assert race.count == 1


class TestExceptions:
    def test_reach_the_caller_and_leave_the_detector_usable(self) -> None:
        def refuse(race: _core.Race) -> None:
            raise LookupError(race.kind)

        detector = _core.RaceDetector(refuse)
        for _ in range(2):
            detector.work(0, 0x10, "fill", [write()])
            with pytest.raises(LookupError, match="read after write"):
                detector.work(0, 0x12, "sum", [read()])
            detector.device_synchronized(0)
            detector.forget_races()
        detector.work(0, 0x10, "fill", [write()])
        detector.work(0, 0x10, "sum", [read()])

    def test_the_other_races_of_the_event_are_kept(self) -> None:
        def refuse(race: _core.Race) -> None:
            raise LookupError(race.current.label)

        detector = _core.RaceDetector(refuse)
        detector.work(0, 0x10, "fill", [write(X), write(Y)])
        with pytest.raises(LookupError, match="x"):
            detector.work(0, 0x12, "add", [read(X, label="x"), read(Y, label="y")])
        assert [race.current.label for race in detector.races()] == ["x", "y"]

    def test_the_function_may_use_the_detector(self) -> None:
        def look(race: _core.Race) -> None:
            detector.work(0, 0x14, "nested", [read(Y)])
            seen.append((race.current.operation, for_tests.sizes_of_detector(detector)["races"]))

        seen: list[tuple[str, int]] = []
        detector = _core.RaceDetector(look)
        detector.work(0, 0x10, "fill", [write(X)])
        detector.work(0, 0x12, "sum", [read(X)])
        assert seen == [("sum", 1)]


class TestMistakes:
    @pytest.mark.parametrize(
        ("use", "error", "message"),
        [
            (7, ValueError, "no tuple of six or seven items"),
            ((X, 1, (8,), (1,)), ValueError, "no tuple of six or seven items"),
            ((X, 1, (8,), (1, 1), 1, ""), ValueError, "no tuples of the same length"),
            ((X, 1, [8], [1], 1, ""), ValueError, "no tuples of the same length"),
            ((X, 1, (8,), (1,), 0, ""), ValueError, "neither 1"),
            ((X, -1, (8,), (1,), 1, ""), ValueError, "itemsize is negative"),
            ((X, 1, (8,), (1,), 1, "", "sure"), ValueError, 'neither "exact" nor "possible"'),
            ((X, 1, (8,), (1,), 1, None), TypeError, "a label must be a str"),
            ((X, 1, ("8",), (1,), 1, ""), TypeError, "integer"),
        ],
    )
    def test_an_access_has_a_form(self, watch: Watch, use: Any, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            watch.detector.work(0, 0x10, "fill", [use])
        assert watch.detector.operations == 0

    def test_a_name_is_a_str(self, watch: Watch) -> None:
        with pytest.raises(TypeError, match="a name must be a str"):
            watch.detector.work(0, 0x10, 7, [])  # type: ignore[arg-type]  # the mistake


class TestRecent:
    def test_has_the_last_work_and_what_orders_it(self, watch: Watch) -> None:
        main, side = watch.streams(2)
        watch.detector.work(0, main, "fill", [write()])
        watch.detector.event_recorded(7, 0, main)
        watch.detector.event_waited(7, 0, side)
        watch.detector.stream_synchronized(0, side)
        watch.detector.device_synchronized(0)
        watch.detector.event_synchronized(7)
        steps = for_tests.recent_steps(watch.detector)
        assert [(step["kind"], step["device"], step["stream"], step["event"]) for step in steps] == [
            ("work", 0, main, None),
            ("record", 0, main, 7),
            ("wait", 0, side, 7),
            ("sync", 0, side, None),
            ("sync", 0, None, None),
            ("sync", -1, 0, 7),
        ]
        assert [step["name"] for step in steps] == ["fill", "", "", "", "", ""]
        lines = [step["stack"][0]["line"] for step in steps]
        assert lines == list(range(lines[0], lines[0] + 6))

    def test_is_kept_with_a_race(self, watch: Watch) -> None:
        main, side = watch.streams(2)
        race_once(watch, main, side)
        for _ in range(100):
            watch.detector.work(0, main, "fill", [write(Y)])
        assert len(for_tests.recent_steps(watch.detector)) == 64
        assert {step["name"] for step in for_tests.recent_steps(watch.detector)} == {"fill"}
        assert [step["name"] for step in watch.races[0].recent] == ["fill", "sum"]


def test_a_detector_and_its_function_may_refer_to_each_other() -> None:
    class Owner:
        def __init__(self) -> None:
            self.detector = _core.RaceDetector(self.take)
            self.graph = self.detector.graph([])

        def take(self, race: _core.Race) -> None:
            raise NotImplementedError

    gone = weakref.ref(Owner())
    gc.collect()
    assert gone() is None


def test_threads_may_use_one_detector(watch: Watch) -> None:
    def use(place: int) -> None:
        own, ours = X + place * 0x1000, 0x500 + 2 * place
        watch.detector.stream_created(0, ours, place % 2 == 0)
        start.wait()
        for turn in range(500):
            watch.detector.work(0, ours, "add", [read(own), write(own)])
            watch.detector.event_recorded(place, 0, ours)
            watch.detector.event_waited((place + 1) % 8, 0, ours)
            watch.detector.work(0, 2, "sum", [read(own + 0x800, 8)])
            watch.detector.memory_allocated(own, SIZE, 0, ours)
            if turn % 50 == 0:
                watch.detector.stream_synchronized(0, ours)
                for_tests.host_access(watch.detector, "look", [read(own)])
            watch.detector.memory_freed(own)

    start = threading.Barrier(8)
    in_threads(use, zip(range(8)))
    assert watch.races == []
    assert watch.detector.operations == 8 * (2 * 500 + 10)
