"""Traces: the file has the work of streams, the waits, the ranges and the memory of the block."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.timelines import needs_timelines
from tcuda import nvtx, xp
from tcuda._process.ledger import ledger
from tcuda._runtime import runtime
from tcuda.profiler import _trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from support.fixture_types import RunPython

    Trace = Callable[[Callable[[], object]], list[dict[str, Any]]]

pytestmark = needs_timelines

BUSY = 100_000_000  # cycles: longer than a test takes to drop an array


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Return a function that traces a call, and returns the events of the file."""

    def traced(work: Callable[[], object]) -> list[dict[str, Any]]:
        file = tmp_path / "out.json"
        with tcuda.profiler.trace(file):
            work()
        events: list[dict[str, Any]] = json.loads(file.read_text())["traceEvents"]
        return events

    return traced


def spans(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["ph"] == "X" and event["cat"] == kind]


def start(event: dict[str, Any]) -> int:
    return round(event["ts"] * 1000)


def end(event: dict[str, Any]) -> int:
    """Return the end in nanoseconds: the microseconds of the file are no whole numbers, and cannot be compared."""
    return round((event["ts"] + event["dur"]) * 1000)


def counters_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the figures of the memory of the current device."""
    return [event for event in events if event["ph"] == "C" and event["pid"] == tcuda.current_device() + 1]


def requested() -> int:
    return int(tcuda.memory_stats()["requested_bytes.all.current"])


class TestWork:
    def test_every_kernel_has_a_span_on_the_row_of_its_stream(self, trace: Trace) -> None:
        x, side = xp.ones(1000), tcuda.Stream()
        tcuda.synchronize()

        def work() -> None:
            x.fill(2)
            with tcuda.stream(side):
                x.fill(3)
                x.fill(4)

        events = trace(work)
        kernels = spans(events, "kernel")
        assert len(kernels) == 3
        rows = [event["tid"] for event in kernels]
        assert rows[1] == rows[2] != rows[0]
        assert start(kernels[2]) >= end(kernels[1]) > start(kernels[1])
        assert {event["pid"] for event in kernels} == {tcuda.current_device() + 1}
        named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
        assert {(event["pid"], event["tid"]) for event in kernels} <= named

    def test_copies_have_their_bytes(self, trace: Trace) -> None:
        x = xp.ones(1000, dtype="float32")
        (copy,) = spans(trace(lambda: xp.asnumpy(x)), "memcpy")
        assert copy["args"] == {"bytes": 4000}

    def test_the_nodes_of_a_graph_have_spans(self, trace: Trace) -> None:
        x, graph = xp.ones(1000), tcuda.CUDAGraph()
        with tcuda.graph(graph):
            x.fill(2)
            x.fill(3)
        first, second = spans(trace(graph.replay), "kernel")
        assert start(second) >= end(first)

    def test_work_from_before_and_after_the_block_is_left_out(self, trace: Trace) -> None:
        x = xp.ones(1000)
        tcuda.synchronize()
        events = trace(lambda: None)
        x.fill(2)
        assert spans(events, "kernel") == []

    def test_a_second_trace_has_only_its_own_work(self, trace: Trace) -> None:
        x = xp.ones(1000)
        tcuda.synchronize()
        assert [len(spans(trace(lambda: x.fill(2)), "kernel")) for _ in range(2)] == [1, 1]


@pytest.mark.emulated
class TestEmulatedTimes:
    def test_branches_of_a_graph_that_run_together_have_rows_of_their_own(self, trace: Trace) -> None:
        x, y, graph, side = xp.ones(1000), xp.ones(1000), tcuda.CUDAGraph(), tcuda.Stream()
        with tcuda.graph(graph):
            side.wait_stream(tcuda.current_stream())
            x.fill(2)
            with tcuda.stream(side):
                y.fill(3)
            tcuda.current_stream().wait_stream(side)
        first, second = spans(trace(graph.replay), "kernel")
        assert start(first) == start(second)
        assert first["tid"] != second["tid"]

    def test_a_stream_that_waits_for_an_event_shows_how_long(self, trace: Trace) -> None:
        side = tcuda.Stream()
        x = xp.ones(1_000_000)
        tcuda.synchronize()

        def work() -> None:
            x.fill(2)
            side.wait_stream(tcuda.current_stream())

        events = trace(work)
        (wait,), (kernel,) = spans(events, "wait_event"), spans(events, "kernel")
        assert end(wait) == end(kernel)
        assert wait["tid"] != kernel["tid"]

    def test_a_kernel_of_a_program_has_its_name(self, trace: Trace) -> None:
        kernel = xp.RawKernel('extern "C" __global__ void rise(float* x) { x[threadIdx.x] += 1; }', "rise")
        x = xp.zeros(8, dtype="float32")
        events = trace(lambda: kernel((1,), (8,), (x,)))
        assert [event["name"] for event in spans(events, "kernel")] == ["rise"]

    def test_the_times_are_those_of_the_emulated_clock(self, trace: Trace) -> None:
        clock = tcuda.emulation.clock()
        x = xp.ones(1000)
        tcuda.synchronize()
        before = clock.now()
        (kernel,) = spans(trace(lambda: x.fill(2)), "kernel")
        assert before <= start(kernel) <= clock.now()

    def test_a_trace_beside_a_check_for_races_changes_neither(self, trace: Trace) -> None:
        x, side = xp.ones(1000), tcuda.Stream()
        tcuda.synchronize()

        def work() -> None:
            with tcuda.sanitizer.check("collect") as report:
                x.fill(2)
                with tcuda.stream(side):
                    x.fill(3)
            assert len(report.races) == 1

        assert len(spans(trace(work), "kernel")) == 2


class TestHost:
    def test_waits_of_the_host_are_spans_of_the_host(self, trace: Trace) -> None:
        def work() -> None:
            xp.ones(1000).sum()
            tcuda.synchronize()

        waits = spans(trace(work), "wait")
        assert waits
        assert {event["pid"] for event in waits} == {0}

    def test_ranges_nest_and_marks_are_moments(self, trace: Trace) -> None:
        def work() -> None:
            with nvtx.range("outer"), nvtx.range("inner"):
                xp.ones(1000).fill(2)
            nvtx.mark("done")

        events = trace(work)
        by_name = {event["name"]: event for event in events}
        outer, inner = by_name["outer"], by_name["inner"]
        assert start(outer) <= start(inner) < end(inner) <= end(outer)
        assert outer["tid"] == inner["tid"] == threading.get_native_id()
        assert by_name["done"]["ph"] == "i"

    def test_a_range_that_another_thread_ends_belongs_to_the_thread_that_began_it(self, trace: Trace) -> None:
        def work() -> None:
            number = nvtx.range_start("request")
            xp.ones(1000).fill(2)
            thread = threading.Thread(target=nvtx.range_end, args=(number,))
            thread.start()
            thread.join()

        (request,) = spans(trace(work), "range")
        assert (request["name"], request["tid"]) == ("request", threading.get_native_id())

    def test_ranges_from_before_the_trace_are_left_out(self, trace: Trace) -> None:
        nvtx.range_push("before")
        events = trace(nvtx.range_pop)
        assert spans(events, "range") == []

    def test_after_the_trace_nvtx_is_as_before(self, trace: Trace) -> None:
        nvtx.mark("first")
        listener = nvtx._listener
        trace(lambda: None)
        assert nvtx._listener is listener


class TestMemory:
    def test_the_counter_follows_allocations_and_frees(self, trace: Trace) -> None:
        before = requested()

        def work() -> None:
            x = xp.zeros(1000)
            tcuda.synchronize()
            del x

        counters = counters_of(trace(work))
        bytes_ = [event["args"]["requested"] - before for event in counters]
        assert bytes_[0] == 0
        assert max(bytes_) == 8000
        assert bytes_[-1] == requested() - before
        assert counters[-1]["args"]["reserved"] == tcuda.memory_reserved()

    def test_the_counter_falls_when_a_free_from_before_the_trace_is_complete(self, trace: Trace) -> None:
        x, side = xp.zeros(1000), tcuda.Stream()
        tcuda.memory.record_stream(x, side)
        tcuda.synchronize()
        before = requested()
        with tcuda.stream(side):
            tcuda._sleep(BUSY)
        del x
        assert requested() == before  # the free waits for the other stream

        def work() -> None:
            side.synchronize()
            tcuda.empty_cache()

        counters = counters_of(trace(work))
        assert counters[0]["args"]["requested"] == before
        assert counters[-1]["args"]["requested"] == requested() == before - 8000

    def test_a_history_of_the_program_goes_on(self, trace: Trace) -> None:
        tcuda.memory._record_memory_history()
        try:
            x = xp.zeros(1000)
            trace(lambda: xp.zeros(500))
            y = xp.zeros(1000)
            sizes = [event["size"] for event in tcuda.memory._snapshot()["device_traces"][tcuda.current_device()]]
            assert sizes.count(x.nbytes + y.nbytes - 8000) == 2
            assert 4000 in sizes
        finally:
            tcuda.memory._record_memory_history(None)

    def test_a_history_that_begins_in_the_block_goes_on(self, trace: Trace) -> None:
        try:
            trace(lambda: tcuda.memory._record_memory_history())
            x = xp.zeros(1000)
            events = tcuda.memory._snapshot()["device_traces"][tcuda.current_device()]
            assert ("alloc", x.nbytes) in [(event["action"], event["size"]) for event in events]
        finally:
            tcuda.memory._record_memory_history(None)

    def test_the_history_of_a_trace_ends_with_it(self, trace: Trace) -> None:
        trace(lambda: xp.zeros(1000))
        assert tcuda.memory._snapshot()["device_traces"][tcuda.current_device()] == []


def missing_on(device: int, *words: str) -> str:
    return rf"(?s)lacks events of the memory of cuda:{device}\b.*{'.*'.join(words)}"


class TestMissingEvents:
    """A history of the program keeps what the program asked for, and a trace says what is missing."""

    @pytest.fixture(autouse=True)
    def no_history(self) -> Iterator[None]:
        yield
        tcuda.memory._record_memory_history(None)

    @staticmethod
    def work() -> None:
        x = xp.zeros(1000)
        y = xp.zeros(1000)
        del x, y

    @pytest.mark.parametrize(
        "options",
        [{"enabled": "state"}, {"max_entries": 2}, {"skip_actions": ["alloc"]}, {"skip_actions": ["free_completed"]}],
        ids=str,
    )
    def test_of_a_history_that_keeps_too_little_are_told(self, trace: Trace, options: dict[str, Any]) -> None:
        tcuda.memory._record_memory_history(**options)
        with pytest.warns(RuntimeWarning, match=missing_on(0, "_record_memory_history", "max_entries")) as told:
            events = trace(self.work)
        assert told[0].filename == __file__
        assert len(told) == 1
        assert events

    def test_of_segments_are_told(self, trace: Trace) -> None:
        tcuda.memory._record_memory_history(skip_actions=["segment_alloc", "segment_map"])
        tcuda.empty_cache()
        with pytest.warns(RuntimeWarning, match=missing_on(0)):
            trace(lambda: xp.zeros(100 << 20, "uint8"))

    def test_of_a_history_that_ends_or_begins_again_in_the_block_are_told(self, trace: Trace) -> None:
        def end() -> None:
            self.work()
            tcuda.memory._record_memory_history(None)

        def begin_again() -> None:
            self.work()
            tcuda.memory._record_memory_history(clear_history=True)

        for change in (end, begin_again):
            with pytest.warns(RuntimeWarning, match=missing_on(0)):
                trace(change)

    def test_of_a_long_trace_are_told(self, trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_trace, "_MOST_EVENTS", 2)
        with pytest.warns(RuntimeWarning, match=missing_on(0, "keeps 2 events", "shorter part")):
            trace(self.work)

    def test_that_the_graph_of_memory_does_not_use_are_not_told(self, trace: Trace) -> None:
        tcuda.memory._record_memory_history(skip_actions=["free_requested", "snapshot", "oom"], max_entries=6)
        self.work()  # the trace may replace these events
        tcuda.empty_cache()
        trace(self.work)

    def test_are_not_told_if_the_program_resets_its_statistics(self, trace: Trace) -> None:
        self.work()

        def reset() -> None:
            tcuda.reset_accumulated_memory_stats()
            self.work()

        trace(reset)

    def test_do_not_keep_the_file_from_being_written(self, tmp_path: Path) -> None:
        file = tmp_path / "out.json"
        tcuda.memory._record_memory_history("state")

        def fail() -> None:
            with tcuda.profiler.trace(file):
                self.work()
                raise KeyError("mine")

        with pytest.warns(RuntimeWarning), pytest.raises(KeyError, match="mine"):
            fail()
        assert file.exists()


class TestAFailure:
    """A trace that fails to begin or to end stays on nowhere."""

    @pytest.fixture
    def ended(self, monkeypatch: pytest.MonkeyPatch) -> list[object]:
        """Return the traces of the runtime that have ended."""
        ended: list[object] = []
        begin = runtime().beginTrace

        def begin_noted() -> object:
            made = begin()
            end = made.end
            made.end = lambda: (ended.append(made), end())[1]  # type: ignore[method-assign]
            return made

        monkeypatch.setattr(type(runtime()), "beginTrace", lambda _: begin_noted())
        return ended

    @pytest.mark.parametrize("name", ["memory_reserved", "_History"])
    def test_to_begin_leaves_nothing_on(
        self, name: str, tmp_path: Path, ended: list[object], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        nvtx.mark("first")
        listener = nvtx._listener

        def fail(*_: object) -> None:
            raise KeyError("mine")

        monkeypatch.setattr(_trace, name, fail)
        with pytest.raises(KeyError, match="mine"), tcuda.profiler.trace(tmp_path / "out.json"):
            pytest.fail("the block ran")
        assert nvtx._listener is listener
        assert len(ended) == 1
        assert not ledger().records_history()

    def test_to_end_leaves_nothing_on(
        self, tmp_path: Path, ended: list[object], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        listener = nvtx._listener

        class Ledger:
            def __getattr__(self, name: str) -> Any:
                return getattr(ledger(), name)

            def snapshot(self, *_: object) -> None:
                raise MemoryError

        def fail() -> None:
            with tcuda.profiler.trace(tmp_path / "out.json"):
                monkeypatch.setattr(_trace, "ledger", Ledger)

        with pytest.raises(MemoryError):
            fail()
        assert nvtx._listener is listener
        assert len(ended) == 1
        assert not ledger().records_history()


class TestAFailureOfWork:
    """Work that fails, of which the wait at the end hears first: the file has what was recorded."""

    @pytest.fixture(autouse=True)
    def failed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        begin = runtime().beginTrace

        def fail(devices: Sequence[int]) -> None:
            raise tcuda.AcceleratorError(700)

        def begin_with_failure(_: object) -> object:
            made = begin()
            made.wait = fail  # type: ignore[method-assign]
            return made

        monkeypatch.setattr(type(runtime()), "beginTrace", begin_with_failure)

    @pytest.mark.parametrize("error", [None, KeyError("mine")])
    def test_comes_after_the_error_of_the_block_and_after_the_file(
        self, trace: Trace, tmp_path: Path, error: KeyError | None
    ) -> None:
        def work() -> None:
            xp.ones(1000).fill(2)
            tcuda.synchronize()
            if error is not None:
                raise error

        kind, text = (tcuda.AcceleratorError, "illegal memory access") if error is None else (KeyError, "mine")
        with pytest.raises(kind, match=text):
            trace(work)
        assert len(spans(json.loads((tmp_path / "out.json").read_text())["traceEvents"], "kernel")) == 2


FAILING = """
import tcuda
from tcuda import xp
write = xp.RawKernel('extern "C" __global__ void write(int* x) { *x = 1; }', "write")
with tcuda.profiler.trace("out.json"):
    xp.ones(1000).fill(2)
    tcuda.synchronize()
    try:
        write((1,), (1,), (xp.int64(4),))
        tcuda.synchronize()
    except tcuda.AcceleratorError as error:
        print(error.error_code)
        raise KeyError("mine")
