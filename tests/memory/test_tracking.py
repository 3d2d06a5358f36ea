"""``tcuda.memory.track()``: the memory that a part of a program uses."""

from __future__ import annotations

import contextlib
import functools
import gc
import threading
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.busy_streams import LONG
from support.free_threading import IS_FREE_THREADED
from support.sizes import KIB, MIB
from support.threads import in_thread, in_threads
from tcuda.memory import Usage, track

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.fixture_types import Changes
    from tcuda._runtime.protocol import Runtime

pytestmark = pytest.mark.usefixtures("allocator_as_found")


def pinned(size: int) -> Any:
    return tcuda.memory.empty_pinned(size, "uint8")


class TestBlocks:
    def test_allocations_and_frees_in_the_scope_are_measured(self, xp: Any) -> None:
        before = xp.empty(5000, "B")
        with track() as usage:
            kept = xp.empty(1000, "B")
            xp.empty(2000, "B")
        after = xp.empty(7000, "B")
        assert usage.usage == Usage(current=1024, peak=3072, allocated=3072, freed=2048, allocations=2)
        del before, kept, after

    def test_the_text_of_a_measurement_has_the_figures(self, xp: Any) -> None:
        with track() as usage:
            kept = xp.empty(1000, "B")
            xp.empty(2000, "B")
            assert "peak=3072" in str(usage)
        del kept
        figures = "current=1024, peak=3072, allocated=3072, freed=2048, allocations=2"
        assert str(usage) == repr(usage) == f"<tcuda.memory.track: {figures}>"
        assert repr(track()) == "<tcuda.memory.track: current=0, peak=0, allocated=0, freed=0, allocations=0>"

    def test_attributes_are_current_in_the_scope_and_fixed_after_it(self, xp: Any) -> None:
        usage = track()
        assert usage.usage == Usage() == (0,) * 10
        with usage:
            assert usage.usage == Usage()
            kept = xp.empty(1000, "B")
            assert (usage.current, usage.peak, usage.allocated, usage.freed, usage.allocations) == (
                1024,
                1024,
                1024,
                0,
                1,
            )
            del kept
            assert (usage.current, usage.peak, usage.freed) == (0, 1024, 1024)
        xp.empty(5000, "B")
        assert usage.usage == Usage(0, 1024, 1024, 1024, 1)

    def test_a_free_of_older_memory_makes_current_negative(self, xp: Any) -> None:
        old = xp.empty(5 * KIB, "B")
        with track() as usage:
            del old
            assert usage.usage == Usage(current=-5 * KIB, peak=0, allocated=0, freed=5 * KIB, allocations=0)
            new = xp.empty(2 * KIB, "B")
        assert usage.usage == Usage(current=-3 * KIB, peak=0, allocated=2 * KIB, freed=5 * KIB, allocations=1)
        del new

    def test_sizes_are_rounded_as_in_memory_allocated(self, xp: Any) -> None:
        before = tcuda.memory_allocated()
        with track() as usage:
            kept = [xp.empty(size, "B") for size in (1, 513, 12_000_001)]
        assert usage.current == tcuda.memory_allocated() - before == 512 + 1024 + 12_000_256
        del kept

    def test_a_measurement_can_be_used_again_after_its_scope(self, xp: Any) -> None:
        usage = track()
        with usage:
            xp.empty(1000, "B")
        with usage:
            xp.empty(3000, "B")
            xp.empty(3000, "B")
        assert usage.usage == Usage(0, 3072, 6144, 6144, 2)

    def test_scopes_nest(self, xp: Any) -> None:
        with track() as outer:
            kept = [xp.empty(KIB, "B")]
            with track() as inner:
                kept.append(xp.empty(2 * KIB, "B"))
                with track() as innermost:
                    xp.empty(4 * KIB, "B")
            del kept[0]
        assert innermost.usage == Usage(0, 4 * KIB, 4 * KIB, 4 * KIB, 1)
        assert inner.usage == Usage(2 * KIB, 6 * KIB, 6 * KIB, 4 * KIB, 2)
        assert outer.usage == Usage(2 * KIB, 7 * KIB, 7 * KIB, 5 * KIB, 3)
        del kept

    def test_scopes_may_overlap(self, xp: Any) -> None:
        first, second = track(), track()
        first.__enter__()
        kept = [xp.empty(KIB, "B")]
        second.__enter__()
        kept.append(xp.empty(2 * KIB, "B"))
        first.__exit__(None, None, None)
        kept.append(xp.empty(4 * KIB, "B"))
        second.__exit__(None, None, None)
        assert first.usage == Usage(3 * KIB, 3 * KIB, 3 * KIB, 0, 2)
        assert second.usage == Usage(6 * KIB, 6 * KIB, 6 * KIB, 0, 2)
        del kept

    def test_an_exception_ends_the_scope(self, xp: Any) -> None:
        usage = track()
        with contextlib.suppress(KeyError), usage:
            xp.empty(KIB, "B")
            raise KeyError
        xp.empty(KIB, "B")
        assert usage.allocations == 1

    def test_a_failed_allocation_is_not_counted(self, xp: Any) -> None:
        with track() as usage:
            with pytest.raises(tcuda.OutOfMemoryError):
                xp.empty(1 << 50, "B")
            xp.empty(KIB, "B")
        assert usage.usage == Usage(0, KIB, KIB, KIB, 1)

    def test_a_measurement_does_not_change_the_statistics(self, xp: Any, changes: Changes) -> None:
        xp.empty(3 * MIB, "B")
        tcuda.memory_stats()
        with changes() as changed, track(), track():
            pass
        assert changed == {}
        tcuda.reset_peak_memory_stats()
        peak = tcuda.max_memory_allocated()
        with track():
            xp.empty(3 * MIB, "B")
            tcuda.reset_peak_memory_stats()
            tcuda.reset_accumulated_memory_stats()
        assert tcuda.max_memory_allocated() == peak

    def test_resetting_the_statistics_does_not_change_a_measurement(self, xp: Any) -> None:
        with track() as usage:
            xp.empty(3 * KIB, "B")
            tcuda.reset_peak_memory_stats()
            tcuda.reset_accumulated_memory_stats()
        assert usage.usage == Usage(0, 3 * KIB, 3 * KIB, 3 * KIB, 1)

    def test_a_free_counts_when_the_array_dies_even_if_a_stream_still_uses_it(self, xp: Any) -> None:
        side = tcuda.Stream()
        array = xp.empty(KIB, "B")
        with tcuda.stream(side):
            tcuda._sleep(LONG)
        tcuda.memory.record_stream(array, side)
        with track() as usage:
            del array
        assert usage.freed == KIB
        side.synchronize()

    def test_pools_and_buffers_count_too(self, xp: Any) -> None:
        with track() as usage:
            with tcuda.use_mem_pool(tcuda.MemPool()):
                xp.empty(KIB, "B")
            tcuda.caching_allocator_delete(tcuda.caching_allocator_alloc(1000))
        assert usage.usage == Usage(0, KIB, 2 * KIB, 2 * KIB, 2)


