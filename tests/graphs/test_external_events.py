"""External events: nodes of a graph that record an event, or wait for one, at every launch."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.busy_streams import LONG, keep_busy
from tcuda._process.devices import Device
from tcuda._runtime.protocol import CAPTURE_RELAXED

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda._runtime.protocol import Runtime


WAYS: dict[str, Callable[[tcuda.Event, tcuda.Stream], object]] = {
    "the event waits on the current stream": lambda event, stream: event.wait(),
    "the event waits on a given stream": lambda event, stream: event.wait(stream),
    "the stream waits": lambda event, stream: stream.wait_event(event),
}


class TestWaitingForLaterRecords:
    @pytest.mark.parametrize("way", WAYS)
    def test_a_replay_waits_for_a_record_after_the_capture(self, graph: tcuda.CUDAGraph, way: str) -> None:
        event, busy, launching = tcuda.Event(external=True), tcuda.Stream(), tcuda.Stream()
        side = tcuda.Stream()
        x = tcuda.xp.zeros(10)
        with tcuda.graph(graph, stream=side):
            WAYS[way](event, side)
            x += 1
        keep_busy(busy)
        event.record(busy)
        with tcuda.stream(launching):
            graph.replay()
        assert not launching.query()
        launching.synchronize()
        assert busy.query()
        assert (x.get() == 1).all()

    def test_every_replay_waits_for_the_last_record(self, graph: tcuda.CUDAGraph) -> None:
        event, busy, launching = tcuda.Event(external=True), tcuda.Stream(), tcuda.Stream()
        x = tcuda.xp.zeros(10)
        with tcuda.graph(graph):
            event.wait()
            x += 1
        for _ in range(2):
            keep_busy(busy)
            event.record(busy)
            with tcuda.stream(launching):
                graph.replay()
            launching.synchronize()
            assert busy.query()
        assert (x.get() == 2).all()

    def test_a_replay_before_any_record_waits_for_nothing(self, graph: tcuda.CUDAGraph) -> None:
        event, busy, launching = tcuda.Event(external=True), tcuda.Stream(), tcuda.Stream()
        x = tcuda.xp.zeros(10)
        with tcuda.graph(graph):
            event.wait()
            x += 1
        keep_busy(busy)
        with tcuda.stream(launching):
            graph.replay()
        launching.synchronize()
        assert not busy.query()
        busy.synchronize()
        assert (x.get() == 1).all()

    def test_the_event_is_created_on_the_device_of_the_capture(self, graph: tcuda.CUDAGraph) -> None:
        last = tcuda.device_count() - 1
        event, side = tcuda.Event(external=True), tcuda.Stream(last)
        with tcuda.device(last):
            x = tcuda.xp.zeros(10)
        with tcuda.graph(graph, stream=side):
            x += 1
            with tcuda.device(0):
                event.wait(side)
        assert event.device == Device("cuda", last)

    def test_one_graph_may_wait_for_what_another_records(self, graph: tcuda.CUDAGraph) -> None:
        event, first, second = tcuda.Event(external=True), tcuda.Stream(), tcuda.Stream()
        x = tcuda.xp.zeros(10)
        with tcuda.graph(graph):
            event.wait()
            x += 1
        recording = tcuda.CUDAGraph()
        tcuda._sleep(10)  # loads the kernel, because a capture cannot load a kernel
        with tcuda.graph(recording):
            tcuda._sleep(LONG)
            event.record()
        with tcuda.stream(first):
            recording.replay()
        with tcuda.stream(second):
            graph.replay()
        assert not second.query()
        second.synchronize()
        assert first.query()
        recording.reset()


class TestOutsideOfCaptures:
    def test_wait_query_synchronize_and_elapsed_time_create_no_cuda_event(self, runtime: Runtime) -> None:
        event = tcuda.Event(enable_timing=True, external=True)
        event.wait()
        event.wait(tcuda.Stream())
        assert event.query()
        event.synchronize()
        with pytest.raises(ValueError, match="Both events must be recorded"):
            event.elapsed_time(event)
        assert (event.cuda_event, event.device) == (0, None)

    def test_an_event_that_a_graph_waits_for_counts_as_not_recorded(self, graph: tcuda.CUDAGraph) -> None:
        event = tcuda.Event(enable_timing=True, external=True)
        x = tcuda.xp.zeros(10)
        with tcuda.graph(graph):
            event.wait()
            x += 1
        assert event.query()
        event.synchronize()
        with pytest.raises(ValueError, match="Both events must be recorded"):
            event.elapsed_time(event)
        event.record()
        event.synchronize()
        assert event.elapsed_time(event) == 0.0

    def test_an_ipc_handle_can_be_taken_after_the_capture(self, graph: tcuda.CUDAGraph) -> None:
        event = tcuda.Event(interprocess=True, external=True)
        x = tcuda.xp.zeros(10)
        with tcuda.graph(graph):
            event.wait()
            x += 1
        created = event.cuda_event
        assert len(event.ipc_handle()) == 64
        assert event.cuda_event == created != 0


class TestFailure:
    def test_a_wait_that_fails_leaves_no_cuda_event(self, runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
        from tcuda._process.lazy import cuda

        def refuse(stream: int, event: int, flags: int = 0) -> None:
            raise tcuda.AcceleratorError(400, "cudaStreamWaitEvent()")

        stream, event = tcuda.Stream(), tcuda.Event(external=True)
        runtime.streamBeginCapture(stream.cuda_stream, CAPTURE_RELAXED)
        try:
            with monkeypatch.context() as patch:
                patch.setattr(cuda, "streamWaitEvent", refuse)
                with pytest.raises(tcuda.AcceleratorError):
                    event.wait(stream)
            assert (event.cuda_event, event.device) == (0, None)
        finally:
            runtime.graphDestroy(runtime.streamEndCapture(stream.cuda_stream))


class TestLifetime:
    @pytest.mark.parametrize("use", ["wait", "record"])
    def test_a_graph_keeps_its_events(self, graph: tcuda.CUDAGraph, use: str) -> None:
        event = tcuda.Event(external=True)
        x = tcuda.xp.zeros(10)
        with tcuda.graph(graph):
            getattr(event, use)()
            x += 1
        known = weakref.ref(event)
        del event
        gc.collect()
        assert known() is not None
        graph.replay()
        tcuda.synchronize()
        graph.reset()
        gc.collect()
        assert known() is None

    def test_a_failed_capture_keeps_no_events(self, graph: tcuda.CUDAGraph) -> None:
        event: Any = tcuda.Event(external=True)

        def fail() -> None:
            with tcuda.graph(graph):
                event.wait()
                raise KeyError

        with pytest.raises(KeyError):
            fail()
        known = weakref.ref(event)
        event = None
        gc.collect()
        assert known() is None
