"""The streams of collectives, and collectives in captures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import tcuda
from support.busy_streams import LONG, keep_busy
from support.device_arrays import on_each, read
from tcuda import nccl, xp

if TYPE_CHECKING:
    from support.fixture_types import OutputOf


def current_streams() -> list[tcuda.Stream]:
    return [tcuda.current_stream(device) for device in (0, 1)]


def prepare() -> None:
    """Load the kernels, make the communicators, and wait for both devices."""
    arrays = on_each([np.zeros(1000)] * 2)
    nccl.all_reduce(arrays)
    nccl.broadcast(arrays)
    for device in (0, 1):
        keep_busy(tcuda.Stream(device=device), 10)
        tcuda.synchronize(device)


def test_a_collective_waits_for_the_current_stream_of_each_device() -> None:
    arrays = on_each([np.zeros(1000)] * 2)
    prepare()
    with tcuda.device(1):
        tcuda._sleep(LONG)
        arrays[1] += 1
    nccl.broadcast(arrays, 1)
    assert not tcuda.current_stream(0).query()  # the host does not wait, and device 0 waits for device 1
    assert [got.tolist() for got in read(arrays)] == [[1] * 1000] * 2


def test_a_collective_runs_on_the_streams_that_are_given() -> None:
    arrays = on_each([np.ones(1000)] * 2)
    prepare()
    streams = [tcuda.Stream(device=0), tcuda.Stream(device=1)]
    keep_busy(streams[0], LONG)
    nccl.all_reduce(arrays, streams=streams)
    assert all(not stream.query() for stream in streams)
    assert all(stream.query() for stream in current_streams())
    for stream in streams:
        stream.synchronize()
    assert [got.tolist() for got in read(arrays)] == [[2] * 1000] * 2


def test_none_in_the_place_of_a_stream_means_the_current_stream() -> None:
    arrays = on_each([np.ones(1000)] * 2)
    side = tcuda.Stream(device=0)
    prepare()
    keep_busy(side, LONG)
    with tcuda.stream(side):
        nccl.all_reduce(arrays, streams=[None, None])
    assert not side.query()
    assert not tcuda.current_stream(1).query()
    side.synchronize()
    assert [got.tolist() for got in read(arrays)] == [[2] * 1000] * 2


def test_a_default_stream_is_a_stream() -> None:
    arrays = on_each([np.ones(10)] * 2)
    nccl.all_reduce(arrays, streams=[tcuda.default_stream(device) for device in (0, 1)])
    assert [got.tolist() for got in read(arrays)] == [[2] * 10] * 2


def test_a_call_leaves_the_current_device_and_streams_as_they_are() -> None:
    arrays = on_each([np.ones(10)] * 2)
    side = tcuda.Stream(device=1)
    side.wait_stream(tcuda.current_stream(1))
    with tcuda.stream(side):
        nccl.all_reduce(arrays)
        assert (tcuda.current_device(), tcuda.current_stream()) == (1, side)
    side.synchronize()  # the memory of the array belongs to another stream, which may not use the memory before


def test_a_collective_is_captured_and_runs_at_every_launch() -> None:
    arrays = on_each([np.ones(10), np.full(10, 2.0)])
    prepare()
    other, graph = tcuda.Stream(device=1), tcuda.CUDAGraph()
    with tcuda.device(0), tcuda.graph(graph):
        origin = tcuda.current_stream()
        other.wait_stream(origin)
        nccl.all_reduce(arrays, streams=[origin, other])
        origin.wait_stream(other)
    assert [got.tolist() for got in read(arrays)] == [[1] * 10, [2] * 10]
    graph.replay()
    tcuda.synchronize(0)
    assert [got.tolist() for got in read(arrays)] == [[3] * 10] * 2
    graph.replay()
    tcuda.synchronize(0)
    assert [got.tolist() for got in read(arrays)] == [[6] * 10] * 2


def test_a_captured_collective_knows_its_line_and_cannot_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCUDA_GRAPH_LINES", "1")
    arrays = on_each([np.ones(10), np.full(10, 2.0)])
    prepare()
    other, graph = tcuda.Stream(device=1), tcuda.CUDAGraph()
    with tcuda.device(0), tcuda.graph(graph):
        origin = tcuda.current_stream()
        arrays[0] *= 2
        other.wait_stream(origin)
        nccl.all_reduce(arrays, streams=[origin, other])
        origin.wait_stream(other)
    words = (
        r"node \d \(\S+, captured at \S+test_streams.py:\d+ in test_\w+\) cannot be run alone: "
        "the kernel waits for the work of"
    )
    with pytest.raises(RuntimeError, match=words):
        graph.replay_stepwise()
    assert [got.tolist() for got in read(arrays)] == [[1] * 10, [2] * 10]


def test_communicators_are_not_made_in_a_capture(output_of: OutputOf) -> None:
    code = """
import tcuda
from tcuda import nccl, xp

arrays = []
for device in (0, 1):
    with tcuda.device(device):
        arrays.append(xp.ones(4))
with tcuda.graph(tcuda.CUDAGraph()):
    doubled = arrays[0] * 2
    for call in (lambda: nccl.all_reduce(arrays), lambda: nccl.init_rank(1, nccl.unique_id(), 0)):
        try:
            call()
        except tcuda.AcceleratorError as error:
            print(error.error_code, error.call)
    tripled = arrays[0] * 3
nccl.all_reduce(arrays)
print(arrays[1].get().tolist())
"""
    assert output_of(code).splitlines() == ["900 ncclCommInitAll()", "900 ncclCommInitRank()", "[2.0, 2.0, 2.0, 2.0]"]


@pytest.mark.emulated
def test_streams_of_which_one_captures_are_refused_and_the_capture_goes_on() -> None:
    arrays = on_each([np.ones(4), np.ones(4)])
    nccl.all_reduce(arrays)
    graph = tcuda.CUDAGraph()
    with tcuda.device(0), tcuda.graph(graph):
        tripled = arrays[0] * 3
        with pytest.raises(RuntimeError, match=r"NCCL Error 5: invalid usage.*\nThe streams of a collective must"):
            nccl.all_reduce(arrays)
    graph.replay()
    assert tripled.get().tolist() == [6] * 4
    assert xp.all(arrays[0] == 2)
