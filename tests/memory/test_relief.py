"""The callbacks of ``on_out_of_memory``: when they are called, and what happens to the allocation."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.busy_streams import keep_busy
from support.threads import in_thread, in_threads
from tcuda.memory import on_out_of_memory

if TYPE_CHECKING:
    from support.fixture_types import Changes, HoldAtMost, OutputOf

MIB = 1 << 20
ROOM = 40 * MIB
"""What the process may reserve in most tests."""

pytestmark = pytest.mark.usefixtures("allocator_as_found")


def array(size: int) -> Any:
    return tcuda.xp.empty(size, "B")


class Cache:
    """Arrays that a callback drops one by one."""

    def __init__(self, *sizes: int) -> None:
        self.arrays = [array(size) for size in sizes]
        self.calls: list[tuple[int, int]] = []

    def drop(self, device: int, size: int) -> bool:
        self.calls.append((device, size))
        if not self.arrays:
            return False
        self.arrays.pop()
        return True


class TestCalls:
    def test_the_allocation_is_tried_again_until_there_is_room(
        self, xp: Any, hold_at_most: HoldAtMost, changes: Changes
    ) -> None:
        with hold_at_most(ROOM):
            cache = Cache(*[10 * MIB] * 4)
            with changes() as changed, on_out_of_memory(cache.drop):
                new = array(20 * MIB)
        assert cache.calls == [(0, 20 * MIB)] * 2
        assert len(cache.arrays) == 2
        assert "num_ooms" not in changed
        assert changed["num_alloc_retries"] == 2  # torch counts each time that the cache was given back
        del new

    def test_cached_memory_is_given_back_before(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        with hold_at_most(ROOM):
            cache = Cache(10 * MIB)
            with tcuda.stream(tcuda.Stream()):
                array(25 * MIB)  # free memory of another stream
            with on_out_of_memory(cache.drop):
                array(25 * MIB)
        assert cache.calls == []

    @pytest.mark.parametrize("answer", [False, None, 0])
    def test_the_error_is_raised_if_no_callback_returns_true(
        self, xp: Any, hold_at_most: HoldAtMost, changes: Changes, answer: Any
    ) -> None:
        asked: list[tuple[int, int]] = []

        def refuse(device: int, size: int) -> Any:
            asked.append((device, size))
            return answer

        with hold_at_most(ROOM):
            kept = array(ROOM)
            with (
                changes() as changed,
                on_out_of_memory(refuse),
                pytest.raises(tcuda.OutOfMemoryError, match=r"20\.00 M"),
            ):
                array(20 * MIB)
        assert asked == [(0, 20 * MIB)]
        assert changed == {"num_ooms": 1, "num_alloc_retries": 1, "num_sync_all_streams": 1}
        del kept

    def test_nobody_can_make_room_for_more_than_the_process_may_reserve(
        self, xp: Any, hold_at_most: HoldAtMost
    ) -> None:
        tcuda.empty_cache()
        with hold_at_most(ROOM) as limit:
            cache = Cache(10 * MIB)
            with on_out_of_memory(cache.drop):
                for size in (limit + 1, 1 << 50):
                    with pytest.raises(tcuda.OutOfMemoryError):
                        array(size)
        assert cache.calls == []

    def test_the_callbacks_are_called_in_order_until_one_returns_true(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        order = []
        with hold_at_most(ROOM):
            first, second = Cache(), Cache(30 * MIB)
            with (
                on_out_of_memory(lambda *facts: bool(order.append("first")) or first.drop(*facts)),
                on_out_of_memory(lambda *facts: bool(order.append("second")) or second.drop(*facts)),
                on_out_of_memory(lambda *facts: bool(order.append("third"))),
            ):
                array(20 * MIB)
                kept = array(20 * MIB)
                with pytest.raises(tcuda.OutOfMemoryError):
                    array(30 * MIB)
        assert order == ["first", "second", "first", "second", "third"]
        del kept

    def test_a_callback_is_called_until_it_is_removed(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        calls: list[int] = []

        def note(device: int, size: int) -> bool:
            calls.append(size)
            return False

        def fail() -> int:
            before = len(calls)
            with pytest.raises(tcuda.OutOfMemoryError):
                array(30 * MIB)
            return len(calls) - before

        with hold_at_most(ROOM):
            kept = array(20 * MIB)
            first, second = on_out_of_memory(note), on_out_of_memory(note)
            try:
                assert fail() == 2
                first.remove()
                first.remove()
                assert fail() == 1
            finally:
                second.remove()
            assert fail() == 0
            with on_out_of_memory(note), pytest.raises(ZeroDivisionError):
                raise ZeroDivisionError
            assert fail() == 0
        del kept

    def test_the_device_is_the_device_of_the_allocation(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        last = tcuda.device_count() - 1
        calls: list[tuple[int, int]] = []
        with (
            tcuda.device(last),
            hold_at_most(ROOM, last),
            on_out_of_memory(lambda *facts: bool(calls.append(facts))),  # type: ignore[arg-type]
        ):
            kept = array(30 * MIB)
            with pytest.raises(tcuda.OutOfMemoryError):
                tcuda.caching_allocator_alloc(20 * MIB)
        assert calls == [(last, 20 * MIB)]
        del kept

    def test_a_callback_that_frees_nothing_is_not_called_for_ever(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        calls = []
        with hold_at_most(ROOM), on_out_of_memory(lambda *facts: calls.append(facts) is None):
            kept = array(30 * MIB)
            with pytest.raises(tcuda.OutOfMemoryError):
                array(20 * MIB)
        assert len(calls) == 100
        del kept

    def test_arrays_in_cycles_of_references_make_room_without_a_callback(
        self, xp: Any, hold_at_most: HoldAtMost
    ) -> None:
        with hold_at_most(ROOM):
            cycle: list[Any] = [array(30 * MIB)]
            cycle.append(cycle)
            del cycle
            array(20 * MIB)

    @pytest.mark.parametrize("callback", [None, 3, "drop"])
    def test_a_callback_must_be_a_function(self, callback: Any) -> None:
        with pytest.raises(TypeError, match="callback"):
            on_out_of_memory(callback)

    @pytest.mark.parametrize("backend", ["native", "cupy", pytest.param("cudaMallocAsync", marks=pytest.mark.emulated)])
    def test_no_source_of_memory_does_without_the_callbacks(self, output_of: OutputOf, backend: str) -> None:
        program = """
