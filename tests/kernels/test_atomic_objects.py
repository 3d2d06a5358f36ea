"""``cuda::atomic_ref`` and ``cuda::atomic`` of ``<cuda/atomic>`` in kernels."""

from __future__ import annotations

from typing import Any

import pytest

import tcuda

CODE = r"""
#include <cuda/atomic>
extern "C" __global__ void kernel(int* x, unsigned long long* wide, float* real, int* found) {
    cuda::atomic_ref<int, cuda::thread_scope_device> a(x[0]), b(x[1]), c(x[2]);
    cuda::atomic_ref<unsigned long long> d(*wide);
    cuda::atomic_ref<float, cuda::thread_scope_device> e(*real);
    a.fetch_add(threadIdx.x, cuda::memory_order_relaxed);
    b.fetch_max(threadIdx.x);
    c.fetch_or(1 << threadIdx.x % 4, cuda::memory_order_acq_rel);
    d += 1ull << 33;
    e.fetch_add(0.5f);
    if (threadIdx.x != 0 || blockIdx.x != 0) return;
    cuda::atomic_ref<int, cuda::thread_scope_block> f(x[3]);
    found[0] = f.exchange(5);
    int expected = 4;
    found[1] = f.compare_exchange_strong(expected, 6);
    found[2] = expected;
    found[3] = f.compare_exchange_strong(expected, 7, cuda::memory_order_release, cuda::memory_order_relaxed);
    found[4] = f.load(cuda::memory_order_acquire);
    f.store(8, cuda::memory_order_release);
    found[5] = f;
    found[6] = ++f;
    found[7] = f--;
    f &= 12;
    found[8] = f.fetch_xor(3);
    f -= 1;
    f = f.load() * 2;
}
extern "C" __global__ void in_shared_memory(int* found) {
    __shared__ cuda::atomic<int, cuda::thread_scope_block> count;
    if (threadIdx.x == 0) count.store(10);
    __syncthreads();
    count.fetch_add(1, cuda::memory_order_relaxed);
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_block);
    __syncthreads();
    if (threadIdx.x == 0) found[0] = count.load();
}
"""


@pytest.mark.usefixtures("runtime")
def test_the_operations_of_atomic_objects() -> None:
    xp: Any = tcuda.xp
    module = xp.RawModule(code=CODE)
    x, wide = xp.zeros(4, "int32"), xp.zeros(1, "uint64")
    real, found = xp.zeros(1, "float32"), xp.zeros(9, "int32")
    module.get_function("kernel")((2,), (32,), (x, wide, real, found))
    assert x.get().tolist() == [2 * 496, 31, 15, 2 * ((8 ^ 3) - 1)]
    assert wide.get().tolist() == [64 << 33]
    assert real.get().tolist() == [32.0]
    assert found.get().tolist() == [0, 0, 5, 1, 7, 8, 9, 9, 8]
    module.get_function("in_shared_memory")((1,), (32,), (found,))
    assert found.get()[0] == 42