class TestDevices:
    def test_the_device_is_the_current_device_at_the_start_of_the_scope(self, xp: Any) -> None:
        last = tcuda.device_count() - 1
        with tcuda.device(last), track() as there:
            xp.empty(KIB, "B")
            with tcuda.device(0), track() as here:
                xp.empty(2 * KIB, "B")
        assert here.allocated == 2 * KIB
        assert there.allocated == (3 * KIB if last == 0 else KIB)

    def test_the_device_can_be_named(self, xp: Any) -> None:
        last = tcuda.device_count() - 1
        with track(f"cuda:{last}") as usage, tcuda.device(last):
            xp.empty(KIB, "B")
        assert usage.allocated == KIB

    def test_an_invalid_device_is_refused_at_the_start_of_the_scope(self, runtime: Runtime) -> None:
        with pytest.raises(RuntimeError, match="Invalid device argument 99: did you call init"), track(99):
            pass
        with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"), track("cpu"):
            pass


class TestThreads:
    def test_other_threads_count_unless_thread_is_true(self, xp: Any) -> None:
        with track() as everybody, track(thread=True) as mine:
            in_thread(lambda: xp.empty(4 * KIB, "B").size)  # the array dies in the thread
            xp.empty(KIB, "B")
        assert everybody.usage == Usage(0, 4 * KIB, 5 * KIB, 5 * KIB, 2)
        assert mine.usage == Usage(0, KIB, KIB, KIB, 1)

    @pytest.mark.skipif(
        IS_FREE_THREADED,
        reason="Without the lock of the interpreter, Python ends an object in the thread that has made the object",
    )
    def test_a_free_in_another_thread_does_not_count_if_thread_is_true(self, xp: Any) -> None:
        with track(thread=True) as usage:
            kept = [xp.empty(KIB, "B")]
            in_thread(kept.clear)
        assert usage.usage == Usage(KIB, KIB, KIB, 0, 1)

    def test_threads_measure_themselves_at_once(self, xp: Any) -> None:
        together = threading.Barrier(4)
        measured: dict[int, Usage] = {}

        def work(number: int) -> None:
            together.wait()
            with track(thread=True) as usage:
                for _ in range(50):
                    xp.empty(number * KIB, "B")
            measured[number] = usage.usage

        threads = [threading.Thread(target=work, args=[number]) for number in range(1, 5)]
        with track() as everybody:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert measured == {
            number: Usage(0, number * KIB, 50 * number * KIB, 50 * number * KIB, 50) for number in range(1, 5)
        }
        assert (everybody.allocations, everybody.current) == (200, 0)
        assert everybody.allocated == 50 * (1 + 2 + 3 + 4) * KIB

    def test_a_scope_may_end_in_another_thread(self, xp: Any) -> None:
        usage = track()
        usage.__enter__()
        xp.empty(KIB, "B")
        in_thread(lambda: usage.__exit__(None, None, None))
        xp.empty(KIB, "B")
        assert usage.allocations == 1


