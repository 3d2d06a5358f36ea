"""Which calls order the work of streams, so that a race of two accesses is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.core import for_tests
from support.races import SIZE, X, Y, read, write
from support.threads import in_thread

if TYPE_CHECKING:
    from support.races import Watch


@pytest.fixture
def pair(watch: Watch) -> tuple[int, int]:
    """Two streams that do not wait for the default stream."""
    main, side = watch.streams(2)
    return main, side


def test_a_read_on_another_stream_races_with_a_write(watch: Watch, pair: tuple[int, int]) -> None:
    main, side = pair
    watch.detector.work(0, main, "fill", [write(label="out")])
    watch.detector.work(0, side, "sum", [read(label="x")])
    (race,) = watch.races
    assert race.kind == "read after write"
    assert (race.previous.operation, race.previous.label, race.previous.kind) == ("fill", "out", "write")
    assert (race.current.operation, race.current.label, race.current.kind) == ("sum", "x", "read")
    assert (race.previous.device, race.previous.stream) == (0, main)
    assert (race.current.device, race.current.stream) == (0, side)
    assert race.overlap == (X, SIZE)
    assert race.previous.number < race.current.number
    assert not race.use_after_free
    assert race.allocation is None
    assert race.current.stack[0]["name"] == "test_a_read_on_another_stream_races_with_a_write"
    assert race.current.stack[0]["line"] == race.previous.stack[0]["line"] + 1


def test_the_kind_names_both_accesses(watch: Watch, pair: tuple[int, int]) -> None:
    main, side = pair
    watch.detector.work(0, main, "sum", [read()])
    watch.detector.work(0, side, "fill", [write()])
    assert watch.kinds() == ["write after read"]
    watch.detector.device_synchronized(0)
    watch.detector.work(0, main, "fill", [write()])
    watch.detector.work(0, side, "fill", [write()])
    assert watch.kinds() == ["write after write"]


def test_two_reads_do_not_race(watch: Watch, pair: tuple[int, int]) -> None:
    for stream in pair:
        watch.detector.work(0, stream, "sum", [read()])
    assert watch.races == []


def test_work_of_one_stream_is_in_order(watch: Watch, pair: tuple[int, int]) -> None:
    for _ in range(3):
        watch.detector.work(0, pair[0], "add", [read(), write()])
    assert watch.races == []


def test_other_memory_does_not_race(watch: Watch, pair: tuple[int, int]) -> None:
    main, side = pair
    watch.detector.work(0, main, "fill", [write(X)])
    watch.detector.work(0, side, "fill", [write(Y)])
    watch.detector.work(0, side, "fill", [write(X + SIZE)])
    assert watch.races == []


class TestEvents:
    def test_a_wait_for_an_event_orders(self, watch: Watch, pair: tuple[int, int]) -> None:
        main, side = pair
        watch.detector.work(0, main, "fill", [write()])
        watch.detector.event_recorded(7, 0, main)
        watch.detector.event_waited(7, 0, side)
        watch.detector.work(0, side, "sum", [read()])
        assert watch.races == []

    def test_a_record_before_the_work_orders_nothing(self, watch: Watch, pair: tuple[int, int]) -> None:
        main, side = pair
        watch.detector.event_recorded(7, 0, main)
        watch.detector.work(0, main, "fill", [write()])
        watch.detector.event_waited(7, 0, side)
        watch.detector.work(0, side, "sum", [read()])
        assert watch.kinds() == ["read after write"]

    def test_a_wait_takes_the_last_record_before_it(self, watch: Watch, pair: tuple[int, int]) -> None:
        main, side = pair
        watch.detector.event_recorded(7, 0, main)
        watch.detector.event_waited(7, 0, side)
        watch.detector.work(0, main, "fill", [write()])
        watch.detector.event_recorded(7, 0, main)
        watch.detector.work(0, side, "sum", [read()])
        assert watch.kinds() == ["read after write"]

    def test_waits_are_transitive(self, watch: Watch) -> None:
        first, second, third = watch.streams(3)
        watch.detector.work(0, first, "fill", [write()])
        watch.detector.event_recorded(7, 0, first)
        watch.detector.event_waited(7, 0, second)
        watch.detector.event_recorded(8, 0, second)
        watch.detector.event_waited(8, 0, third)
        watch.detector.work(0, third, "sum", [read()])
        assert watch.races == []

    def test_a_wait_for_an_event_without_a_record_does_nothing(self, watch: Watch, pair: tuple[int, int]) -> None:
        watch.detector.event_waited(7, 0, pair[0])
        watch.detector.event_synchronized(7)
        watch.detector.event_destroyed(7)
        assert watch.races == []

    def test_the_host_knows_what_comes_before_an_event_that_it_waits_for(
        self, watch: Watch, pair: tuple[int, int]
    ) -> None:
        main, side = pair
        watch.detector.work(0, main, "fill", [write(X)])
        watch.detector.event_recorded(7, 0, main)
        watch.detector.work(0, main, "fill", [write(Y)])
        watch.detector.event_synchronized(7)
        watch.detector.work(0, side, "sum", [read(X)])
        assert watch.races == []
        watch.detector.work(0, side, "sum", [read(Y)])
        assert watch.kinds() == ["read after write"]


class TestTheHost:
    def test_a_wait_for_a_stream_orders_all_later_work(self, watch: Watch, pair: tuple[int, int]) -> None:
        main, side = pair
        watch.detector.work(0, main, "fill", [write()])
        watch.detector.stream_synchronized(0, main)
        watch.detector.work(0, side, "sum", [read()])
        assert watch.races == []

    def test_a_wait_for_another_stream_does_not(self, watch: Watch, pair: tuple[int, int]) -> None:
        main, side = pair
        watch.detector.work(0, main, "fill", [write()])
        watch.detector.stream_synchronized(0, side)
        watch.detector.work(0, side, "sum", [read()])
        assert watch.kinds() == ["read after write"]

    def test_a_wait_for_a_device_is_for_its_streams_only(self, watch: Watch) -> None:
        (here,), (there,) = watch.streams(1), watch.streams(1, device=1)
        watch.detector.work(0, here, "fill", [write(X)])
        watch.detector.work(1, there, "fill", [write(Y)])
        watch.detector.device_synchronized(0)
        watch.detector.work(1, there, "sum", [read(X)])
        assert watch.races == []
        watch.detector.work(0, here, "sum", [read(Y)])
        assert watch.kinds() == ["read after write"]

    def test_a_wait_for_a_device_includes_destroyed_streams(self, watch: Watch, pair: tuple[int, int]) -> None:
        main, side = pair
        watch.detector.work(0, main, "fill", [write()])
        watch.detector.stream_destroyed(0, main)
        watch.detector.device_synchronized(0)
        watch.detector.work(0, side, "sum", [read()])
        assert watch.races == []

    def test_a_read_of_a_copy_that_is_not_done_races(self, watch: Watch, pair: tuple[int, int]) -> None:
        watch.detector.work(0, pair[0], "copy to host", [read(X), write(Y)])
        for_tests.host_access(watch.detector, "numpy", [read(Y)])
        (race,) = watch.taken()
        assert (race.kind, race.current.host, race.current.device) == ("read after write", True, -1)
        watch.detector.stream_synchronized(0, pair[0])
        for_tests.host_access(watch.detector, "numpy", [read(Y)])
        assert watch.races == []

    def test_a_write_to_a_buffer_that_the_device_reads_races(self, watch: Watch, pair: tuple[int, int]) -> None:
        watch.detector.work(0, pair[0], "copy to device", [read(Y), write(X)])
        for_tests.host_access(watch.detector, "numpy", [read(Y)])
        assert watch.races == []
        for_tests.host_access(watch.detector, "numpy", [write(Y)])
        assert watch.kinds() == ["write after read"]

    def test_work_comes_after_earlier_accesses_of_the_host(self, watch: Watch, pair: tuple[int, int]) -> None:
        for_tests.host_access(watch.detector, "numpy", [write(Y)])
        watch.detector.work(0, pair[0], "copy to device", [read(Y), write(X)])
        assert watch.races == []


class TestStreams:
    def test_a_handle_that_is_used_again_is_another_stream(self, watch: Watch) -> None:
        (main,) = watch.streams(1)
        watch.detector.work(0, main, "fill", [write()])
        watch.detector.stream_destroyed(0, main)
        watch.detector.stream_created(0, main, False)
        watch.detector.work(0, main, "sum", [read()])
        assert watch.kinds() == ["read after write"]

    def test_a_slot_is_used_again_once_the_host_knows_its_work(self, watch: Watch) -> None:
        for _ in range(50):
            (main,) = watch.streams(1)
            watch.detector.work(0, main, "fill", [write()])
            watch.detector.stream_synchronized(0, main)
            watch.detector.stream_destroyed(0, main)
        assert watch.races == []
        assert for_tests.sizes_of_detector(watch.detector)["slots"] == 1

    def test_one_operation_on_several_streams_comes_after_the_work_of_all(self, watch: Watch) -> None:
        first, second, third = watch.streams(3)
        watch.detector.work(0, first, "fill", [write(X)])
        watch.detector.work(0, second, "fill", [write(Y)])
        watch.detector.work_together([(0, first), (0, second)], "reduce", [read(X), read(Y)])
        watch.detector.work(0, second, "fill", [write(X)])
        watch.detector.work(0, first, "fill", [write(Y)])
        assert watch.races == []
        watch.detector.work(0, third, "sum", [read(X)])
        assert watch.kinds() == ["read after write"]


class TestPerThreadDefaultStream:
    def test_is_another_stream_in_each_thread(self, watch: Watch) -> None:
        in_thread(watch.detector.work, 0, 2, "fill", [write()])
        watch.detector.work(0, 2, "sum", [read()])
        (race,) = watch.races
        assert (race.previous.stream, race.current.stream) == (2, 2)

    def test_orders_itself_with_the_legacy_default_stream(self, watch: Watch) -> None:
        watch.detector.work(0, 2, "fill", [write()])
        watch.detector.work(0, 0, "add", [read(), write()])
        watch.detector.work(0, 2, "sum", [read()])
        assert watch.races == []


class TestLegacyDefaultStream:
    @pytest.mark.parametrize("legacy", [0, 1])
    def test_orders_the_blocking_streams(self, watch: Watch, legacy: int) -> None:
        main, side = watch.streams(2, blocking=True)
        watch.detector.work(0, main, "fill", [write()])
        watch.detector.work(0, legacy, "add", [read(), write()])
        watch.detector.work(0, side, "sum", [read()])
        assert watch.races == []

    def test_does_not_order_other_streams(self, watch: Watch) -> None:
        (main,) = watch.streams(1)
        watch.detector.work(0, main, "fill", [write(X)])
        watch.detector.work(0, 0, "sum", [read(X), write(Y)])
        assert watch.kinds() == ["read after write"]
        watch.detector.work(0, main, "sum", [read(Y)])
        assert watch.kinds() == ["read after write"]

    def test_blocking_streams_do_not_order_each_other(self, watch: Watch) -> None:
        main, side = watch.streams(2, blocking=True)
        watch.detector.work(0, 0, "fill", [write()])
        watch.detector.work(0, main, "add", [read(), write()])
        watch.detector.work(0, side, "sum", [read()])
        assert watch.kinds() == ["read after write"]

    def test_is_another_stream_on_each_device(self, watch: Watch) -> None:
        watch.detector.work(0, 0, "fill", [write()])
        watch.detector.work(1, 0, "sum", [read()])
        assert watch.kinds() == ["read after write"]

    def test_waits_for_blocking_streams_that_are_destroyed(self, watch: Watch) -> None:
        main, side = watch.streams(2, blocking=True)
        watch.detector.work(0, main, "fill", [write()])
        watch.detector.stream_destroyed(0, main)
        watch.detector.work(0, 0, "add", [read(), write()])
        watch.detector.work(0, side, "sum", [read()])
        assert watch.races == []

    def test_stays_the_same_when_it_is_announced_again(self, watch: Watch) -> None:
        (main,) = watch.streams(1, blocking=True)
        watch.detector.work(0, 0, "fill", [write()])
        watch.detector.stream_created(0, 0, False)
        watch.detector.stream_destroyed(0, 0)
        watch.detector.work(0, main, "sum", [read()])
        assert watch.races == []

    def test_a_wait_for_it_includes_the_blocking_streams(self, watch: Watch) -> None:
        main, other = watch.streams(1, blocking=True)[0], 0x900
        watch.detector.stream_created(0, other, False)
        watch.detector.work(0, main, "fill", [write()])
        watch.detector.stream_synchronized(0, 0)
        watch.detector.work(0, other, "sum", [read()])
        assert watch.races == []
