"""Containers whose arrays move to the host: which arrays move, when they come back, and that no bit is lost."""

from __future__ import annotations

import collections.abc
import contextlib
import copy
import pickle
import sys
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.busy_streams import keep_busy
from support.threads import in_thread, in_threads
from tcuda.memory import Spillable, _movable_memory, _record_memory_history, _relief, _snapshot, on_out_of_memory
from tcuda.memory import _spillable as spillable

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from support.fixture_types import Changes, HoldAtMost, OutputOf
    from tcuda._backend import Backend

MIB = 1 << 20
ROOM = 40 * MIB
"""What the process may reserve in tests without room."""

pytestmark = pytest.mark.usefixtures("allocator_as_found")


def filled(size: int, value: int) -> Any:
    return tcuda.xp.full(size, value, "B")


def container(**arrays: Any) -> Spillable[str]:
    made: Spillable[str] = Spillable()
    made.update(arrays)
    return made


def is_on_host(cache: Spillable[Any]) -> bool:
    return cache.stats().device_bytes == 0 and cache.stats().host_bytes > 0


class TestMoreThanTheDeviceHolds:
    def test_a_program_with_one_and_a_half_times_the_memory_has_the_same_bits(
        self, xp: Any, hold_at_most: HoldAtMost, changes: Changes
    ) -> None:
        count, size = 30, 525_000
        assert count * size * 4 >= 1.5 * ROOM

        def work(data: Any) -> list[Any]:
            for index in range(count):
                data[index] = xp.sin(xp.arange(size, dtype="f4") * np.float32(index))
            for step in range(3):
                for index in range(count):
                    data[index] *= data[(index * 7 + step) % count]
                    data[index] = data[index] + np.float32(step)
            return [data[index].get() for index in range(count)]

        plain = work({})
        cache: Spillable[int] = Spillable()
        with hold_at_most(ROOM), changes() as changed:
            spilled = work(cache)
        assert all(np.array_equal(a.view("B"), b.view("B")) for a, b in zip(plain, spilled, strict=True))
        assert cache.stats().spills > count
        assert cache.stats().device_bytes + cache.stats().host_bytes >= count * size * 4
        assert "num_ooms" not in changed

    def test_the_least_recently_used_arrays_move_and_no_more_than_needed(
        self, xp: Any, hold_at_most: HoldAtMost
    ) -> None:
        cache: Spillable[int] = Spillable()
        with hold_at_most(ROOM):
            for key in range(4):
                cache[key] = filled(9 * MIB, key)
            for key in (1, 0, 3):
                cache[key]
            kept = filled(18 * MIB, 9)
            assert cache.stats().device_bytes == cache.stats().host_bytes == 18 * MIB
            before = tcuda.memory_allocated()
            cache[0], cache[3]  # are on the device
            assert tcuda.memory_allocated() == before
            assert cache.stats().restores == 0
            del kept
            assert [int(cache[key][-1]) for key in range(4)] == [0, 1, 2, 3]
            assert cache.stats().restores == 2

    def test_several_containers_and_callbacks_help_each_other(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        first, second = container(), container()
        with hold_at_most(ROOM):
            first["x"], second["x"] = filled(18 * MIB, 1), filled(18 * MIB, 2)
            kept = filled(36 * MIB, 3)
            assert is_on_host(first)
            assert is_on_host(second)
            del kept
            assert int(first["x"][0] + second["x"][0]) == 3

    def test_a_container_that_cannot_help_leaves_the_error(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        cache = container()
        with hold_at_most(ROOM):
            cache["x"] = kept = filled(18 * MIB, 1)
            with pytest.raises(tcuda.OutOfMemoryError):
                filled(30 * MIB, 2)
            assert cache["x"] is kept
            assert cache.stats().spills == 0
        del kept

    def test_a_container_that_died_is_not_asked(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        callbacks = _relief._in_force
        cache = container(x=xp.ones(3))
        alive = weakref.ref(cache)
        assert _relief._in_force != callbacks
        del cache
        assert alive() is None
        assert _relief._in_force == callbacks
        with hold_at_most(ROOM):
            kept = filled(30 * MIB, 1)
            with pytest.raises(tcuda.OutOfMemoryError):
                filled(20 * MIB, 1)
        del kept


class TestArrays:
    @pytest.mark.parametrize("dtype", ["?", "i1", "u2", "f2", "f4", "i8", "f8", "c8", "c16"])
    def test_every_dtype_comes_back(self, xp: Any, dtype: str) -> None:
        expected = (np.arange(999) % 7).astype(dtype)
        cache = container(x=xp.asarray(expected))
        assert cache.spill() == cache_size(expected.nbytes)
        assert is_on_host(cache)
        assert cache["x"].dtype == dtype
        assert np.array_equal(cache["x"].get(), expected)

    @pytest.mark.parametrize(
        "cut",
        [
            lambda a: a,
            lambda a: a.T,
            lambda a: a[::2, 1:],
            lambda a: a[::-1, ::-3],
            lambda a: a[5, 7],
            lambda a: a[None, 3:4, ..., None],
            lambda a: a.ravel()[1001:1003],
            lambda a: a.reshape(-1).view("B")[4 * 1001 : 4 * 1003],
        ],
    )
    def test_views_come_back_with_their_layout(self, xp: Any, cut: Any) -> None:
        whole = np.arange(2400, dtype="f4").reshape(40, 60)
        expected = cut(whole)
        cache = container(x=cut(xp.asarray(whole)))
        pointer = cache["x"].data.ptr
        cache.spill()
        assert is_on_host(cache)
        x = cache["x"]
        assert (x.shape, x.strides, x.dtype) == (expected.shape, expected.strides, expected.dtype)
        assert x.flags.c_contiguous == expected.flags.c_contiguous
        assert x.flags.f_contiguous == expected.flags.f_contiguous
        assert x.data.ptr % 512 == pointer % 512
        assert np.array_equal(x.get(), expected)

    def test_only_the_bytes_that_a_view_uses_move(self, xp: Any) -> None:
        cache = container(x=xp.arange(100_000, dtype="f8")[50_000:50_100])
        assert cache.spill() >= 800_000
        assert cache.stats().host_bytes < 2000
        assert cache["x"].tolist() == list(range(50_000, 50_100))
        cache["part"] = cache["x"][10::2]
        cache.spill()
        assert cache["part"].tolist() == list(range(50_010, 50_100, 2))
        assert cache["x"].tolist() == list(range(50_000, 50_100))
        assert cache.stats().device_bytes < 4096

    def test_broadcast_and_fortran_arrays_come_back(self, xp: Any) -> None:
        cache = container(b=xp.broadcast_to(xp.arange(5), (3, 5)), f=xp.asfortranarray(xp.arange(6).reshape(2, 3)))
        cache.spill()
        assert is_on_host(cache)
        assert cache["b"].strides == (0, 8)
        assert cache["b"].tolist() == [[0, 1, 2, 3, 4]] * 3
        assert cache["f"].flags.f_contiguous
        assert cache["f"].tolist() == [[0, 1, 2], [3, 4, 5]]

    def test_arrays_that_share_memory_still_share_it(self, xp: Any) -> None:
        x = xp.arange(10)
        cache = container(x=x, same=x, odd=x[1::2])
        del x
        assert cache.stats().device_bytes == cache_size(80)
        cache.spill()
        assert is_on_host(cache)
        cache["odd"][...] = -1
        assert cache.stats().restores == 1
        assert cache["x"].tolist() == cache["same"].tolist() == [0, -1, 2, -1, 4, -1, 6, -1, 8, -1]
        del cache["x"], cache["same"]
        cache.spill()
        assert cache["odd"].tolist() == [-1] * 5

    def test_what_a_program_writes_after_the_array_came_back_is_kept(self, xp: Any) -> None:
        cache = container(x=xp.zeros(1000))
        for turn in range(3):
            cache["x"] += 1
            assert cache.stats()[:2] == (cache_size(8000), 0)
            cache.spill()
            assert cache.stats() == (0, 8000, turn + 1, turn)
        assert cache["x"].tolist() == [3] * 1000

    def test_each_array_comes_back_to_its_device(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        if tcuda.device_count() < 2:
            pytest.skip("needs two devices, and there is one")
        cache: Spillable[int] = Spillable()
        for index in range(2):
            with tcuda.device(index):
                cache[index] = filled(18 * MIB, index)
        assert cache.spill(device=1) == 18 * MIB
        assert cache.stats()[:2] == (18 * MIB, 18 * MIB)
        with hold_at_most(ROOM, 1), tcuda.device(1):
            kept = filled(30 * MIB, 5)
            assert int(cache[0][0]) == 0  # on the other device, which has room
            del kept
        assert cache[1].data.device_id == 1
        assert int(cache[1][-1]) == 1
        assert tcuda.current_device() == 0


def cache_size(nbytes: int) -> int:
    """Return the size of a block for an array of ``nbytes`` bytes."""
    return -(-nbytes // 512) * 512


class TestWhatStays:
    @pytest.mark.parametrize(
        "user",
        [lambda x: x, lambda x: x[1:], lambda x: x[::2][1:], lambda x: x.data, lambda x: x.data.mem, lambda x: {1: x}],
    )
    def test_memory_that_the_program_refers_to(self, xp: Any, user: Any) -> None:
        cache = container(x=xp.arange(1000), y=xp.arange(1000))
        reference = user(cache["x"])
        assert cache.spill() == cache_size(8000)  # y
        assert cache["x"][10] == 10
        cache["x"][20] = -1  # the same memory
        if hasattr(reference, "tolist"):
            assert -1 in reference.tolist()
        del reference
        assert cache.spill() == cache_size(8000)
        assert cache["x"][20] == -1

    @pytest.mark.parametrize("user", [lambda x: x, lambda x: x.data])
    def test_memory_moves_once_the_program_lets_it_go(self, xp: Any, user: Any) -> None:
        cache = container(x=xp.arange(1000))
        reference = user(cache["x"])
        assert cache.spill() == 0
        del reference
        assert cache.spill() > 0

    def test_an_array_beside_the_container_in_the_same_memory(self, xp: Any) -> None:
        x = xp.arange(10)
        cache = container(tail=x[5:])
        assert cache.spill() == 0
        x[...] = 7
        assert cache["tail"].tolist() == [7] * 5
        del x
        assert cache.spill() > 0
        assert cache["tail"].tolist() == [7] * 5

    def test_memory_that_a_graph_uses(self, xp: Any) -> None:
        cache = container(x=xp.zeros(1000), y=xp.zeros(1000))
        graph = tcuda.CUDAGraph()
        with tcuda.graph(graph):
            cache["x"] += 1
            cache["made"] = cache["x"] * 2
        assert cache.spill() == cache_size(8000)  # y
        graph.replay()
        graph.replay()
        assert cache["x"].tolist() == [2] * 1000
        assert cache["made"].tolist() == [4] * 1000
        graph.reset()
        tcuda.synchronize()
        tcuda.empty_cache()
        del cache["made"]
        assert cache.spill() > 0
        assert cache["x"].tolist() == [2] * 1000

    def test_memory_of_a_pool_and_of_another_owner(self, xp: Any, backend: Backend) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            x = xp.arange(10)
        address = tcuda.caching_allocator_alloc(4096)
        memory = backend.foreign_memory(pool, address, 4096, 0)
        foreign = backend.array_in(memory, 0, (512,), "f8", None)
        cache = container(x=x, foreign=foreign)
        del x, foreign, memory
        assert cache.spill() == 0
        assert cache["x"].tolist() == list(range(10))
        del cache
        tcuda.caching_allocator_delete(address)

    def test_values_that_are_no_arrays_and_arrays_without_elements(self, xp: Any) -> None:
        values = {"none": None, "text": "x", "numpy": np.arange(3), "list": [xp.arange(3)], "empty": xp.empty((0, 3))}
        cache = container(**values)
        assert cache.spill() == 0
        assert all(cache[key] is value for key, value in values.items())


class TestStreams:
    @pytest.mark.wings
    def test_work_of_any_stream_on_an_array_is_complete_before_its_bytes_move(self, xp: Any) -> None:
        side = tcuda.Stream()
        cache = container(x=xp.zeros(1000))
        with tcuda.sanitizer.check(mode="collect") as report:
            side.wait_stream(tcuda.current_stream())
            with tcuda.stream(side):
                keep_busy(side)
                cache["x"] += 1
            assert cache.spill() > 0  # on another stream
            assert cache["x"].tolist() == [1] * 1000
        assert not report

    @pytest.mark.wings
    def test_the_contents_are_on_the_host_before_another_stream_brings_them_back(self, xp: Any) -> None:
        side, other = tcuda.Stream(), tcuda.Stream()
        cache = container(x=xp.arange(1 << 20))
        with tcuda.sanitizer.check(mode="collect") as report:
            with tcuda.stream(side):
                keep_busy(side)
                cache.spill()
            with tcuda.stream(other):
                total = cache["x"].sum()
                assert int(total) == (1 << 19) * ((1 << 20) - 1)
        assert not report

    @pytest.mark.wings
    def test_other_streams_wait_until_an_array_is_back(self, xp: Any) -> None:
        side = tcuda.Stream()
        cache = container(x=xp.arange(1 << 20))
        cache.spill()
        with tcuda.sanitizer.check(mode="collect") as report:
            with tcuda.stream(side):
                keep_busy(side)
                cache["x"]  # queues the copy behind the kernel
            for _ in range(2):
                total = cache["x"].sum()  # on the default stream
                assert int(total) == (1 << 19) * ((1 << 20) - 1)
        assert not report

    def test_memory_that_came_back_is_kept_for_every_stream_that_read_the_array(self, xp: Any) -> None:
        side = tcuda.Stream()
        cache = container(x=xp.ones(1 << 20))
        cache.spill()
        cache["x"]  # belongs to the default stream
        with tcuda.stream(side):
            x = cache["x"]
            keep_busy(side)
            y = x + 1
            del x
        address = cache["x"].data.ptr
        del cache["x"]
        other = xp.zeros(1 << 20)  # would get the memory while side has not read it
        assert other.data.ptr != address
        tcuda.synchronize()
        assert float(y.sum()) == 2 << 20

    @pytest.mark.wings
    def test_the_race_detector_finds_nothing(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        streams = [tcuda.Stream() for _ in range(3)]
        with hold_at_most(ROOM), tcuda.sanitizer.check(mode="collect") as report:
            cache: Spillable[int] = Spillable()
            for index in range(8):
                cache[index] = filled(9 * MIB, index)
            for index in range(24):
                stream = streams[index % 3]
                stream.wait_stream(tcuda.current_stream())
                with tcuda.stream(stream):
                    cache[index % 8] += 1
                tcuda.current_stream().wait_stream(stream)
            assert [int(cache[index][0]) for index in range(8)] == [index + 3 for index in range(8)]
        assert cache.stats().spills > 8
        assert not report

    def test_an_array_does_not_come_back_on_a_stream_that_captures(self, xp: Any) -> None:
        cache = container(x=xp.ones(10), y=xp.ones(10))
        cache.spill()
        graph, number = tcuda.CUDAGraph(), cache["y"]
        with tcuda.graph(graph):
            number += cache["y"]
            with pytest.raises(RuntimeError, match="cannot come back on a stream that captures"):
                cache["x"]
            with pytest.raises(RuntimeError, match="impossible while a graph is captured"):
                cache.spill()
        graph.replay()
        assert number.tolist() == [2] * 10
        assert cache["x"].tolist() == [1] * 10


class TestMapping:
    def test_the_container_is_a_mapping(self, xp: Any) -> None:
        x, y = xp.arange(3), xp.arange(4)
        cache = container(x=x)
        cache["y"] = y
        assert isinstance(cache, collections.abc.MutableMapping)
        assert cache["x"] is x
        assert list(cache) == ["x", "y"]
        assert len(cache) == 2
        assert "x" in cache
        assert "z" not in cache
        assert cache.get("z") is None
        assert cache.pop("x") is x
        assert cache.setdefault("y", x) is y
        assert [value is y for value in cache.values()] == [True]
        with pytest.raises(KeyError):
            cache["x"]
        with pytest.raises(KeyError):
            del cache["x"]
        cache.clear()
        assert len(cache) == 0
        assert cache.stats().device_bytes == 0
        assert cache != {}

    def test_arrays_on_the_host_are_removed_and_replaced_without_coming_back(self, xp: Any) -> None:
        cache = container(x=xp.arange(3), y=xp.arange(4), z=xp.arange(5))
        cache.spill()
        assert "x" in cache
        del cache["x"]
        cache["y"] = xp.ones(2)
        assert cache.stats().restores == 0
        assert cache["y"].tolist() == [1, 1]
        cache.clear()
        assert cache.stats() == (0, 0, 3, 0)

    def test_memory_is_free_once_the_last_array_is_removed(self, xp: Any) -> None:
        before = tcuda.memory_allocated()
        x = xp.arange(1000)
        cache = container(x=x, y=x[1:])
        del x, cache["x"]
        assert tcuda.memory_allocated() > before
        del cache["y"]
        assert tcuda.memory_allocated() == before
        cache["x"] = xp.arange(1000)
        cache["x"] = xp.arange(10)
        assert tcuda.memory_allocated() == before + 512
        del cache
        assert tcuda.memory_allocated() == before

    def test_a_part_of_the_arrays_can_be_moved_by_hand(self, xp: Any) -> None:
        cache = container(x=filled(MIB, 1), y=filled(MIB, 2), z=filled(MIB, 3))
        cache["x"]  # was used last
        assert cache.spill(0) == 0
        assert cache.spill(1) == MIB
        assert cache.spill(MIB + 1) == 2 * MIB
        assert cache.spill() == 0
        for size in (-1, 1.5, "1"):
            with pytest.raises((TypeError, ValueError)):
                cache.spill(size)  # type: ignore[arg-type]

    def test_the_container_refuses_to_be_copied_and_has_a_text(self, xp: Any) -> None:
        cache = container(x=xp.zeros(64))
        for act in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot copy or pickle 'Spillable' object"):
                act(cache)
        assert repr(cache) == "<tcuda.memory.Spillable with 1 value: 512 bytes on devices, 0 on the host>"

    def test_functions_can_keep_their_results_in_it(self, xp: Any) -> None:
        cache: Spillable[int] = Spillable()
        calls = []

        def square(n: int) -> Any:
            if n not in cache:
                calls.append(n)
                cache[n] = xp.arange(n) ** 2
            return cache[n]

        for _ in range(2):
            assert [int(square(n)[-1]) for n in (3, 4)] == [4, 9]
            cache.spill()
        assert calls == [3, 4]


class TestTroubles:
    def test_without_page_locked_memory_the_arrays_stay(
        self, xp: Any, hold_at_most: HoldAtMost, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*arguments: Any) -> Any:
            raise tcuda.AcceleratorError(2, "cudaHostAlloc()")

        cache = container(x=xp.arange(10), y=xp.arange(20))
        with monkeypatch.context() as patch:
            patch.setattr("tcuda.memory._spillable.empty_pinned", refuse)
            with pytest.raises(tcuda.AcceleratorError):
                cache.spill()
        assert cache.stats() == (1024, 0, 0, 0)
        room = [tcuda.memory.empty_pinned(80, "B")]
        with monkeypatch.context() as patch:
            patch.setattr("tcuda.memory._spillable.empty_pinned", lambda *arguments: room.pop() if room else refuse())
            assert cache.spill() == 512  # what the host has room for
        assert cache.spill() == 512
        assert cache["y"].tolist() == list(range(20))
        assert cache["x"].tolist() == list(range(10))

    def test_a_finalizer_may_read_and_change_the_container_in_the_middle_of_a_move(
        self, xp: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cache = container(read=xp.arange(10), removed=xp.arange(11), replaced=xp.arange(12), moved=xp.arange(13))
        found = []
        pinned = tcuda.memory.empty_pinned

        def interrupted(*arguments: Any) -> Any:
            if not found:
                found.append(cache["read"])
                del cache["removed"]
                cache["replaced"] = xp.ones(3)
            return pinned(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr("tcuda.memory._spillable.empty_pinned", interrupted)
            assert cache.spill() == 512
        assert cache.stats()[2:] == (1, 0)
        found[0][...] = 5
        assert cache["read"].tolist() == [5] * 10
        assert cache["replaced"].tolist() == [1] * 3
        assert cache["moved"].tolist() == list(range(13))
        assert "removed" not in cache
        found.clear()
        assert cache.spill() == 3 * 512

    def test_a_profiler_that_keeps_frames_of_the_move_keeps_no_memory_on_the_device(
        self, xp: Any, hold_at_most: HoldAtMost, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cache = container(x=filled(18 * MIB, 1), y=filled(18 * MIB, 2))
        copied, frames = spillable.copy_async, []

        def profiled(*arguments: Any) -> Any:
            frames.append(sys._getframe())  # keeps the arguments, although the function has returned
            return copied(*arguments)

        with hold_at_most(ROOM):
            with monkeypatch.context() as patch:
                patch.setattr("tcuda.memory._spillable.copy_async", profiled)
                assert cache.spill(1) == 18 * MIB
                frames.clear()
                kept = filled(18 * MIB, 3)
            assert cache.stats() == (18 * MIB, 18 * MIB, 1, 0)
            del kept
            assert [int(cache[key][-1]) for key in "xy"] == [1, 2]

    def test_the_room_that_an_array_takes_when_it_comes_back_may_be_made_by_callbacks(
        self, xp: Any, hold_at_most: HoldAtMost
    ) -> None:
        cache = container(x=filled(30 * MIB, 1), y=xp.ones(3))
        cache.spill()
        with hold_at_most(ROOM):
            others = [filled(20 * MIB, 2)]
            with pytest.raises(tcuda.OutOfMemoryError):
                cache["x"]
            assert is_on_host(cache)  # nothing is lost

            def drop(device: int, size: int) -> bool:
                in_thread(lambda: cache["y"].sum())  # no lock is held
                return bool(others and others.pop() is not None)

            with on_out_of_memory(drop):
                assert int(cache["x"][-1]) == 1

    def test_an_array_may_be_removed_and_replaced_while_it_comes_back(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        cache = container(x=filled(30 * MIB, 1), y=filled(30 * MIB, 2))
        cache.spill()
        tcuda.empty_cache()  # or the next array keeps a piece of memory, which is as large as both on a large device
        others = [filled(20 * MIB, 3)]

        def change(device: int, size: int) -> bool:
            others.clear()
            del cache["x"]
            cache["y"] = xp.full(3, 4, "B")
            return True

        with hold_at_most(12 * MIB), on_out_of_memory(change):
            with pytest.raises(KeyError, match="x"):
                cache["x"]
            assert cache["y"].tolist() == [4] * 3
        assert cache.stats()[:2] == (512, 0)

    def test_an_exception_of_a_signal_handler_anywhere_loses_no_array(self, xp: Any) -> None:
        class Interruption(BaseException):
            pass

        files = {spillable.__file__, _movable_memory.__file__}

        def interrupted(call: Callable[[], object], line: int) -> int:
            """Raise an exception at this line of the call, counted from 1; return how many lines are left then."""

            def local(frame: FrameType, event: str, argument: object) -> Any:
                nonlocal line
                if event == "line":
                    line -= 1
                    if line == 0:
                        raise Interruption
                return local

            before = sys.gettrace()
            sys.settrace(lambda frame, event, argument: local if frame.f_code.co_filename in files else None)
            try:
                call()
            except Interruption:
                pass
            finally:
                sys.settrace(before)
            return line

        def is_complete(cache: Spillable[str]) -> bool:
            return all(bool((cache[key] == ord(key.lower())).all()) for key in cache) and {*"abA"} <= {*cache}

        allocated = tcuda.memory_allocated()
        calls: list[Callable[[Spillable[str]], object]] = [
            lambda cache: cache.spill(),
            lambda cache: cache["b"],
            lambda cache: cache.__setitem__("b", filled(2000, ord("b"))),
            lambda cache: cache.pop("c"),
        ]
        for call in calls:
            for line in range(1, 1000, 3):
                cache = container(**{key: filled(2000, ord(key)) for key in "abc"})
                cache["A"] = cache["a"][10:]
                cache.spill(1)
                left = interrupted(lambda: call(cache), line)  # noqa: B023
                assert is_complete(cache)
                cache.spill()
                assert is_complete(cache)
                cache.clear()
                assert tcuda.memory_allocated() == allocated
                if left > 0:
                    break

    def test_many_threads(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        cache: Spillable[int] = Spillable()
        count = 12

        def work(number: int) -> int:
            with tcuda.stream(tcuda.Stream()):
                for turn in range(40):
                    key = (turn * (number + 1)) % count
                    x = cache[key]
                    assert int(x[number]) == key
                    del x
                    if turn % 8 == 0:
                        cache.spill(1)
            return number

        with hold_at_most(ROOM):
            for key in range(count):
                cache[key] = filled(4 * MIB, key)
            assert in_threads(work, [(number,) for number in range(4)]) == [0, 1, 2, 3]
            assert [int(cache[key][-1]) for key in range(count)] == list(range(count))

    def test_the_history_shows_the_moves(self, xp: Any) -> None:
        cache = container(x=xp.zeros(4096, "B"))
        with contextlib.ExitStack() as end:
            _record_memory_history()
            end.callback(_record_memory_history, None)
            cache.spill()
            cache["x"]
            events = _snapshot()["device_traces"][0]
        actions = [event["action"] for event in events if event.get("size") == 4096]
        assert actions[0] == "free_requested"
        assert actions[-1] == "alloc"
        names = {frame["name"] for event in events if event["action"] == "alloc" for frame in event["frames"]}
        assert "_restore" in names

    def test_a_program_that_ends_with_full_containers_ends_well(self, output_of: OutputOf) -> None:
        program = """
import tcuda
from tcuda import xp
cache = tcuda.memory.Spillable()
cache["x"], cache["y"] = xp.ones(1000), xp.ones(1000)
cache.spill(1)
print("done")
"""
        assert output_of(program).strip() == "done"

    def test_a_container_before_the_first_use_of_a_device(self, output_of: OutputOf) -> None:
        program = """
import tcuda
cache = tcuda.memory.Spillable()
cache["x"] = 3
print(cache["x"], tcuda.is_initialized())
"""
        assert output_of(program).split() == ["3", "False"]
