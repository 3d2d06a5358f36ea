"""Streams, events, buffers and graphs of cuda.core, on a real GPU: the numbers, and the order of the work."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import tcuda
from support.busy_streams import keep_busy
from support.exchanges import SIZE, arrays, handed_over, write_late

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.gpu


@pytest.fixture
def core() -> Any:
    return pytest.importorskip("cuda.core", reason="tcuda does not need cuda.core")


@pytest.fixture
def device(core: Any) -> Any:
    """The device 0 of cuda.core, which is the current device."""
    device = core.Device(0)
    device.set_current()
    return device


class Pair(NamedTuple):
    """A stream of tcuda, and a stream of cuda.core."""

    ours: tcuda.Stream
    theirs: Any


@pytest.fixture
def pair(device: Any) -> Pair:
    return Pair(tcuda.Stream(), device.create_stream())


class TestStreams:
    @pytest.mark.alone
    def test_a_stream_of_cuda_core_is_the_current_stream(self, pair: Pair) -> None:
        source, _ = arrays()
        with tcuda.stream(pair.theirs):
            current = tcuda.current_stream()
            assert current.cuda_stream == pair.theirs.__cuda_stream__()[1]
            assert current.device_index == 0
        write_late(pair.theirs, source)
        assert not current.query()
        pair.theirs.sync()
        assert current.query()
        assert float(source.min()) == 1

    def test_a_stream_of_tcuda_is_a_stream_of_cuda_core(self, device: Any, pair: Pair) -> None:
        same = device.create_stream(pair.ours)
        assert int(same.handle) == pair.ours.cuda_stream
        source, _ = arrays()
        write_late(pair.ours, source)
        assert not pair.ours.query()
        same.sync()
        assert pair.ours.query()
        assert float(source.min()) == 1

    @pytest.mark.multigpu
    def test_a_stream_of_another_device_makes_that_device_current(self, core: Any, device: Any) -> None:
        other = core.Device(1)
        other.set_current()
        theirs = other.create_stream()
        device.set_current()
        assert tcuda.current_device() == 0
        with tcuda.stream(theirs):
            assert tcuda.current_device() == 1
            assert tcuda.device_of(tcuda.xp.zeros(1)).idx == 1
            keep_busy(theirs)
        assert tcuda.current_device() == 0
        waiting = tcuda.Stream(0)
        waiting.wait_stream(theirs)
        assert not waiting.query()
        theirs.sync()
        waiting.synchronize()


THEIRS_WAIT: dict[str, Callable[[Pair], object]] = {
    "theirs.wait(ours)": lambda p: p.theirs.wait(p.ours),
    "ours.record_event().wait(theirs)": lambda p: p.ours.record_event().wait(p.theirs),
}
OURS_WAIT: dict[str, Callable[[Pair], object]] = {
    "ours.wait_stream(theirs)": lambda p: p.ours.wait_stream(p.theirs),
    "ours.wait_event(theirs.record())": lambda p: p.ours.wait_event(p.theirs.record()),
}


class TestOrder:
    @pytest.mark.parametrize("way", THEIRS_WAIT)
    def test_a_stream_of_cuda_core_waits_for_a_stream_of_tcuda(self, pair: Pair, way: str) -> None:
        assert handed_over(pair.ours, pair.theirs, lambda: THEIRS_WAIT[way](pair)) == 1

    @pytest.mark.parametrize("way", OURS_WAIT)
    def test_a_stream_of_tcuda_waits_for_a_stream_of_cuda_core(self, pair: Pair, way: str) -> None:
        assert handed_over(pair.theirs, pair.ours, lambda: OURS_WAIT[way](pair)) == 1

    def test_an_event_of_tcuda_is_recorded_on_a_stream_of_cuda_core(self, pair: Pair) -> None:
        event = tcuda.Event()

        def order() -> None:
            event.record(pair.theirs)
            event.wait(pair.ours)

        assert handed_over(pair.theirs, pair.ours, order) == 1

    def test_streams_without_a_wait_read_too_early(self, device: Any) -> None:
        # Two streams may share a queue of the hardware, which then orders their work. Four pairs do not.
        pairs = [Pair(tcuda.Stream(), device.create_stream()) for _ in range(4)]
        assert 0 in [handed_over(pair.ours, pair.theirs, lambda: None) for pair in pairs]
        assert 0 in [handed_over(pair.theirs, pair.ours, lambda: None) for pair in pairs]

    def test_a_stream_of_cuda_core_is_refused_as_an_event(self, pair: Pair) -> None:
        with pytest.raises(RuntimeError, match=r"Use wait_stream\(\)"):
            pair.ours.wait_event(pair.theirs)

    def test_a_closed_event_is_refused(self, pair: Pair) -> None:
        event = pair.theirs.record()
        event.close()
        with pytest.raises(RuntimeError, match="closed"):
            pair.ours.wait_event(event)


class TestBuffers:
    def test_a_buffer_is_an_array_that_keeps_the_buffer_alive(self, device: Any, pair: Pair) -> None:
        gc.collect()  # arrays of tests that failed
        before = tcuda.memory_allocated()
        buffer = device.allocate(4 * SIZE, stream=pair.theirs)
        address = int(buffer.handle)
        with tcuda.stream(pair.theirs):
            x = tcuda.xp.from_dlpack(buffer).view("float32")
            assert x.data.ptr == address
            assert x.shape == (SIZE,)
            assert tcuda.memory_allocated() == before
            x.fill(3)
            del buffer
            gc.collect()
            another = device.allocate(4 * SIZE, stream=pair.theirs)
            assert int(another.handle) != address
            assert float(x.min()) == float(x.max()) == 3

    def test_an_array_is_a_buffer_that_keeps_the_array_alive(self, core: Any, device: Any, pair: Pair) -> None:
        source, target = arrays()
        same = device.create_stream(pair.ours)
        write_late(pair.ours, source)
        begun, ended = (core.Buffer.from_handle(x.data.ptr, x.nbytes, owner=x) for x in (source, target))
        del source
        ended.copy_from(begun, stream=same)
        assert not pair.ours.query()
        same.sync()
        assert float(target.min()) == 1
        gc.collect()  # arrays of tests that failed
        allocated = tcuda.memory_allocated()
        begun.close()
        del begun
        gc.collect()
        assert tcuda.memory_allocated() == allocated - 4 * SIZE


class TestGraphs:
    def test_a_graph_of_tcuda_runs_on_a_stream_of_cuda_core(self, pair: Pair) -> None:
        x, total = arrays()
        graph = tcuda.CUDAGraph()
        with tcuda.graph(graph):
            tcuda.xp.add(total, x, out=total)
        write_late(pair.theirs, x)
        with tcuda.stream(pair.theirs):
            for _ in range(3):
                graph.replay()
            event = tcuda.Event()
            event.record()
        assert not event.query()
        pair.theirs.sync()
        assert event.query()
        assert float(total.min()) == float(total.max()) == 3

    def test_a_graph_of_cuda_core_runs_on_a_stream_of_tcuda(self, device: Any, pair: Pair) -> None:
        x, total = arrays()
        tcuda.xp.add(total, x, out=total)
        tcuda.synchronize()
        builder = pair.theirs.create_graph_builder().begin_building()
        with tcuda.stream(builder):
            tcuda.xp.add(total, x, out=total)
        graph = builder.end_building().complete()
        assert float(total.max()) == 0
        write_late(pair.ours, x)
        same = device.create_stream(pair.ours)
        for _ in range(3):
            graph.launch(same)
        assert not pair.ours.query()
        pair.ours.synchronize()
        assert float(total.min()) == float(total.max()) == 3