"""


def test_a_device_that_a_kernel_has_made_unusable_has_a_trace(run_forked: RunPython, tmp_path: Path) -> None:
    done = run_forked(FAILING)
    assert done.stdout == "700\n"
    assert "KeyError: 'mine'" in done.stderr.splitlines()  # on a GPU, CuPy then fails to unload its kernels
    assert spans(json.loads((tmp_path / "out.json").read_text())["traceEvents"], "kernel")


class TestFile:
    def test_the_file_is_written_although_the_block_fails(self, tmp_path: Path) -> None:
        file = tmp_path / "out.json"

        def fail() -> None:
            with tcuda.profiler.trace(file):
                xp.ones(1000).fill(2)
                raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            fail()
        assert spans(json.loads(file.read_text())["traceEvents"], "kernel")

    def test_a_file_that_cannot_be_written_is_refused_before_the_block(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError), tcuda.profiler.trace(tmp_path / "absent" / "out.json"):
            pytest.fail("the block ran")

    def test_a_second_trace_inside_is_refused_and_the_first_goes_on(self, tmp_path: Path, trace: Trace) -> None:
        def work() -> None:
            with (
                pytest.raises(RuntimeError, match="End the other trace first"),
                tcuda.profiler.trace(tmp_path / "other"),
            ):
                pytest.fail("the block ran")
            xp.ones(1000).fill(2)

        assert spans(trace(work), "kernel")
        assert not (tmp_path / "other").exists()

    def test_every_event_has_what_viewers_need(self, trace: Trace) -> None:
        def work() -> None:
            with nvtx.range("all"):
                xp.asnumpy(xp.ones(1000) * 2)

        for event in trace(work):
            assert isinstance(event["name"], str)
            assert isinstance(event["pid"], int)
            if event["ph"] != "M":
                assert event["ts"] >= 0
            if event["ph"] != "C":
                assert isinstance(event["tid"], int)
            if event["ph"] == "X":
                assert event["dur"] >= 0
