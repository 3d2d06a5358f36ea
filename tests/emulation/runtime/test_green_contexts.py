"""Green contexts of emulated devices: shares, streams, and the statuses of wrong calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.statuses import status_of
from tcuda._runtime.protocol import STREAM_DEFAULT, STREAM_NON_BLOCKING
from tcuda.emulation.runtime.costs import MULTIPROCESSORS, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda.emulation.runtime import EmulatedRuntime

pytestmark = pytest.mark.emulated

WORK = 1 << 30  # bytes that a kernel moves


def test_the_time_of_a_kernel_is_in_proportion_to_the_share() -> None:
    launch = kernel(0)
    whole = kernel(WORK) - launch
    for count in range(1, MULTIPROCESSORS + 1):
        assert kernel(WORK, 0, count) - launch == whole * MULTIPROCESSORS // count
        assert kernel(0, 10**12, count) - launch == (kernel(0, 10**12) - launch) * MULTIPROCESSORS // count


def test_kernels_and_memsets_of_a_stream_have_its_share(r: EmulatedRuntime) -> None:
    context, count = r.greenCtxCreate(0, 1, -1, 0)
    stream = r.greenCtxStreamCreate(context, STREAM_NON_BLOCKING, 0)
    ptr = r.malloc(4096)
    times = []
    for work in (
        lambda: r.launch(stream, lambda: None, WORK),
        lambda: r.memsetAsync(ptr, 0, 4096, stream),
        lambda: r.sleep(1000, stream),
    ):
        r.streamSynchronize(stream)
        start = r.clock.now()
        work()
        r.streamSynchronize(stream)
        times.append(r.clock.now() - start)
    assert count == 2
    assert times[0] // 1_000_000 == kernel(WORK, 0, 2) // 1_000_000
    assert times[1] < 2 * kernel(0) + 10_000
    assert times[2] < 10_000


@pytest.mark.parametrize(
    ("status", "call"),
    [
        (1, lambda r, _: r.greenCtxCreate(0, MULTIPROCESSORS + 1, -1, 0)),
        (1, lambda r, _: r.greenCtxCreate(0, -1, -1, 0)),
        (1, lambda r, _: r.greenCtxCreate(0, 1, 2, 0)),
        (1, lambda r, _: r.greenCtxCreate(0, 1, 0, -1)),
        (101, lambda r, _: r.greenCtxCreate(2, 1, -1, 0)),
        (101, lambda r, _: r.deviceGetWorkQueueConcurrency(2)),
        (1, lambda r, context: r.greenCtxStreamCreate(context, STREAM_DEFAULT, 0)),
        (400, lambda r, context: r.greenCtxStreamCreate(context + 1, STREAM_NON_BLOCKING, 0)),
        (400, lambda r, context: r.greenCtxDestroy(context + 1)),
    ],
)
def test_wrong_calls_have_a_status(
    r: EmulatedRuntime, status: int, call: Callable[[EmulatedRuntime, int], object]
) -> None:
    context, _ = r.greenCtxCreate(0, 2, -1, 0)
    assert status_of(lambda: call(r, context)) == status
    r.greenCtxDestroy(context)


def test_a_destroyed_context_has_destroyed_its_streams(r: EmulatedRuntime) -> None:
    context, _ = r.greenCtxCreate(1, 2, -1, 0)
    streams = [r.greenCtxStreamCreate(context, STREAM_NON_BLOCKING, 0) for _ in range(2)]
    assert [r.streamQuery(stream) for stream in streams] == [0, 0]
    r.greenCtxDestroy(context)
    assert [status_of(lambda: r.streamSynchronize(stream)) for stream in streams] == [400, 400]  # noqa: B023
    assert status_of(lambda: r.greenCtxDestroy(context)) == 400
