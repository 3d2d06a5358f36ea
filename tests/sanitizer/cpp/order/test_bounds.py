"""How much the detector keeps: no more for a long program than for a short one."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from support.core import for_tests
from support.races import READ, WRITE, X, access, strided

if TYPE_CHECKING:
    from support.races import Watch

ARRAYS, LAUNCHES = 1000, 30_000


def test_launches_over_the_same_arrays_keep_the_size(watch: Watch) -> None:
    def launch(count: int) -> None:
        for _ in range(count):
            stream, source, target = choose.choice(streams), choose.randrange(ARRAYS), choose.randrange(ARRAYS)
            event = streams.index(stream)
            watch.detector.event_waited(last[target] if last[target] is not None else event, 0, stream)
            watch.detector.work(
                0, stream, "add", [access(READ, X + source * 4096, 4096), access(WRITE, X + target * 4096, 4096)]
            )
            watch.detector.event_recorded(event, 0, stream)
            last[target] = event

    choose = random.Random(7)
    streams = [*watch.streams(7), 0]
    last: list[int | None] = [None] * ARRAYS
    sizes = []
    for _ in range(3):
        launch(LAUNCHES)
        watch.races.clear()
        sizes.append(for_tests.sizes_of_detector(watch.detector))
    before, *later = sizes
    assert before["intervals"] <= ARRAYS
    assert before["accesses"] <= ARRAYS * 2 * len(streams)
    assert (before["slots"], before["events"]) == (len(streams), len(streams))
    for after in later:
        assert after["intervals"] <= ARRAYS
        assert after["accesses"] <= before["accesses"] * 1.1
        assert {key: after[key] for key in ("slots", "events", "races")} == {
            key: before[key] for key in ("slots", "events", "races")
        }


def test_parts_of_an_array_merge_again(watch: Watch) -> None:
    (main,) = watch.streams(1)
    choose = random.Random(7)
    for _ in range(20):
        for _ in range(200):
            begin, size = choose.randrange(3000), choose.randrange(1, 1000)
            watch.detector.work(0, main, "fill", [access(WRITE, X + begin, size)])
        watch.detector.work(0, main, "fill", [access(WRITE, X, 4096)])
        assert for_tests.sizes_of_detector(watch.detector)["intervals"] == 1
        assert for_tests.sizes_of_detector(watch.detector)["accesses"] == 1


def test_columns_that_are_written_again_replace_the_old_accesses(watch: Watch) -> None:
    (main,) = watch.streams(1)
    for _ in range(10):
        for column in range(100):
            watch.detector.work(0, main, "fill", [strided(WRITE, X + 4 * column, 4, (64,), (400,))])
    assert for_tests.sizes_of_detector(watch.detector)["accesses"] == 100
    watch.detector.work(0, main, "fill", [access(WRITE, X, 64 * 400)])
    assert for_tests.sizes_of_detector(watch.detector)["accesses"] == 1


def test_accesses_that_the_host_knows_are_forgotten(watch: Watch) -> None:
    (main,) = watch.streams(1)
    for turn in range(20_000):
        watch.detector.work(0, main, "fill", [access(WRITE, X + 8192 * turn, 4096)])
        if turn % 100 == 0:
            watch.detector.stream_synchronized(0, main)
    assert for_tests.sizes_of_detector(watch.detector)["intervals"] <= 4200


def test_the_oldest_accesses_are_forgotten_where_nothing_supersedes_them(watch: Watch) -> None:
    main, side = watch.streams(2)
    count = 300_000
    for first in range(0, count, 1000):
        places = range(first, first + 1000)
        watch.detector.work(0, main, "fill", [access(WRITE, X + 8 * place, 4) for place in places])
    assert for_tests.sizes_of_detector(watch.detector)["accesses"] <= 1 << 18
    watch.detector.work(0, side, "sum", [access(READ, X, 4)])
    assert watch.races == []
    watch.detector.work(0, side, "sum", [access(READ, X + 8 * (count - 1), 4)])
    assert watch.kinds() == ["read after write"]


def test_the_table_of_races_has_a_limit(watch: Watch) -> None:
    main, side = watch.streams(2)
    watch.detector.work(0, main, "fill", [access(WRITE, X, 4)])
    for number in range(5000):
        watch.detector.work(0, side, f"sum {number}", [access(READ, X, 4)])
    assert len(watch.races) == for_tests.sizes_of_detector(watch.detector)["races"] == 4096
    watch.detector.forget_races()
    watch.detector.work(0, side, "sum", [access(READ, X, 4)])
    assert len(watch.races) == 4097


def test_streams_that_come_and_go_share_slots(watch: Watch) -> None:
    for turn in range(1000):
        streams = [0x100 + 2 * place for place in range(4)]
        for stream in streams:
            watch.detector.stream_created(0, stream, turn % 2 == 0)
            watch.detector.work(0, stream, "fill", [access(WRITE, X + stream * 4096, 4096)])
        watch.detector.device_synchronized(0)
        for stream in streams:
            watch.detector.stream_destroyed(0, stream)
    assert for_tests.sizes_of_detector(watch.detector)["slots"] <= 4
    assert watch.races == []