import tcuda
from tcuda import xp
tcuda.init()
room = 64 << 20
if tcuda.get_allocator_backend() != "cudaMallocAsync":  # whose memory no fraction limits
    tcuda.set_per_process_memory_fraction((tcuda.memory_reserved() + room) / tcuda.mem_get_info()[1])
kept = [xp.empty(room // 2, "B")]
def drop(device, size):
    print("called")
    return bool(kept and kept.pop() is not None)
tcuda.memory.on_out_of_memory(drop)
x = xp.empty(room // 4 * 3, "B")
print(tcuda.get_allocator_backend())
"""
        settings = {"TCUDA_ALLOC_CONF": f"backend:{backend}", "TCUDA_EMULATED_MEMORY": "64MiB"}
        assert output_of(program, **settings).split() == ["called", backend]


class TestInsideACallback:
    def test_the_callback_may_use_the_allocator_and_wait(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        with hold_at_most(ROOM):
            cache = Cache(30 * MIB)
            side = tcuda.Stream()

            def drop(device: int, size: int) -> bool:
                with tcuda.stream(side):
                    small = xp.arange(1000)
                    assert int(small.sum()) == 499_500
                tcuda.synchronize()
                tcuda.empty_cache()
                tcuda.memory._snapshot()
                return in_thread(cache.drop, device, size)

            with on_out_of_memory(drop):
                new = array(20 * MIB)
        assert cache.calls == [(0, 20 * MIB)]
        del new

    def test_an_allocation_without_room_raises_an_error_that_says_why(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        depth = []

        def allocate(device: int, size: int) -> bool:
            depth.append(size)
            array(35 * MIB)
            return True

        with hold_at_most(ROOM), on_out_of_memory(allocate):
            kept = array(30 * MIB)
            with pytest.raises(
                tcuda.OutOfMemoryError, match=r"35\.00 MiB.*A callback of on_out_of_memory\(\) made this"
            ):
                array(20 * MIB)
            with pytest.raises(tcuda.OutOfMemoryError):  # also the next time
                array(20 * MIB)
        assert depth == [20 * MIB] * 2
        del kept

    def test_an_exception_is_raised_by_the_allocation_and_nothing_is_lost(
        self, xp: Any, hold_at_most: HoldAtMost, changes: Changes
    ) -> None:
        def refuse(device: int, size: int) -> bool:
            raise KeyError("no")

        with hold_at_most(ROOM):
            kept = xp.full(ROOM, 7, "B")
            with changes() as changed, on_out_of_memory(refuse):
                for allocate in (array, tcuda.caching_allocator_alloc):
                    with pytest.raises(KeyError, match="no"):
                        allocate(20 * MIB)
            assert changed == {"num_alloc_retries": 2, "num_sync_all_streams": 2}
            cache = Cache()
            cache.arrays.append(kept)
            del kept
            with on_out_of_memory(cache.drop):
                array(20 * MIB)
        assert len(cache.calls) == 1

    def test_a_callback_may_remove_itself_and_add_another(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        handles: list[on_out_of_memory] = []
        with hold_at_most(ROOM):
            cache = Cache(30 * MIB)

            def once(device: int, size: int) -> bool:
                handles.pop().remove()
                handles.append(on_out_of_memory(cache.drop))
                return True

            handles.append(on_out_of_memory(once))
            array(20 * MIB)
            handles.pop().remove()
        assert len(cache.calls) == 1

    def test_a_callback_of_one_device_may_find_no_room_on_another(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        if tcuda.device_count() < 2:
            pytest.skip("needs two devices, and there is one")
        calls: list[int] = []
        with hold_at_most(ROOM, 0), hold_at_most(ROOM, 1):
            caches = {0: Cache(30 * MIB)}
            with tcuda.device(1):
                caches[1] = Cache(30 * MIB)

            def move(device: int, size: int) -> bool:
                calls.append(device)
                if device == 0:
                    with tcuda.device(1):
                        array(20 * MIB)
                return caches[device].drop(device, size)

            with on_out_of_memory(move):
                array(20 * MIB)
        assert calls == [0, 1]

    def test_several_threads_may_be_in_a_callback(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        meeting = threading.Barrier(2, timeout=60)
        with hold_at_most(ROOM):
            cache = Cache(*[10 * MIB] * 4)
            met: list[int] = []

            def drop(device: int, size: int) -> bool:
                if len(met) < 2:
                    met.append(size)
                    meeting.wait()  # no lock is held that keeps the other thread out
                return cache.drop(device, size)

            with on_out_of_memory(drop):
                in_threads(lambda: array(10 * MIB)[0], [()] * 2)
        assert len(met) == 2


class TestCaptures:
    def test_no_callback_is_called_during_a_capture(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        graph, number = tcuda.CUDAGraph(), xp.zeros(1)
        with hold_at_most(ROOM):
            cache = Cache(30 * MIB)
            message = ""
            with on_out_of_memory(cache.drop):
                with tcuda.graph(graph):
                    number += 1
                    try:
                        array(20 * MIB)
                    except tcuda.OutOfMemoryError as error:
                        message = str(error)
                assert "A graph is being captured, so no callback" in message
                assert cache.calls == []
                array(20 * MIB)
            assert len(cache.calls) == 1
        graph.reset()


class TestWaits:
    def test_memory_that_a_stream_still_uses_makes_room_after_the_work(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        side = tcuda.Stream()
        with hold_at_most(ROOM):
            cache = Cache(30 * MIB)
            keep_busy(side)
            tcuda.memory.record_stream(cache.arrays[0], side)
            with on_out_of_memory(cache.drop):
                array(20 * MIB)
            assert side.query()