class TestPageLockedMemory:
    """The figures whose names begin with ``host_``."""

    def test_page_locked_memory_has_figures_of_its_own(self, xp: Any) -> None:
        old = pinned(5000)
        with track() as usage:
            kept = pinned(1000)
            pinned(2000)
            array = xp.empty(3 * KIB, "B")
            assert (usage.host_current, usage.host_peak) == (1024, 3072)
            assert (usage.host_allocated, usage.host_freed, usage.host_allocations) == (3072, 2048, 2)
            del old
        del kept
        assert usage.usage == Usage(3 * KIB, 3 * KIB, 3 * KIB, 0, 1, 1024 - 5120, 3072, 3072, 2048 + 5120, 2)
        del array

    def test_the_figures_are_those_of_the_statistics(self, runtime: Runtime) -> None:
        before = tcuda.host_memory_stats()
        with track() as usage:
            kept = [pinned(size) for size in (1, 100, 1000, 100_000, 3 * MIB + 1)]
            del kept[2]
        after = tcuda.host_memory_stats()
        assert usage.host_current == after["active_bytes.current"] - before["active_bytes.current"]
        assert usage.host_allocations == after["active_requests.allocated"] - before["active_requests.allocated"]
        del kept

    def test_measurements_nest(self, runtime: Runtime) -> None:
        with track() as outer:
            pinned(KIB)
            with track() as inner:
                pinned(2 * KIB)
        assert (inner.host_peak, inner.host_allocations) == (2 * KIB, 1)
        assert (outer.host_peak, outer.host_allocated, outer.host_allocations) == (2 * KIB, 3 * KIB, 2)

    def test_other_threads_count_unless_thread_is_true(self, runtime: Runtime) -> None:
        with track() as everybody, track(thread=True) as mine:
            in_thread(lambda: pinned(4 * KIB).size)  # the array dies in the thread
            pinned(KIB)
        assert (everybody.host_peak, everybody.host_allocated) == (4 * KIB, 5 * KIB)
        assert (mine.host_peak, mine.host_allocated) == (KIB, KIB)

    def test_the_device_does_not_matter(self, runtime: Runtime) -> None:
        with track(tcuda.device_count() - 1) as usage:
            pinned(KIB)
        assert usage.host_allocations == 1

    def test_a_failed_allocation_is_not_counted(self, runtime: Runtime) -> None:
        with track() as usage, pytest.raises(tcuda.AcceleratorError):
            pinned(1 << 56)
        assert usage.usage == Usage()

    def test_a_free_counts_when_the_array_dies_although_the_block_is_still_in_doubt(self, runtime: Runtime) -> None:
        host = pinned(KIB)
        begin = host.ctypes.data
        with track() as usage:
            del host
        assert usage.host_freed == KIB
        blocks = [block for segment in tcuda.memory._snapshot()["host_segments"] for block in segment["blocks"]]
        assert [block["state"] for block in blocks if block["address"] == begin] == ["active_pending_free"]

    def test_calls_of_functions_are_measured(self, runtime: Runtime) -> None:
        reports: list[Usage] = []
        track(report=reports.append)(pinned)(1000)
        assert reports == [Usage(host_current=1024, host_peak=1024, host_allocated=1024, host_allocations=1)]

    def test_the_text_has_figures_that_are_not_all_zero(self, runtime: Runtime) -> None:
        with track() as usage:
            pinned(1000)
        figures = "allocations=0, host_current=0, host_peak=1024, host_allocated=1024, host_freed=1024, "
        assert figures in repr(usage)
        assert repr(usage.usage).endswith(f"{figures}host_allocations=1)")


