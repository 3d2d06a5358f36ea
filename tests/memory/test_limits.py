"""Limits of memory that the program or the device sets, and the errors and retries at a limit."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import threading
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.busy_streams import LONG
from support.sizes import GIB, MIB
from support.threads import in_threads
from tcuda.memory import _out_of_memory

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from support.fixture_types import Changes, HoldAtMost, OutputOf

    AllocSettings = Callable[[str], AbstractContextManager[None]]

pytestmark = pytest.mark.usefixtures("allocator_as_found")

TOO_MUCH = 1 << 50


def message_of(size: int) -> str:
    """Return the message of the error for an array of ``size`` bytes that does not fit."""
    with pytest.raises(tcuda.OutOfMemoryError) as raised:
        tcuda.xp.empty(size, "B")
    return str(raised.value)


PART = ", a part of all memory of the device: 0.5 is half."


class TestFraction:
    def test_the_fraction_is_1_until_it_is_set(self, runtime: Any) -> None:
        assert tcuda.get_per_process_memory_fraction() == 1.0
        tcuda.set_per_process_memory_fraction(0.25)
        assert tcuda.get_per_process_memory_fraction() == 0.25
        tcuda.set_per_process_memory_fraction(1.0)
        assert tcuda.get_per_process_memory_fraction() == 1.0

    def test_every_device_has_its_own_fraction(self, runtime: Any) -> None:
        last = tcuda.device_count() - 1
        tcuda.set_per_process_memory_fraction(0.5, f"cuda:{last}")
        assert tcuda.get_per_process_memory_fraction(last) == 0.5
        assert tcuda.get_per_process_memory_fraction(0) == (0.5 if last == 0 else 1.0)
        with tcuda.device(last):
            assert tcuda.get_per_process_memory_fraction() == 0.5
            tcuda.set_per_process_memory_fraction(1.0)
        assert tcuda.get_per_process_memory_fraction(last) == 1.0

    @pytest.mark.parametrize(
        ("fraction", "error", "text"),
        [
            (2.0, ValueError, "Invalid fraction value: 2.0. Allowed range: 0~1" + PART),
            (-0.5, ValueError, "Invalid fraction value: -0.5. Allowed range: 0~1" + PART),
            (float("nan"), ValueError, "Invalid fraction value: nan. Allowed range: 0~1" + PART),
            ("0.5", TypeError, "Invalid type for fraction argument, must be `float`; got '0.5'"),
            (1, TypeError, "Invalid type for fraction argument, must be `float`; got 1"),
            (None, TypeError, "Invalid type for fraction argument, must be `float`; got None"),
        ],
    )
    def test_an_invalid_fraction_is_refused(self, runtime: Any, fraction: Any, error: Any, text: str) -> None:
        with pytest.raises(error) as raised:
            tcuda.set_per_process_memory_fraction(fraction)
        assert str(raised.value) == text
        assert tcuda.get_per_process_memory_fraction() == 1.0

    def test_an_invalid_device_is_refused(self, runtime: Any) -> None:
        count = tcuda.device_count()
        with pytest.raises(RuntimeError, match=f"Invalid device argument {count}: did you call init"):
            tcuda.set_per_process_memory_fraction(0.5, count)
        with pytest.raises(RuntimeError, match="Invalid device argument -1: did you call init"):
            tcuda.get_per_process_memory_fraction(-1)
        with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
            tcuda.set_per_process_memory_fraction(0.5, "cpu")
        with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
            tcuda.get_per_process_memory_fraction("cpu")

    def test_the_fraction_limits_reserved_memory(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        with hold_at_most(32 * MIB) as limit:
            kept = xp.empty(30 * MIB, "B")
            with pytest.raises(tcuda.OutOfMemoryError):
                xp.empty(30 * MIB, "B")
            assert tcuda.memory_reserved() <= limit
            del kept
            xp.empty(30 * MIB, "B")
        xp.empty(60 * MIB, "B")

    def test_the_last_segment_may_reach_the_limit_exactly(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        with hold_at_most(32 * MIB), tcuda.use_mem_pool(tcuda.MemPool()):
            xp.empty(32 * MIB, "B")
            with pytest.raises(tcuda.OutOfMemoryError):
                xp.empty(34 * MIB, "B")

    def test_memory_above_a_new_limit_stays_usable(self, xp: Any) -> None:
        kept = xp.zeros(30 * MIB, "B")
        tcuda.set_per_process_memory_fraction(0.0)
        try:
            with pytest.raises(tcuda.OutOfMemoryError):
                xp.empty(30 * MIB, "B")
            assert int(kept[-1]) == 0
        finally:
            tcuda.set_per_process_memory_fraction(1.0)
        del kept

    def test_other_devices_have_no_limit(self, xp: Any) -> None:
        last = tcuda.device_count() - 1
        if last == 0:
            pytest.skip("needs two devices, and there is one")
        tcuda.set_per_process_memory_fraction(0.0, 0)
        try:
            with tcuda.device(last):
                xp.empty(30 * MIB, "B")
        finally:
            tcuda.set_per_process_memory_fraction(1.0, 0)

    def test_the_settings_can_set_the_fraction(self, output_of: OutputOf) -> None:
        program = """
