"""The time of collectives by the clock of the emulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.device_arrays import on_each
from tcuda import nccl, xp
from tcuda.emulation.runtime import costs

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.emulated
MS = 1_000_000


def elapsed(runtime: Any, work: Callable[[], object]) -> list[int]:
    """Return the time, in nanoseconds, for which ``work`` keeps the default stream of each device busy."""
    for device in (0, 1):
        tcuda.synchronize(device)
        with tcuda.device(device):
            tcuda._sleep(MS)  # keeps the stream busy until the host has launched all the work
    ready = max(runtime.devices[device].default.ready for device in (0, 1))
    work()
    return [runtime.devices[device].default.ready - ready for device in (0, 1)]


def test_a_collective_takes_the_time_of_its_links_on_all_devices(runtime: Any) -> None:
    size = 1 << 20
    arrays = on_each([xp.zeros(1).get().repeat(size // 8)] * 2)
    halves = on_each([xp.zeros(1).get().repeat(size // 16)] * 2)
    assert elapsed(runtime, lambda: nccl.all_reduce(arrays)) == [costs.ring_and_back(size, 2)] * 2
    assert elapsed(runtime, lambda: nccl.broadcast(arrays)) == [costs.pipeline(size, 2)] * 2
    assert elapsed(runtime, lambda: nccl.reduce(arrays)) == [costs.pipeline(size, 2)] * 2
    assert elapsed(runtime, lambda: nccl.reduce_scatter(arrays, halves)) == [costs.ring(size, 2)] * 2
    assert elapsed(runtime, lambda: nccl.all_gather(halves, arrays)) == [costs.ring(size, 2)] * 2


def test_the_model_moves_the_bytes_of_a_ring_over_each_link() -> None:
    size, most = 1 << 30, 64
    one_copy = costs.copy_between_devices(size) - costs.copy_between_devices(0)
    assert costs.ring_and_back(size, 1) == costs.ring(size, 1) == costs.pipeline(size, 1) == costs.pipeline(0, 1)
    for devices in range(2, most):
        steps = costs.ring(0, devices)
        assert costs.ring(size, devices) - steps == pytest.approx(one_copy * (devices - 1) / devices, rel=1e-6)
        assert costs.pipeline(size, devices) - steps == one_copy
        both = costs.ring_and_back(size, devices) - costs.ring_and_back(0, devices)
        assert both == pytest.approx(2 * one_copy * (devices - 1) / devices, rel=1e-6)
        assert steps > costs.ring(0, devices - 1)


def test_all_devices_are_busy_during_a_collective(runtime: Any) -> None:
    def worked() -> list[int]:
        return [runtime.devices[device].activity.until(runtime.clock.now()) for device in (0, 1)]

    arrays = on_each([xp.zeros(1).get().repeat(1 << 17)] * 2)
    tcuda.synchronize(0)
    tcuda.synchronize(1)
    before = worked()
    nccl.all_reduce(arrays)
    tcuda.synchronize(0)
    tcuda.synchronize(1)
    took = costs.ring_and_back(8 << 17, 2)
    assert worked() == [each + took for each in before]
