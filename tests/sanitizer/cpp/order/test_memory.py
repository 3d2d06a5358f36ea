"""Races in memory that is allocated, freed and handed out again."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, NoReturn

import pytest

from support.core import for_tests
from support.races import X, Y, read, write
from tcuda import _core
from tcuda.emulation.runtime.runtime import EmulatedRuntime

if TYPE_CHECKING:
    from support.races import Watch

MIB = 1 << 20


def refuse(*what: object, **facts: object) -> NoReturn:
    raise AssertionError((what, facts))


def ledger_of(*, expandable: bool) -> _core.Ledger:
    """Return the ledger of two devices of 64 MiB, with segments of one kind."""
    settings = _core.Settings()
    settings.expandable_segments = expandable
    return _core.Ledger(EmulatedRuntime(devices=2, memory=64 * MIB).memoryDriver(), 2, settings, refuse, refuse)


class TestUseAfterFree:
    def test_a_block_that_is_handed_out_while_another_stream_uses_it(self, watch: Watch) -> None:
        def allocate() -> None:
            watch.detector.memory_allocated(X, 1024, 0, main)

        def free() -> None:
            watch.detector.memory_freed(X)

        main, side = watch.streams(2)
        allocate()
        watch.detector.work(0, side, "sum", [read(X, 64)])
        free()
        allocate()
        watch.detector.work(0, main, "fill", [write(X)])
        (race,) = watch.races
        assert race.use_after_free
        before, after = race.previous_allocation, race.allocation
        assert before is not None
        assert after is not None
        assert (before.address, before.size, before.device, before.stream) == (X, 1024, 0, main)
        assert before.freed_stack is not None
        assert (before.stack[0]["name"], before.freed_stack[0]["name"]) == ("allocate", "free")
        assert after.freed_stack is None
        assert after.stack[0]["name"] == "allocate"

    def test_a_part_of_the_block_in_another_allocation(self, watch: Watch) -> None:
        main, side = watch.streams(2)
        watch.detector.memory_allocated(X, 1024, 0, main)
        watch.detector.work(0, side, "sum", [read(X, 1024)])
        watch.detector.memory_freed(X)
        watch.detector.memory_allocated(X + 512, 512, 0, main)
        watch.detector.work(0, main, "fill", [write(X + 512, 512)])
        (race,) = watch.races
        assert race.use_after_free
        assert race.overlap == (X + 512, 512)

    def test_an_order_makes_the_block_safe(self, watch: Watch) -> None:
        main, side = watch.streams(2)
        watch.detector.memory_allocated(X, 1024, 0, main)
        watch.detector.work(0, side, "sum", [read()])
        watch.detector.event_recorded(7, 0, side)
        watch.detector.memory_freed(X)
        watch.detector.event_synchronized(7)
        watch.detector.memory_allocated(X, 1024, 0, main)
        watch.detector.work(0, main, "fill", [write()])
        assert watch.races == []

    def test_a_race_within_one_allocation_is_none(self, watch: Watch) -> None:
        main, side = watch.streams(2)
        watch.detector.memory_allocated(X, 1024, 0, main)
        watch.detector.work(0, side, "sum", [read()])
        watch.detector.memory_freed(X)
        watch.detector.work(0, main, "fill", [write()])
        (race,) = watch.races
        assert not race.use_after_free
        assert race.previous_allocation is None
        assert race.allocation is not None
        assert race.allocation.freed_stack is not None


def test_unmapped_memory_is_forgotten(watch: Watch) -> None:
    main, side = watch.streams(2)
    watch.detector.memory_allocated(X, 1024, 0, main)
    watch.detector.work(0, side, "sum", [read(X), read(Y)])
    watch.detector.memory_freed(X)
    watch.detector.memory_unmapped(X, 0)
    watch.detector.work(0, main, "fill", [write(X)])
    assert watch.races == []
    watch.detector.work(0, main, "fill", [write(Y)])
    assert watch.kinds() == ["write after read"]
    assert for_tests.sizes_of_detector(watch.detector)["allocations"] == 0


def test_allocations_are_kept_only_while_an_access_of_them_is(watch: Watch) -> None:
    (main,) = watch.streams(1)
    for _ in range(100):
        watch.detector.memory_allocated(X, 1024, 0, main)
        watch.detector.work(0, main, "fill", [write()])
        watch.detector.memory_freed(X)
    assert for_tests.sizes_of_detector(watch.detector)["allocations"] == 1


@pytest.mark.emulated
class TestLedger:
    @pytest.fixture
    def ledger(self) -> _core.Ledger:
        """The ledger of two devices of 64 MiB."""
        return ledger_of(expandable=True)

    def test_a_freed_block_that_another_stream_uses(self, watch: Watch, ledger: _core.Ledger) -> None:
        def allocate() -> int:
            return ledger.allocate(0, 4096, main)

        def free(address: int) -> None:
            ledger.free(address)

        main, side = watch.streams(2)
        watch.detector.attach(ledger)
        address = allocate()
        watch.detector.work(0, side, "sum", [read(address)])
        free(address)
        assert allocate() == address
        watch.detector.work(0, main, "fill", [write(address)])
        (race,) = watch.races
        assert race.use_after_free
        assert race.previous_allocation is not None
        assert race.previous_allocation.freed_stack is not None
        assert race.previous_allocation.freed_stack[0]["name"] == "free"
        assert race.previous_allocation.stack[0]["name"] == "allocate"
        assert (race.previous_allocation.size, race.previous_allocation.stream) == (4096, main)
        watch.detector.detach()

    def test_live_memory_is_announced(self, watch: Watch, ledger: _core.Ledger) -> None:
        address = ledger.allocate(1, 4096, 0)
        watch.detector.attach(ledger)
        assert for_tests.sizes_of_detector(watch.detector)["allocations"] == 1
        ledger.free(address)

    @pytest.mark.parametrize("expandable", [False, True])
    def test_memory_that_goes_back_to_the_driver_is_forgotten(self, watch: Watch, expandable: bool) -> None:
        ledger = ledger_of(expandable=expandable)
        main, side = watch.streams(2)
        watch.detector.attach(ledger)
        address = ledger.allocate(0, 4096, main)
        watch.detector.work(0, side, "sum", [read(address)])
        ledger.free(address)
        ledger.empty_cache(0)
        sizes = for_tests.sizes_of_detector(watch.detector)
        assert (sizes["intervals"], sizes["accesses"], sizes["allocations"]) == (0, 0, 0)

    @pytest.mark.parametrize(("expandable", "races"), [(False, []), (True, ["write after read"])])
    def test_only_a_free_of_the_driver_waits_for_the_device(
        self, watch: Watch, expandable: bool, races: list[str]
    ) -> None:
        ledger = ledger_of(expandable=expandable)
        main, side = watch.streams(2)
        watch.detector.attach(ledger)
        kept = ledger.allocate(0, 32 * MIB, main)
        freed = ledger.allocate(0, 16 * MIB, main)
        watch.detector.work(0, side, "sum", [read(kept)])
        ledger.free(freed)
        ledger.empty_cache(0)
        watch.detector.work(0, main, "fill", [write(kept)])
        assert watch.kinds() == races
        ledger.free(kept)

    def test_nothing_is_told_after_detach(self, watch: Watch, ledger: _core.Ledger) -> None:
        watch.detector.attach(ledger)
        watch.detector.detach()
        watch.detector.detach()
        ledger.allocate(0, 4096, 0)
        assert for_tests.sizes_of_detector(watch.detector)["allocations"] == 0

    def test_a_ledger_has_one_detector(self, watch: Watch, ledger: _core.Ledger) -> None:
        watch.detector.attach(ledger)
        with pytest.raises(RuntimeError, match="attached to a ledger already"):
            watch.detector.attach(ledger)
        other = _core.RaceDetector(print)
        with pytest.raises(RuntimeError, match="another detector"):
            other.attach(ledger)
        watch.detector.detach()
        other.attach(ledger)
        del other
        gc.collect()
        watch.detector.attach(ledger)

    def test_the_snapshot_has_no_stacks_unless_the_history_wants_them(self, watch: Watch, ledger: _core.Ledger) -> None:
        watch.detector.attach(ledger)
        ledger.allocate(0, 4096, 0)
        segments, _ = ledger.snapshot(None, False)
        assert [block["frames"] for segment in segments for block in segment["blocks"]] == [[], []]