class TestFunctions:
    def test_every_call_is_measured_and_the_function_keeps_its_name_and_docstring(self, xp: Any) -> None:
        reports: list[Usage] = []

        @track(report=reports.append)
        def double(count: int, *, times: int = 2) -> str:
            """Do it."""
            for _ in range(times):
                xp.empty(count, "B")
            return "done"

        assert double(1000) == "done"
        assert double(5000, times=3) == "done"
        assert reports == [Usage(0, 1024, 2048, 2048, 2), Usage(0, 5120, 15360, 15360, 3)]
        assert (double.__name__, double.__doc__) == ("double", "Do it.")

    def test_the_usage_is_of_the_last_call(self, xp: Any) -> None:
        usage = track()
        function = usage(functools.partial(xp.empty, dtype="B"))
        function(1000)
        assert usage.usage == Usage(current=1024, peak=1024, allocated=1024, freed=0, allocations=1)
        function(513)
        assert usage.allocated == 1024

    def test_nested_calls_are_measured_separately(self, xp: Any) -> None:
        reports: list[Usage] = []

        @track(report=reports.append)
        def descend(depth: int) -> None:
            kept = xp.empty(KIB, "B")
            if depth:
                descend(depth - 1)
            del kept

        descend(2)
        assert [report.allocations for report in reports] == [1, 2, 3]
        assert [report.peak for report in reports] == [KIB, 2 * KIB, 3 * KIB]

    def test_calls_in_threads_do_not_disturb_each_other(self, xp: Any) -> None:
        reports: list[Usage] = []
        together = threading.Barrier(4)

        @track(thread=True, report=reports.append)
        def work() -> None:
            together.wait()
            xp.empty(KIB, "B")

        in_threads(work, 4 * [()])
        assert reports == [Usage(0, KIB, KIB, KIB, 1)] * 4

    def test_a_call_that_raises_is_measured_too(self, xp: Any) -> None:
        reports: list[Usage] = []

        @track(report=reports.append)
        def fail() -> None:
            xp.empty(KIB, "B")
            raise KeyError

        with pytest.raises(KeyError):
            fail()
        assert reports == [Usage(0, KIB, KIB, KIB, 1)]

    def test_a_method_can_be_measured(self, xp: Any) -> None:
        class Model:
            usage = track()

            @usage
            def step(self, count: int) -> Any:
                return xp.empty(count, "B")

        kept = Model().step(1000)
        assert Model.usage.current == 1024
        del kept


class TestReports:
    def test_a_scope_reports_once_at_its_end(self, xp: Any) -> None:
        reports: list[Usage] = []
        with track(report=reports.append) as usage:
            xp.empty(KIB, "B")
            assert reports == []
        assert reports == [usage.usage] == [Usage(0, KIB, KIB, KIB, 1)]

    def test_a_report_that_raises_ends_the_measurement(self, xp: Any) -> None:
        def refuse(usage: Usage) -> None:
            raise KeyError("no")

        usage = track(report=refuse)
        with pytest.raises(KeyError, match="no"), usage:
            xp.empty(KIB, "B")
        xp.empty(KIB, "B")
        assert usage.allocations == 1

    def test_the_repr_of_a_usage_names_its_fields(self) -> None:
        assert repr(Usage(1, 2, 3, 4, 5)) == "Usage(current=1, peak=2, allocated=3, freed=4, allocations=5)"


