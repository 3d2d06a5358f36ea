"""Green contexts: shares of a device, their streams, and the lifetimes of both."""

from __future__ import annotations

import copy
import gc
import itertools
import pickle
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.captures import captured
from support.threads import in_threads
from tcuda import GreenContext
from tcuda._process.lazy import cuda

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from support.fixture_types import OutputOf

pytestmark = pytest.mark.usefixtures("runtime")


class Interrupt(Exception):
    """The exception of :func:`raises_at`."""


def raises_at(step: int, work: Callable[[], object]) -> bool:
    """Call ``work`` with an exception before an instruction, as of a signal handler; return whether this was reached.

    Args:
        step: The number of the instruction among those of the modules of green contexts and of current streams.
        work: The function.
    """
    files = (sys.modules["tcuda.streams._green_context"].__file__, sys.modules["tcuda._process.streams"].__file__)
    steps = itertools.count()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and next(steps) == step:
            raise Interrupt
        return trace

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 else begins with no events of instructions
    sys.settrace(trace)
    try:
        work()
    except Interrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.fixture
def context() -> GreenContext:
    return GreenContext.create(num_sms=2)


@pytest.fixture
def destroyed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The contexts that were destroyed."""
    tcuda.init()
    gc.collect()  # the contexts of other tests
    destroy = cuda.greenCtxDestroy
    found: list[int] = []

    def noted(context: int) -> None:
        found.append(context)
        destroy(context)

    monkeypatch.setattr(cuda, "greenCtxDestroy", noted, raising=False)
    yield found
    gc.collect()


class TestCreate:
    def test_the_share_has_at_least_the_multiprocessors_that_were_asked_for(self) -> None:
        most = tcuda.get_device_properties(0).multi_processor_count
        for wanted in (1, 2, most // 2, most):
            made = GreenContext.create(num_sms=wanted, device_id=0)
            assert wanted <= made.sm_count <= most
            assert made.device_id == 0
            assert repr(made) == f"<tcuda.GreenContext device_id=0 sm_count={made.sm_count}>"

    @pytest.mark.emulated
    def test_emulated_multiprocessors_come_in_pairs(self) -> None:
        assert [GreenContext.create(num_sms=wanted).sm_count for wanted in range(1, 9)] == [2, 2, 4, 4, 6, 6, 8, 8]

    def test_a_context_is_of_the_current_device_or_of_a_named_one(self) -> None:
        last = tcuda.device_count() - 1
        with tcuda.device(last):
            assert GreenContext.create(num_sms=2).device_id == last
            assert GreenContext.create(num_sms=2, device_id=0).device_id == 0
            assert tcuda.current_device() == last
        assert GreenContext.create(num_sms=2, device_id=f"cuda:{last}").Stream().device_index == last

    @pytest.mark.emulated
    @pytest.mark.parametrize("scope", ["device_ctx", "balanced"])
    def test_work_queues_can_be_chosen_with_and_without_multiprocessors(self, scope: str) -> None:
        assert GreenContext.create(workqueue_scope=scope).sm_count == 8
        most = GreenContext.max_workqueue_concurrency()
        made = GreenContext.create(num_sms=4, workqueue_scope=scope, workqueue_concurrency_limit=most)
        assert made.sm_count == 4

    @pytest.mark.parametrize(
        ("arguments", "kind", "text"),
        [
            ({}, RuntimeError, "At least one of num_sms or workqueue_scope must be specified"),
            (
                {"num_sms": 2, "workqueue_concurrency_limit": 2},
                RuntimeError,
                "workqueue_concurrency_limit requires workqueue_scope to be set",
            ),
            ({"workqueue_scope": "all"}, ValueError, "workqueue_scope must be 'device_ctx' or 'balanced', got 'all'"),
            ({"workqueue_scope": 1}, TypeError, "workqueue_scope must be 'device_ctx' or 'balanced', or None; got 1"),
            ({"num_sms": 0}, RuntimeError, r"Invalid number of SMs requested for green context: 0 \(device has \d+"),
            ({"num_sms": -1}, RuntimeError, r"Invalid number of SMs requested for green context: -1 \(device has"),
            ({"num_sms": 10**6}, RuntimeError, r"Invalid number of SMs requested for green context: 1000000 \(device"),
            ({"num_sms": 2**70}, ValueError, "num_sms must be from"),
            ({"num_sms": 2.0}, TypeError, "num_sms must be an integer; got a float"),
            ({"num_sms": "2"}, TypeError, "num_sms must be an integer; got a str"),
            (
                {"workqueue_scope": "balanced", "workqueue_concurrency_limit": 0},
                ValueError,
                "workqueue_concurrency_limit must be from 1",
            ),
            ({"num_sms": 2, "device_id": 99}, tcuda.AcceleratorError, "invalid device ordinal"),
            ({"num_sms": 2, "device_id": "cpu"}, ValueError, "Expected a cuda device"),
        ],
    )
    def test_wrong_arguments_are_refused(self, arguments: dict[str, Any], kind: type[Exception], text: str) -> None:
        before = tcuda.current_device()
        with pytest.raises(kind, match=text):
            GreenContext.create(**arguments)
        assert tcuda.current_device() == before

    def test_positional_arguments_are_refused(self) -> None:
        for make in (GreenContext, GreenContext.create):
            with pytest.raises(TypeError):
                make(2)  # type: ignore[misc]

    def test_the_class_makes_the_context_that_create_makes(self) -> None:
        context = GreenContext(num_sms=2, device_id=0)
        assert (context.device_id, context.sm_count) == (0, GreenContext.create(num_sms=2).sm_count)
        with pytest.raises(RuntimeError, match="At least one of num_sms or workqueue_scope must be specified"):
            GreenContext()

    def test_a_capture_goes_on_after_a_refused_context(self, xp: Any) -> None:
        x = xp.zeros(4)
        graph = tcuda.CUDAGraph()
        with tcuda.graph(graph):
            with pytest.raises(tcuda.AcceleratorError) as caught:
                GreenContext.create(num_sms=2)
            x += 1
        graph.replay()
        assert caught.value.error_code == 900
        assert x.tolist() == [1, 1, 1, 1]

    def test_a_context_cannot_be_copied(self, context: GreenContext) -> None:
        for act in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="belongs to one process"):
                act(context)  # type: ignore[operator]


class TestStreams:
    def test_work_on_a_stream_has_the_results_of_work_on_any_stream(self, context: GreenContext, xp: Any) -> None:
        side = context.Stream()
        assert isinstance(side, tcuda.ExternalStream)
        assert side.device_index == context.device_id
        x = xp.arange(1000, dtype="float32")
        side.wait_stream(tcuda.current_stream())
        with tcuda.stream(side):
            assert tcuda.current_stream() == side
            y = xp.ones(1000, dtype="float32")
            y = (x * 2 + y).sum()
        tcuda.current_stream().wait_stream(side)
        assert float(y) == 1000 * 999 + 1000
        assert side.query()

    def test_the_33rd_stream_is_the_first_again(self, context: GreenContext) -> None:
        streams = [context.Stream() for _ in range(33)]
        assert len({stream.cuda_stream for stream in streams}) == 32
        assert streams[32] == streams[0]
        assert tcuda.Stream() not in streams

    def test_the_streams_are_non_blocking(self, context: GreenContext, runtime: Any) -> None:
        assert runtime.streamGetFlags(context.Stream().cuda_stream) == 1

    def test_memory_of_a_stream_is_counted_and_used_again(self, context: GreenContext, xp: Any) -> None:
        side = context.Stream()
        with tcuda.stream(side):
            x = xp.zeros(1 << 20, dtype="uint8")
            address = x.data.ptr
            del x
            x = xp.zeros(1 << 20, dtype="uint8")
            assert x.data.ptr == address
        side.synchronize()

    def test_threads_get_different_streams(self, context: GreenContext) -> None:
        found: list[tcuda.Stream] = []

        def take() -> None:
            found.extend(context.Stream() for _ in range(8))

        in_threads(take, 4 * [()])
        assert len({stream.cuda_stream for stream in found}) == 32

    def test_a_graph_of_a_stream_is_launched_on_any_stream(self, context: GreenContext, xp: Any) -> None:
        x = xp.zeros(4)
        graph = tcuda.CUDAGraph()
        with tcuda.graph(graph, stream=context.Stream()):
            x += 1
        graph.replay()
        graph.replay()
        assert x.tolist() == [2, 2, 2, 2]

    @pytest.mark.gpu
    def test_fewer_multiprocessors_take_longer(self, xp: Any) -> None:
        most = tcuda.get_device_properties().multi_processor_count
        x = xp.zeros(1 << 28, dtype="uint8")
        times = []
        for wanted in (8, most):
            stream = GreenContext.create(num_sms=wanted).Stream()
            start, end = (tcuda.Event(enable_timing=True) for _ in range(2))
            with tcuda.stream(stream):
                for _ in range(3):
                    start.record()
                    x += 1
                    end.record()
            stream.synchronize()
            times.append(start.elapsed_time(end))
        assert times[0] > 2 * times[1]


class TestLifetimes:
    def test_the_context_ends_with_the_last_of_its_object_and_streams(self, destroyed: list[int], xp: Any) -> None:
        context = GreenContext.create(num_sms=2)
        first, second = context.Stream(), context.Stream()
        del context, first
        gc.collect()
        assert destroyed == []
        with tcuda.stream(second):
            x = xp.ones(1000).sum()
        second.synchronize()
        assert float(x) == 1000
        del second
        gc.collect()
        assert len(destroyed) == 1

    def test_a_current_stream_keeps_its_context(self, destroyed: list[int], xp: Any) -> None:
        before = tcuda.current_stream()
        tcuda.set_stream(GreenContext.create(num_sms=2).Stream())
        try:
            gc.collect()
            assert destroyed == []
            assert float(xp.ones(10).sum()) == 10
        finally:
            tcuda.set_stream(before)
        gc.collect()
        assert len(destroyed) == 1

    def test_a_context_without_streams_is_destroyed(self, destroyed: list[int]) -> None:
        GreenContext.create(num_sms=2)
        gc.collect()
        assert len(destroyed) == 1

    def test_memory_of_a_context_that_is_gone_can_be_freed(self, xp: Any) -> None:
        context = GreenContext.create(num_sms=2)
        with tcuda.stream(context.Stream()):
            x = xp.ones(1 << 20)
        tcuda.memory.record_stream(x, context.Stream())
        del context
        gc.collect()
        allocated = tcuda.memory_allocated()
        del x
        tcuda.synchronize()
        tcuda.empty_cache()
        assert tcuda.memory_allocated() < allocated

    def test_a_graph_keeps_the_contexts_of_its_capture(self, destroyed: list[int], xp: Any) -> None:
        made = [GreenContext.create(num_sms=2)]
        x = xp.zeros(4)

        def work() -> None:
            origin, side = tcuda.current_stream(), made[0].Stream()
            side.wait_stream(origin)
            with tcuda.stream(side):
                x.__iadd__(1)
            origin.wait_stream(side)
            del side
            made.clear()
            gc.collect()

        graph = tcuda.CUDAGraph()
        captured(work, graph)
        assert destroyed == []
        graph.replay()
        assert x.tolist() == [1, 1, 1, 1]
        graph.reset()
        gc.collect()
        assert len(destroyed) == 1

    def test_a_context_may_die_during_a_capture_of_another_library(self, destroyed: list[int], runtime: Any) -> None:
        context = GreenContext.create(num_sms=2)
        context.Stream()
        other = tcuda.Stream().cuda_stream
        runtime.streamBeginCapture(other, 0)
        try:
            del context
            gc.collect()
            assert len(destroyed) == 1
            assert runtime.streamIsCapturing(other)
        finally:
            runtime.graphDestroy(runtime.streamEndCapture(other))

    @pytest.mark.parametrize("failing", ["greenCtxCreate", "greenCtxStreamCreate"])
    def test_a_failed_call_leaves_nothing(
        self, failing: str, monkeypatch: pytest.MonkeyPatch, destroyed: list[int]
    ) -> None:
        def fail(*_: object) -> None:
            raise tcuda.AcceleratorError(2, failing)

        made = GreenContext.create(num_sms=2)
        with monkeypatch.context() as patched:
            patched.setattr(cuda, failing, fail, raising=False)
            with pytest.raises(tcuda.AcceleratorError) as caught:
                GreenContext.create(num_sms=2) if failing == "greenCtxCreate" else made.Stream()
        assert caught.value.error_code == 2
        del caught
        gc.collect()
        assert destroyed == []
        assert made.Stream().query()

    @pytest.mark.parametrize("end", ["", "os._exit(0)", "sys.exit()"])
    def test_the_process_may_end_while_a_context_is_in_use(self, end: str, output_of: OutputOf) -> None:
        code = (
            "import os, sys, tcuda\n"
            "context = tcuda.GreenContext.create(num_sms=2)\n"
            "stream = context.Stream()\n"
            "tcuda.set_stream(stream)\n"
            "x = tcuda.xp.ones(10)\n"
            "print(float(x.sum()), flush=True)\n"
        )
        assert output_of(code + end) == "10.0"


@pytest.fixture
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


@pytest.mark.usefixtures("_no_warnings")
class TestCurrentContext:
    def test_a_stream_of_the_context_is_current(self, context: GreenContext, xp: Any) -> None:
        outer = tcuda.Stream()
        with tcuda.stream(outer):
            x = xp.ones(1000)
            context.set_context()
            inner = tcuda.current_stream()
            assert inner not in (outer, tcuda.default_stream())
            y = x + 1
            context.pop_context()
            assert tcuda.current_stream() == outer
            assert float(y.sum()) == 2000

    def test_contexts_nest(self, xp: Any) -> None:
        contexts = [GreenContext.create(num_sms=2), GreenContext.create(num_sms=2)]
        before = tcuda.current_stream()
        for context in contexts:
            context.set_context()
        assert float(xp.ones(10).sum()) == 10
        for context in reversed(contexts):
            context.pop_context()
        assert tcuda.current_stream() == before

    def test_a_context_is_set_once_and_left_once(self, context: GreenContext) -> None:
        with pytest.raises(RuntimeError, match=r"^pop_context called without matching set_context$"):
            context.pop_context()
        context.set_context()
        with pytest.raises(RuntimeError, match=r"^set_context called twice before pop_context$"):
            context.set_context()
        context.pop_context()
        with pytest.raises(RuntimeError, match=r"^pop_context called without matching set_context$"):
            context.pop_context()

    def test_a_thread_leaves_the_context_that_it_has_set_last(self) -> None:
        outer, inner = GreenContext.create(num_sms=2), GreenContext.create(num_sms=2)
        outer.set_context()
        inner.set_context()
        current = tcuda.current_stream()
        with pytest.raises(RuntimeError, match="has not set last"):
            outer.pop_context()
        with ThreadPoolExecutor(1) as other:
            refused = other.submit(inner.pop_context)
        assert "each context in the thread" in str(refused.exception())
        assert tcuda.current_stream() == current
        inner.pop_context()
        outer.pop_context()

    def test_an_exception_at_any_step_leaves_the_context_set_or_not_set(self, context: GreenContext) -> None:
        from tcuda.streams._green_context import _thread

        before = tcuda.current_stream()

        def check() -> bool:
            """Return whether the context is set."""
            is_set = tcuda.current_stream() != before
            assert (context._parent == before) == is_set
            assert _thread.contexts == [context] * is_set
            return is_set

        steps = 0
        while raises_at(steps, context.set_context):
            steps += 1
            if check():
                context.pop_context()
        assert steps > 20
        steps = 0
        while raises_at(steps, context.pop_context):
            steps += 1
            if not check():
                context.set_context()
        assert steps > 20
        assert not check()

    def test_cupy_may_change_the_device_in_the_context(self, context: GreenContext, xp: Any) -> None:
        context.set_context()
        inner = tcuda.current_stream()
        with xp.cuda.Device():
            x = xp.ones(10)
        assert float(x.sum()) == 10
        assert tcuda.current_stream() == inner
        context.pop_context()

    def test_a_context_that_is_current_is_not_destroyed(self, destroyed: list[int], xp: Any) -> None:
        GreenContext.create(num_sms=2).set_context()
        gc.collect()
        assert destroyed == []
        assert float(xp.ones(10).sum()) == 10
        from tcuda.streams._green_context import _thread

        _thread.contexts[-1].pop_context()
        gc.collect()
        assert len(destroyed) == 1

    def test_a_failure_leaves_the_earlier_context_current(
        self, context: GreenContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = tcuda.current_stream()

        def fail(*_: object) -> None:
            raise tcuda.AcceleratorError(2, "cudaStreamWaitEvent()")

        with monkeypatch.context() as patched:
            patched.setattr(cuda, "streamWaitEvent", fail, raising=False)
            with pytest.raises(tcuda.AcceleratorError):
                context.set_context()
        assert tcuda.current_stream() == before
        context.set_context()
        context.pop_context()
        assert tcuda.current_stream() == before

    def test_a_capture_refuses_both_calls_and_goes_on(self, context: GreenContext, xp: Any) -> None:
        x = xp.zeros(4)

        def work() -> None:
            for call in (context.set_context, context.pop_context):
                with pytest.raises((tcuda.AcceleratorError, RuntimeError)):
                    call()
            x.__iadd__(1)

        graph = tcuda.CUDAGraph()
        captured(work, graph)
        graph.replay()
        assert x.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("name", ["set_context", "pop_context"])
def test_the_current_context_is_deprecated(name: str, context: GreenContext) -> None:
    def call(name: str) -> None:
        getattr(context, name)()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        if name == "pop_context":
            call("set_context")
    with pytest.warns(FutureWarning, match="are deprecated") as caught:
        call(name)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        if name == "set_context":
            call("pop_context")


class TestEnd:
    def test_the_ledger_is_told_of_every_stream_that_ends(
        self, destroyed: list[int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # The driver crashes if the ledger asks about a destroyed stream.
        from tcuda._process.ledger import ledger
        from tcuda.streams import _green_context

        context = GreenContext.create(num_sms=2)
        known: set[int] = set()

        class Told:
            def stream_created(self, device: int, stream: int) -> None:
                known.add(stream)
                ledger().stream_created(device, stream)

            def stream_about_to_be_destroyed(self, device: int, stream: int) -> None:
                known.discard(stream)
                ledger().stream_about_to_be_destroyed(device, stream)

        monkeypatch.setattr(_green_context, "ledger", Told)
        monkeypatch.setattr(_green_context, "ledger_if_any", Told)
        steps = 0
        while raises_at(steps, context.Stream):
            steps += 1
        assert steps > 20
        assert len(known) > len(context._share._streams)  # an exception has lost a stream
        del context
        gc.collect()
        assert len(destroyed) == 1
        assert known == set()


@pytest.mark.emulated
class TestEmulatedTime:
    @staticmethod
    def duration(stream: tcuda.Stream, work: Callable[[], object]) -> float:
        """Return the milliseconds of ``work`` on the emulated clock."""
        start, end = (tcuda.Event(enable_timing=True) for _ in range(2))
        tcuda.synchronize()
        with tcuda.stream(stream):
            start.record()
            work()
            end.record()
        end.synchronize()
        return start.elapsed_time(end)

    def test_a_kernel_takes_longer_in_proportion_to_the_share(self, xp: Any) -> None:
        x = xp.zeros(1 << 22)
        whole = self.duration(tcuda.Stream(), lambda: x.fill(1))
        for wanted in (2, 4, 6, 8):
            took = self.duration(GreenContext.create(num_sms=wanted).Stream(), lambda: x.fill(1))
            assert took == pytest.approx(whole * 8 / wanted, rel=0.2)
            assert took > whole or wanted == 8

    def test_copies_and_spinning_kernels_take_the_same_time(self, xp: Any) -> None:
        x, y = xp.zeros(1 << 20), xp.zeros(1 << 20)
        for work in (lambda: tcuda._sleep(1_000_000), lambda: y.data.copy_from_device_async(x.data, y.nbytes)):
            times = {self.duration(s, work) for s in (tcuda.Stream(), GreenContext.create(num_sms=2).Stream())}
            assert len(times) == 1

    def test_a_graph_keeps_the_share_of_its_capture(self, xp: Any) -> None:
        x = xp.zeros(1 << 22)
        times = []
        for stream in (tcuda.Stream(), GreenContext.create(num_sms=2).Stream()):
            graph = tcuda.CUDAGraph()
            with tcuda.graph(graph, stream=stream):
                x.fill(1)
            times.append(self.duration(tcuda.Stream(), graph.replay))
        assert times[1] == pytest.approx(4 * times[0], rel=0.2)

    @pytest.mark.usefixtures("_no_warnings")
    def test_the_current_stream_has_the_share_while_the_context_is_set(self, xp: Any) -> None:
        x = xp.zeros(1 << 22)
        context = GreenContext.create(num_sms=2)
        whole = self.duration(tcuda.current_stream(), lambda: x.fill(1))
        context.set_context()
        share = self.duration(tcuda.current_stream(), lambda: x.fill(1))
        context.pop_context()
        assert share == pytest.approx(4 * whole, rel=0.2)
        assert self.duration(tcuda.current_stream(), lambda: x.fill(1)) == pytest.approx(whole, rel=0.2)
