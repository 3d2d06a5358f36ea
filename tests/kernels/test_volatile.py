"""Accesses to volatile variables, with which threads wait for each other and lanes of a warp work in step."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import tcuda
from support.devices import synchronized
from tcuda.emulation.rtc import checks

pytestmark = [
    pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler"),
    pytest.mark.emulated,  # A GPU since Volta promises nothing about lanes without __syncwarp().
]

SUM = r"""
template <typename Pointer> __device__ void add_lanes(Pointer part, int lane) {
    part[lane] += part[lane + 32];
    part[lane] += part[lane + 16];
    part[lane] += part[lane + 8];
    part[lane] += part[lane + 4];
    part[lane] += part[lane + 2];
    part[lane] += part[lane + 1];
}
extern "C" __global__ void sum(const TYPE* x, TYPE* result) {
    SHARED
    const int thread = threadIdx.x;
    part[thread] = x[blockIdx.x * 64 + thread];
    __syncthreads();
    if (thread < 32) add_lanes<volatile TYPE*>(part, thread);
    if (thread == 0) result[blockIdx.x] = part[0];
}
"""


@pytest.mark.parametrize("chosen", ["1", "0"])
@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("shared", ["extern __shared__ TYPE part[];", "__shared__ volatile TYPE part[96];"])
def test_lanes_of_a_warp_work_in_step(
    shared: str, dtype: str, chosen: str, xp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", chosen)
    ctype = {"u1": "unsigned char", "i2": "short", "i4": "int", "f4": "float", "f8": "double"}[dtype]
    kernel = xp.RawKernel(SUM.replace("SHARED", shared).replace("TYPE", ctype), "sum")
    numbers = np.arange(128) % 3
    x, result = xp.asarray(numbers.astype(dtype)), xp.zeros(2, dtype=dtype)
    kernel((2,), (64,), (x, result), shared_mem=96 * 8)
    assert result.get().tolist() == [numbers[:64].sum(), numbers[64:].sum()]


@pytest.mark.parametrize("chosen", ["1", "0"])
def test_a_thread_waits_for_a_volatile_flag_of_another_thread(
    chosen: str, xp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", chosen)
    code = """
extern "C" __global__ void pass_on(volatile int* flags) {
    const int thread = threadIdx.x, next = thread + 1;
    while (next < blockDim.x && flags[next] == 0) {}
    flags[thread] = 1;
}
"""
    flags = xp.zeros(96, dtype=xp.int32)
    xp.RawKernel(code, "pass_on")((1,), (96,), (flags,))
    assert flags.get().tolist() == [1] * 96


@pytest.mark.parametrize("chosen", ["1", "0"])
def test_a_block_uses_the_volatile_results_of_earlier_blocks(
    chosen: str, xp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", chosen)
    code = """
extern "C" __global__ void scan(volatile int* sums, volatile int* ready) {
    if (threadIdx.x != 0) return;
    const int block = blockIdx.x;
    int before = 0;
    if (block > 0) {
        while (ready[block - 1] == 0) {}
        before = sums[block - 1];
    }
    sums[block] = before + block;
    __threadfence();
    ready[block] = 1;
}
"""
    sums, ready = xp.zeros(20, dtype=xp.int32), xp.zeros(20, dtype=xp.int32)
    xp.RawKernel(code, "scan")((20,), (32,), (sums, ready))
    assert sums.get().tolist() == np.arange(20).cumsum().tolist()


def test_a_wrong_volatile_access_is_found(xp: Any) -> None:
    x = xp.zeros(4, dtype=xp.float64)
    for body, status in (("x[4] = 1;", 700), ("*(volatile double*)((volatile char*)x + 4) = 1;", 716)):
        kernel = xp.RawKernel(f'extern "C" __global__ void f(volatile double* x) {{ {body} }}', "f")
        with pytest.raises(tcuda.AcceleratorError) as caught, synchronized():
            kernel((1,), (1,), (x,))
        assert caught.value.error_code == status


def test_sources_without_volatile_variables_have_no_steps() -> None:
    assert "-fsanitize=thread" not in checks.flags("int x;", memory=True, clang=False)
    assert checks.flags("int x;", memory=False, clang=False) == ()