class TestMisuse:
    def test_a_measurement_that_is_active_cannot_be_entered(self, xp: Any) -> None:
        with track() as usage:
            with pytest.raises(RuntimeError, match="This measurement is already active; make a tcuda.memory.track()"):
                usage.__enter__()
            xp.empty(KIB, "B")
        assert usage.allocations == 1

    def test_unknown_arguments_are_refused(self) -> None:
        with pytest.raises(TypeError):
            track(0, True)  # type: ignore[misc]
        with pytest.raises(TypeError, match="peak"):
            track(peak=True)  # type: ignore[call-arg]

    def test_a_dropped_measurement_ends_its_scope(self, xp: Any) -> None:
        for _ in range(50):
            stack = contextlib.ExitStack()
            stack.enter_context(track())
            del stack
        gc.collect()
        # If a dropped tracker stayed attached, a new tracker in its memory would count twice.
        others = [track() for _ in range(50)]
        for other in others:
            other.__enter__()
        xp.empty(KIB, "B")
        assert {other.allocations for other in others} == {1}
        for other in others:
            other.__exit__(None, None, None)

    def test_a_dropped_generator_ends_its_scope(self, xp: Any) -> None:
        seen: list[track] = []

        def steps() -> Iterator[None]:
            with track() as usage:
                seen.append(usage)
                yield

        generator = steps()
        next(generator)
        xp.empty(KIB, "B")
        del generator
        xp.empty(KIB, "B")
        assert seen[0].allocations == 1


# Sites


def _keep(keeper: list[Any], xp: Any) -> None:
    keeper.append(xp.zeros(1000, dtype="float32"))


def test_the_sites_are_those_of_memory_that_is_still_allocated(xp: Any) -> None:
    kept: list[Any] = [xp.zeros(1000, dtype="float32")]
    with track(sites=True) as measured:
        _keep(kept, xp)
        passing = xp.ones(5000)
        (while_inside,) = [site for site in measured.alive if site.bytes > 10_000]
        del passing
        _keep(kept, xp)
        staging = pinned(1000)
    assert while_inside.site is not None
    assert while_inside.site.name == "test_the_sites_are_those_of_memory_that_is_still_allocated"
    assert [(site.device, site.count) for site in measured.alive] == [(0, 1), (0, 1), (-1, 1)]
    place = measured.alive[0].site
    assert place is not None
    assert (place.filename, place.name) == (__file__, "_keep")
    assert str(measured.alive[0]) == f"4096 bytes in 1 allocation at {place}"
    assert staging.nbytes == 1000
    kept.clear()
    assert measured.alive[0].count == 1  # the value from the end of the block


def test_allocations_of_one_stack_are_one_site(xp: Any) -> None:
    kept: list[Any] = []
    with track(sites=True) as measured:
        for _ in range(3):
            _keep(kept, xp)
    (site,) = measured.alive
    assert (site.bytes, site.count) == (3 * 4096, 3)


def test_a_decorated_function_has_the_sites_of_its_last_call(xp: Any) -> None:
    kept: list[Any] = []
    told: list[int] = []
    measured = track(sites=True, report=lambda usage: told.append(len(measured.alive)))
    decorated = measured(_keep)
    decorated(kept, xp)
    assert [site.count for site in measured.alive] == [1]
    assert told == [1]


def test_a_measurement_without_sites_refuses_to_tell_them(xp: Any) -> None:
    with (
        track() as measured,
        pytest.raises(RuntimeError, match=r"make it with tcuda\.memory\.track\(sites=True\)"),
    ):
        measured.alive  # noqa: B018
    with pytest.raises(ValueError, match="takes thread or sites, and not both"):
        track(sites=True, thread=True)
    with pytest.raises(TypeError, match="sites"):
        track(sites="yes")  # type: ignore[arg-type]


def test_the_recording_ends_with_the_last_of_several_measurements(xp: Any) -> None:
    def has_stack() -> bool:
        x = xp.zeros(10)
        blocks = [block for segment in tcuda.memory_snapshot() for block in segment["blocks"]]
        (found,) = [bool(block["frames"]) for block in blocks if block["address"] == x.data.ptr]
        return found

    outer, inner = track(sites=True), track(sites=True)
    assert not has_stack()
    with outer:
        with inner:
            assert has_stack()
        assert has_stack()
    assert not has_stack()
    outer.__enter__()
    tcuda.memory._record_memory_history(None)
    assert has_stack()
    del outer
    gc.collect()
    assert not has_stack()
