"""Arrays, streams and events of Numba, on a real GPU: the numbers, and the order of the work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcuda
from support.exchanges import SIZE, arrays, handed_over, write_late
from support.numba import why_numba_compiles_nothing

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore:.*Grid size")]


@pytest.fixture
def cuda() -> Any:
    return pytest.importorskip("numba.cuda", reason="tcuda does not need Numba")


@pytest.fixture
def copy(cuda: Any) -> Any:
    """A kernel of Numba that copies its first array to its second array; the kernel is compiled."""
    reason = why_numba_compiles_nothing()
    if reason is not None:
        pytest.skip(reason)

    @cuda.jit
    def copy(source: Any, target: Any) -> None:
        i = cuda.grid(1)
        if i < source.size:
            target[i] = source[i]

    source, target = arrays()
    copy[SIZE // 64, 64](cuda.as_cuda_array(source), cuda.as_cuda_array(target))
    tcuda.synchronize()
    return copy


def test_a_kernel_of_numba_runs_on_a_stream_of_tcuda_and_the_program_goes_on(cuda: Any, copy: Any) -> None:
    source, target = arrays()
    stream = tcuda.Stream()
    theirs = cuda.external_stream(stream.cuda_stream)
    write_late(stream, source)
    with tcuda.stream(stream):
        views = [cuda.as_cuda_array(x, sync=False) for x in (source, target)]
        copy[SIZE // 64, 64, theirs](*views)
    assert not stream.query()
    theirs.synchronize()
    assert stream.query()
    assert float(target.min()) == 1


def test_a_view_of_numba_waits_for_the_current_stream(cuda: Any, copy: Any) -> None:
    source, target = arrays()
    stream = tcuda.Stream()
    write_late(stream, source)
    with tcuda.stream(stream):
        views = [cuda.as_cuda_array(x) for x in (source, target)]
    assert stream.query()
    copy[SIZE // 64, 64](*views)
    cuda.synchronize()
    assert float(target.min()) == 1


def test_an_array_of_numba_is_an_array_of_xp_without_a_copy(cuda: Any) -> None:
    stream = tcuda.Stream()
    theirs = cuda.to_device(np.arange(8.0), stream=cuda.external_stream(stream.cuda_stream))
    x = tcuda.xp.asarray(theirs)
    assert x.data.ptr == theirs.__cuda_array_interface__["data"][0]
    assert stream.query()  # xp.asarray() has waited for the stream of the array
    del theirs
    x += 1
    assert x.tolist() == list(range(1, 9))


@pytest.mark.alone
def test_a_stream_of_numba_is_the_current_stream(cuda: Any) -> None:
    theirs = cuda.stream()
    source, _ = arrays()
    write_late(theirs, source)
    with tcuda.stream(theirs):
        current = tcuda.current_stream()
    assert not current.query()
    theirs.synchronize()
    assert current.query()
    assert float(source.min()) == 1


def test_streams_and_events_of_both_order_the_work(cuda: Any) -> None:
    ours, theirs = tcuda.Stream(), cuda.stream()
    event = cuda.event(timing=False)

    def recorded(stream: Any) -> Any:
        event.record(stream)
        return event

    same = cuda.external_stream(ours.cuda_stream)
    assert handed_over(theirs, ours, lambda: ours.wait_stream(theirs)) == 1
    assert handed_over(theirs, ours, lambda: ours.wait_event(recorded(theirs))) == 1
    assert handed_over(ours, theirs, lambda: recorded(same).wait(theirs)) == 1
    assert handed_over(ours, theirs, lambda: ours.record_event().wait(theirs)) == 1
    # Two streams may share a queue of the hardware, which then orders their work. Four pairs do not.
    pairs = [(cuda.stream(), tcuda.Stream()) for _ in range(4)]
    assert 0 in [handed_over(*pair, lambda: None) for pair in pairs]
