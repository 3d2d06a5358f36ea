"""Memory of one GPU that another GPU reads: cudaDeviceEnablePeerAccess() does not cover mapped memory."""

from __future__ import annotations

import pytest

import tcuda
from tcuda import xp

pytestmark = [pytest.mark.gpu, pytest.mark.multigpu]

_TWICE = r"""
extern "C" __global__ void twice(const float *x, float *y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
"""


@pytest.mark.parametrize("megabytes", [0.5, 40])
def test_a_copy_between_devices_has_the_right_contents(megabytes: float) -> None:
    with tcuda.device(0):
        x = xp.arange(int(megabytes * 2**18), dtype="float32")
    with tcuda.device(1):
        y = xp.asarray(x)
        z = xp.empty_like(y)
        z[...] = x
    assert (x.device.id, y.device.id, z.device.id) == (0, 1, 1)
    assert (y.get() == x.get()).all()
    assert (z.get() == x.get()).all()


def test_a_kernel_reads_the_memory_of_a_device_that_it_can_access() -> None:
    if not tcuda.can_device_access_peer(1, 0):
        pytest.skip("the GPUs of this machine cannot access each other's memory")
    n = 1 << 20
    with tcuda.device(0):
        x = xp.arange(n, dtype="float32")
        tcuda.synchronize()
    with tcuda.device(1):
        y = xp.empty(n, dtype="float32")
        xp.RawKernel(_TWICE, "twice")((n // 256,), (256,), (x, y, n))
        assert (y.get() == 2 * x.get()).all()


def test_each_device_counts_its_own_memory() -> None:
    before = [tcuda.memory_allocated(device) for device in (0, 1)]
    with tcuda.device(1):
        kept = xp.empty(1 << 20, dtype="uint8")
    assert [tcuda.memory_allocated(device) - was for device, was in zip((0, 1), before, strict=True)] == [
        0,
        kept.nbytes,
    ]