import tcuda
print(*[tcuda.get_per_process_memory_fraction(device) for device in range(tcuda.device_count())])
tcuda.set_per_process_memory_fraction(1.0)
print(tcuda.get_per_process_memory_fraction())
"""
        first, second = output_of(program, TCUDA_ALLOC_CONF="per_process_memory_fraction:0.25").splitlines()
        assert set(first.split()) == {"0.25"}
        assert second == "1.0"


class TestError:
    def test_the_error_is_a_runtime_error_and_a_memory_error(self, xp: Any) -> None:
        assert issubclass(tcuda.OutOfMemoryError, RuntimeError)
        assert issubclass(tcuda.OutOfMemoryError, MemoryError)
        for kind in (tcuda.OutOfMemoryError, RuntimeError, MemoryError):
            with pytest.raises(kind) as raised:
                xp.empty(TOO_MUCH, "B")
            assert type(raised.value).__name__ == "OutOfMemoryError"
            assert type(raised.value).__module__ == tcuda.OutOfMemoryError.__module__

    @pytest.mark.gpu
    def test_the_error_is_an_out_of_memory_error_of_cupy(self, xp: Any) -> None:
        from cupy.cuda.memory import OutOfMemoryError

        with pytest.raises(OutOfMemoryError):
            xp.empty(TOO_MUCH, "B")

    def test_the_error_can_be_pickled_and_copied(self, xp: Any) -> None:
        with pytest.raises(tcuda.OutOfMemoryError) as raised:
            xp.empty(TOO_MUCH, "B")
        for again in (pickle.loads(pickle.dumps(raised.value)), copy.copy(raised.value)):
            assert isinstance(again, tcuda.OutOfMemoryError)
            assert str(again) == str(raised.value)

    def test_an_allocation_without_an_array_raises_the_error(self, runtime: Any) -> None:
        with pytest.raises(tcuda.OutOfMemoryError, match="Tried to allocate 1048576.00 GiB"):
            tcuda.caching_allocator_alloc(TOO_MUCH)

    @pytest.mark.parametrize("size", [1 << 60, 8_000_000_000 << 30])
    def test_sizes_of_an_exabyte_have_the_words_of_torch(self, xp: Any, size: int) -> None:
        for allocate in (tcuda.caching_allocator_alloc, lambda size: xp.empty(size, "B")):
            with pytest.raises(
                tcuda.OutOfMemoryError, match="CUDA out of memory. Tried to allocate more than 1EB memory"
            ):
                allocate(size)
        with pytest.raises(tcuda.OutOfMemoryError, match=r"Tried to allocate 800000000.00 GiB. GPU 0 has a total cap"):
            tcuda.caching_allocator_alloc(800_000_000 << 30)


@pytest.mark.alone
class TestMessage:
    def test_the_message_has_every_figure(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            kept = xp.empty(3 * MIB, "B")
        with hold_at_most(20 * MIB) as limit:
            message = message_of(100 * MIB)
            free, total = tcuda.mem_get_info()
            text = _out_of_memory.size_text
            unallocated = tcuda.memory_reserved() - tcuda.memory_allocated()
            sentences = [
                "CUDA out of memory. Tried to allocate 100.00 MiB.",
                f"GPU 0 has a total capacity of {text(total)} of which {text(free)} is free.",
                f"This process may reserve at most {text(limit)}, as set by set_per_process_memory_fraction().",
                f"Arrays and buffers use {text(tcuda.memory_allocated())} of the reserved memory, and "
                f"{text(unallocated)} is reserved but unallocated. The largest free block has ",
                "Raise the limit, or drop arrays that are no longer needed.",
            ]
            for sentence in sentences:
                assert sentence in message
        del kept

    def test_the_message_has_the_memory_of_the_process_if_it_is_known(
        self, xp: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_out_of_memory, "process_memory", lambda device: 5 * MIB)
        assert "is free. This process has 5.00 MiB memory in use. Arrays and buffers use " in message_of(TOO_MUCH)
        monkeypatch.setattr(_out_of_memory, "process_memory", lambda device: None)
        assert "is free. Arrays and buffers use " in message_of(TOO_MUCH)

    @pytest.mark.emulated
    def test_the_memory_of_the_process_is_its_reserved_memory(self, xp: Any) -> None:
        gc.collect()  # the garbage of another test may hold a pool
        kept = xp.empty(30 * MIB, "B")
        tcuda.empty_cache()  # the failing allocation empties the cache, too
        held = _out_of_memory.size_text(tcuda.memory_reserved())
        assert f"This process has {held} memory in use." in message_of(TOO_MUCH)
        del kept

    def test_the_message_names_the_device(self, xp: Any) -> None:
        last = tcuda.device_count() - 1
        with tcuda.device(last):
            assert f" GPU {last} has a total capacity of " in message_of(TOO_MUCH)

    def test_the_message_has_the_largest_free_block(self, xp: Any) -> None:
        # Free blocks of several sizes, each beside a block in use. The largest is not on the last stream.
        kept = []
        for sizes in ([7 * MIB, 3 * MIB, 2 * MIB, 3 * MIB], [3000, 1000]):
            with tcuda.stream(tcuda.Stream()):
                arrays = [xp.empty(size, "B") for size in sizes]
            kept += arrays[1::2]
            del arrays
        message = message_of(TOO_MUCH)
        blocks = [
            block["size"]
            for segment in tcuda.memory_snapshot((0, 0))
            if segment["device"] == 0
            for block in segment["blocks"]
            if block["state"] == "inactive"
        ]
        assert len(blocks) >= 4
        assert f"The largest free block has {_out_of_memory.size_text(max(blocks))}." in message
        del kept

    def test_without_a_limit_the_message_names_no_limit(self, xp: Any) -> None:
        assert "set_per_process_memory_fraction" not in message_of(TOO_MUCH)

    @pytest.mark.parametrize(
        ("size", "text"),
        [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1024, "1.00 KiB"),
            (1536, "1.50 KiB"),
            (MIB, "1.00 MiB"),
            (GIB - 1, "1024.00 MiB"),
            (GIB, "1.00 GiB"),
            (TOO_MUCH, "1048576.00 GiB"),
        ],
    )
    def test_sizes_are_written_with_a_unit(self, size: int, text: str) -> None:
        assert _out_of_memory.size_text(size) == text

    @pytest.mark.parametrize(
        ("situation", "advice"),
        [
            ({"requested": 11}, "No device of this kind has that much: allocate less at a time."),
            ({"requested": 11, "limit": 5, "free": 20}, "No device of this kind has that much"),
            ({"requested": 5, "limit": 4, "free": 8}, "Raise the limit, or drop arrays"),
            ({"requested": 5, "limit": 9, "free": 2, "unallocated": 6}, "so the memory is fragmented"),
            ({"requested": 5, "free": 2, "unallocated": 5}, "call tcuda.empty_cache(), or set TCUDA_ALLOC_CONF="),
            ({"requested": 5, "free": 6}, "The device has enough free memory, but refused to give it"),
            ({"requested": 5, "free": 2, "unallocated": 4}, "Drop arrays that are no longer needed; tcuda.memory_summ"),
        ],
    )
    def test_the_advice_depends_on_the_cause(self, situation: dict[str, Any], advice: str) -> None:
        assert advice in _out_of_memory._advice(
            **({"total": 10, "limit": None, "free": 0, "unallocated": 0} | situation)
        )

    def test_the_advice_for_more_memory_than_the_device_has(self, xp: Any) -> None:
        assert message_of(TOO_MUCH).endswith("No device of this kind has that much: allocate less at a time.")

    @pytest.mark.emulated
    def test_the_advice_for_a_full_device(self, xp: Any) -> None:
        free, _ = tcuda.mem_get_info()
        kept = xp.empty(free - 64 * MIB, "B")  # pages that nobody touches take no memory of the host
        assert "Drop arrays that are no longer needed; tcuda.memory_summary()" in message_of(128 * MIB)
        del kept

    @pytest.mark.emulated
    def test_the_advice_for_memory_that_only_another_pool_may_use(self, xp: Any) -> None:
        pool = tcuda.MemPool()
        free, _ = tcuda.mem_get_info()
        with tcuda.use_mem_pool(pool):
            xp.empty(free - 64 * MIB, "B")
        assert "Much is reserved but unallocated" in message_of(128 * MIB)


class TestNothingIsLeftBehind:
    @pytest.mark.parametrize(("size", "waits"), [(100 * MIB, 3), (TOO_MUCH, 3), ((1 << 63) - 1, 0)])
    def test_only_the_failure_is_counted(
        self, xp: Any, changes: Changes, hold_at_most: HoldAtMost, size: int, waits: int
    ) -> None:
        kept = xp.empty(1000, "B")
        with hold_at_most(20 * MIB):
            with changes() as changed:
                for _ in range(3):
                    with pytest.raises(tcuda.OutOfMemoryError):
                        tcuda.caching_allocator_alloc(size)
            counted = {"num_ooms": 3, "num_alloc_retries": 3, "num_sync_all_streams": waits}
            assert changed == {key: count for key, count in counted.items() if count}
            xp.empty(10 * MIB, "B")
        del kept

    def test_arrays_keep_their_contents_after_a_failure(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        kept = xp.arange(1000)
        with hold_at_most(20 * MIB):
            message_of(100 * MIB)
            new = kept * 2
        assert int(new.sum()) == 999_000
        assert int(kept.sum()) == 499_500
        del kept, new

    def test_the_memory_of_an_operation_that_fails_half_way_comes_back(
        self, xp: Any, changes: Changes, hold_at_most: HoldAtMost
    ) -> None:
        kept = xp.ones(9 * MIB, "B")
        with hold_at_most(20 * MIB):
            with changes() as changed:
                with pytest.raises(tcuda.OutOfMemoryError):
                    (kept + kept).astype("f8")
                gc.collect()
            assert changed["num_ooms"] == 1
            assert not [key for key in changed if key.startswith("alloc") and key.endswith(".current")]
        del kept


class TestRetry:
    def test_free_memory_that_a_stream_uses_is_waited_for_and_given_back(
        self, xp: Any, changes: Changes, hold_at_most: HoldAtMost
    ) -> None:
        side = tcuda.Stream()
        with hold_at_most(60 * MIB):
            with tcuda.stream(side):
                xp.empty(40 * MIB, "B")
                tcuda._sleep(LONG)
            with changes() as changed:
                kept = xp.empty(50 * MIB, "B")
            assert changed["num_alloc_retries"] == 1
            assert changed["num_sync_all_streams"] == 1
            assert changed["reserved_bytes.all.freed"] >= 40 * MIB
            assert "num_ooms" not in changed
            assert side.query()
        del kept

    def test_memory_that_was_held_back_for_a_stream_is_waited_for(
        self, xp: Any, changes: Changes, hold_at_most: HoldAtMost
    ) -> None:
        side = tcuda.Stream()
        with hold_at_most(60 * MIB):
            doomed = xp.empty(40 * MIB, "B")
            with tcuda.stream(side):
                tcuda._sleep(LONG)
            tcuda.memory.record_stream(doomed, side)
            del doomed
            with changes() as changed:
                kept = xp.empty(50 * MIB, "B")
            assert changed["num_alloc_retries"] == 1
            assert changed["active.all.freed"] == 1
            assert "num_ooms" not in changed
        del kept

    def test_memory_that_nothing_uses_makes_room_without_waiting(
        self, xp: Any, changes: Changes, hold_at_most: HoldAtMost
    ) -> None:
        side = tcuda.Stream()
        with hold_at_most(60 * MIB):
            with tcuda.stream(side):
                xp.empty(40 * MIB, "B")
            side.synchronize()
            with changes() as changed:
                kept = xp.empty(50 * MIB, "B")
            assert changed["reserved_bytes.all.freed"] >= 40 * MIB
            assert "num_sync_all_streams" not in changed
        del kept


@pytest.mark.alone
class TestObservers:
    @pytest.fixture
    def seen(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
        """The arguments of every call of an observer."""
        seen: list[tuple[int, ...]] = []
        monkeypatch.setattr(_out_of_memory, "_observers", [])
        tcuda.memory.attach_out_of_memory_observer(lambda *facts: seen.append(facts))
        return seen

    def test_an_observer_gets_the_device_the_sizes_and_the_free_memory(
        self, xp: Any, seen: list[tuple[int, ...]]
    ) -> None:
        last = tcuda.device_count() - 1
        with tcuda.device(last):
            kept = xp.empty(30 * MIB, "B")
            message_of(TOO_MUCH)
            free, total = tcuda.mem_get_info()
        assert seen == [(last, TOO_MUCH, total, free)]
        assert free < total
        del kept
        xp.empty(1000, "B")
        assert len(seen) == 1

    def test_observers_are_called_in_order_before_the_error(self, xp: Any, seen: list[tuple[int, ...]]) -> None:
        order: list[str] = []
        tcuda.memory.attach_out_of_memory_observer(lambda *facts: order.append(f"second of {len(seen) + 1}"))
        try:
            xp.empty(TOO_MUCH, "B")
        except tcuda.OutOfMemoryError:
            order.append("error")
        assert order == ["second of 2", "error"]

    def test_an_exception_of_an_observer_replaces_the_error(self, xp: Any, seen: list[tuple[int, ...]]) -> None:
        def refuse(*facts: int) -> None:
            raise KeyError("no")

        tcuda.memory.attach_out_of_memory_observer(refuse)
        with pytest.raises(KeyError, match="no"):
            xp.empty(TOO_MUCH, "B")
        assert len(seen) == 1
        xp.empty(1000, "B")

    def test_an_observer_may_call_tcuda_allocate_and_free(self, xp: Any, seen: list[tuple[int, ...]]) -> None:
        doomed = [xp.empty(1000, "B")]

        def look(*facts: int) -> None:
            doomed.clear()
            xp.empty(2000, "B")
            tcuda.memory._snapshot()
            tcuda.empty_cache()
            tcuda.memory_summary()

        tcuda.memory.attach_out_of_memory_observer(look)
        message_of(TOO_MUCH)
        assert not doomed

    def test_an_allocation_that_fails_in_an_observer_calls_the_observers_again(
        self, xp: Any, seen: list[tuple[int, ...]]
    ) -> None:
        def again(*facts: int) -> None:
            if len(seen) < 3:
                message_of(TOO_MUCH)

        tcuda.memory.attach_out_of_memory_observer(again)
        message_of(TOO_MUCH)
        assert len(seen) == 3


class TestEmptyCache:
    def test_empty_cache_gives_all_free_memory_back(self, xp: Any, runtime: Any) -> None:
        last = tcuda.device_count() - 1
        devices = range(last + 1)
        held = [tcuda.memory_reserved(device) for device in devices]
        free = [tcuda.mem_get_info(device)[0] for device in devices]
        segments = tcuda.memory_snapshot()
        for device in {0, last}:
            with tcuda.device(device):
                xp.empty(30 * MIB, "B")
                with tcuda.stream(tcuda.Stream()):
                    xp.empty(1000, "B")
                    tcuda._sleep(LONG)
            assert tcuda.memory_reserved(device) > held[device]
        tcuda.empty_cache()
        assert [tcuda.memory_reserved(device) for device in devices] == held
        assert tcuda.memory_snapshot() == segments
        if runtime.name == "emulated":  # no other process uses the memory
            assert [tcuda.mem_get_info(device)[0] for device in devices] == free

    def test_arrays_keep_their_contents(self, xp: Any) -> None:
        doomed, kept = xp.empty(30 * MIB, "B"), xp.arange(1000)
        del doomed
        tcuda.empty_cache()
        assert 0 < tcuda.memory_reserved() < 30 * MIB
        assert int(kept.sum()) == 499_500
        del kept


def test_threads_that_run_out_of_memory_at_once_each_get_their_own_error(xp: Any, changes: Changes) -> None:
    together = threading.Barrier(4)
    told: list[str] = []

    def fail(number: int) -> None:
        together.wait()
        for _ in range(20):
            with tcuda.stream(tcuda.Stream()):
                kept = xp.empty(1000 * number, "B")
                try:
                    xp.empty(TOO_MUCH * number, "B")
                except tcuda.OutOfMemoryError as error:
                    match = re.search(r"Tried to allocate (\d+)", str(error))
                    told.append(f"{number}: {match and match[1]}")
                del kept

    with changes() as changed:
        in_threads(fail, zip(range(1, 5)))
    assert sorted(told) == sorted([f"{number}: {number << 20}" for number in range(1, 5)] * 20)
    assert changed["num_ooms"] == 80
    assert "allocation.all.current" not in changed


def test_threads_at_the_limit_get_the_memory_that_other_threads_free(
    xp: Any, changes: Changes, hold_at_most: HoldAtMost
) -> None:
    together = threading.Barrier(4)

    def work() -> None:
        together.wait()
        for size in range(1, 41):
            with tcuda.stream(tcuda.Stream()):
                xp.empty(size * MIB // 4, "B")

    # Without a limit the 32 streams of the stream pool would keep 640 MiB, 20 MiB each.
    with hold_at_most(256 * MIB) as limit, changes() as changed:
        tcuda.reset_peak_memory_stats()
        in_threads(work, 4 * [()])
        assert tcuda.max_memory_reserved() <= limit
    assert changed["reserved_bytes.all.freed"] > 0
    assert "num_ooms" not in changed


@pytest.mark.alone
class TestRejections:
    """``throw_on_cudamalloc_oom``: an allocation whose new segment would exceed the limit fails at once."""

    def test_the_free_memory_of_another_stream_stays(
        self, xp: Any, changes: Changes, hold_at_most: HoldAtMost, alloc_settings: AllocSettings
    ) -> None:
        side = tcuda.Stream()
        with alloc_settings("throw_on_cudamalloc_oom:True"), hold_at_most(60 * MIB):
            with tcuda.stream(side):
                xp.empty(40 * MIB, "B")
                tcuda._sleep(LONG)
            with changes() as changed, pytest.raises(tcuda.OutOfMemoryError) as raised:
                xp.empty(50 * MIB, "B")
            assert changed == {"num_oom_rejections": 1}
            assert str(raised.value).startswith(
                "CUDA out of memory. Allocation was preemptively rejected because it would exceed "
                "per_process_memory_fraction limit. Requested size: 50.00 MiB. GPU 0 has a total capacity of "
            )

    def test_memory_that_fits_is_given(
        self, xp: Any, changes: Changes, hold_at_most: HoldAtMost, alloc_settings: AllocSettings
    ) -> None:
        with alloc_settings("throw_on_cudamalloc_oom:True"), hold_at_most(60 * MIB), changes() as changed:
            kept = xp.empty(50 * MIB, "B")
            del kept
            xp.empty(50 * MIB, "B")  # free memory of the stream
        assert "num_oom_rejections" not in changed

    def test_nobody_is_asked_to_make_room(
        self, xp: Any, hold_at_most: HoldAtMost, alloc_settings: AllocSettings
    ) -> None:
        asked: list[int] = []

        def relieve(device: int, size: int) -> bool:
            asked.append(size)
            return False

        with (
            alloc_settings("throw_on_cudamalloc_oom:True"),
            hold_at_most(10 * MIB),
            tcuda.memory.on_out_of_memory(relieve),
        ):
            message_of(50 * MIB)
        assert asked == []

    def test_without_a_limit_the_device_decides(self, xp: Any, changes: Changes, alloc_settings: AllocSettings) -> None:
        with alloc_settings("throw_on_cudamalloc_oom:True"), changes() as changed:
            message_of(TOO_MUCH)
        assert "num_oom_rejections" not in changed
        assert changed["num_ooms"] == 1

    def test_the_count_is_reset_with_the_others(
        self, xp: Any, hold_at_most: HoldAtMost, alloc_settings: AllocSettings
    ) -> None:
        with alloc_settings("throw_on_cudamalloc_oom:True"), hold_at_most(10 * MIB):
            message_of(50 * MIB)
        assert tcuda.memory_stats()["num_oom_rejections"] > 0
        tcuda.reset_accumulated_memory_stats()
        assert tcuda.memory_stats()["num_oom_rejections"] == 0
