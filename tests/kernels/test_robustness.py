"""Launches after errors, from several threads, in other processes, and without their module."""

from __future__ import annotations

import gc
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.devices import synchronized
from support.threads import in_threads

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")

CODE = """
extern "C" __global__ void f(int* x, int fails) {
    extern __shared__ int s[];
    s[threadIdx.x] = x[threadIdx.x] + 1;
    if (fails == 1 && threadIdx.x == 5) __trap();
    if (fails == 2 && threadIdx.x == 5) x[1 << 20] = 1;
    if (fails == 3 && threadIdx.x > 5) __syncwarp();
    __syncthreads();
    x[threadIdx.x] = s[31 - threadIdx.x];
}
"""


@pytest.mark.emulated
@pytest.mark.parametrize("fails", [1, 2, 3])
def test_a_kernel_works_after_its_failure(fails: int, xp: Any) -> None:
    kernel = xp.RawKernel(CODE, "f")
    x = xp.arange(32, dtype=xp.int32)
    before = tcuda.memory_allocated()
    for _ in range(20):
        with pytest.raises(tcuda.AcceleratorError), synchronized():
            kernel((1,), (32,), (x, xp.int32(fails)), shared_mem=128)
    assert tcuda.memory_allocated() == before
    assert x.get().tolist() == list(range(32))
    kernel((1,), (32,), (x, xp.int32(0)), shared_mem=128)
    assert x.get().tolist() == list(range(32, 0, -1))


SCRIBBLES = """
__device__ int number[4] = {1, 2, 3, 4};
__device__ __noinline__ int* chosen(int* one, int* other, bool first) { return first ? one : other; }
extern "C" __global__ void f(int* x, int way) {
    __shared__ int s[4];
    int* p = chosen(number, s, way < 0);
    s[threadIdx.x % 4] = 1;
    x[0] = s[0];
    if (way != 0)
        for (long i = 0; i < 1 << 24; i++) p[way * i] = 0x41414141;
}
"""


@pytest.mark.emulated
@pytest.mark.parametrize("checks", ["1", "memory,races", "memory,init"])
@pytest.mark.parametrize("way", [1, -1, 16, -16, 1000])
def test_a_kernel_that_writes_over_its_module_fails_alone(
    way: int, checks: str, xp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", checks)
    kernel = xp.RawKernel(SCRIBBLES, "f")
    x = xp.zeros(4, dtype=xp.int32)
    for _ in range(2):
        with pytest.raises(tcuda.AcceleratorError), synchronized():
            kernel((1,), (1,), (x, xp.int32(way)))
        kernel((1,), (1,), (x, xp.int32(0)))
        assert x.get().tolist() == [1, 0, 0, 0]


def test_threads_launch_one_kernel_at_once(xp: Any) -> None:
    kernel = xp.RawKernel(CODE, "f")
    arrays = [xp.zeros(32, dtype=xp.int32) for _ in range(4)]
    tcuda.synchronize()

    def work(x: Any) -> None:
        for _ in range(50):
            kernel((1,), (32,), (x, xp.int32(0)), shared_mem=128)

    in_threads(work, zip(arrays))
    tcuda.synchronize()
    assert [x.get().tolist() for x in arrays] == [[50] * 32] * 4


def test_a_captured_launch_outlives_its_module(xp: Any) -> None:
    x = xp.zeros(32, dtype=xp.int32)
    module = xp.RawModule(code=CODE + "// a source of its own")
    kernel = module.get_function("f")
    kernel((1,), (32,), (x, xp.int32(0)), shared_mem=128)
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        kernel((1,), (32,), (x, xp.int32(0)), shared_mem=128)
    del kernel, module
    gc.collect()
    graph.replay()
    tcuda.synchronize()
    assert x.get().tolist() == [2] * 32


@pytest.mark.emulated
def test_ctrl_c_ends_a_kernel_and_the_next_launch_works(output_of: OutputOf) -> None:
    code = """
import faulthandler, os, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell starts background processes without it.
faulthandler.dump_traceback_later(60, exit=True)  # so that a kernel that goes on for ever is told from a slow machine
import tcuda.emulation
tcuda.emulation.enable()
xp = tcuda.emulation.xp
code = 'extern "C" __global__ void f(volatile int* x, int n) { while (x[0] < n) { x[1] = 1; } x[0] = 5; }'
kernel = xp.RawKernel(code, "f")
x = xp.zeros(2, dtype=xp.int32)
kernel((1,), (1,), (x, xp.int32(0)))
x[:] = 0
tcuda.synchronize()
import ctypes
seen = ctypes.c_int.from_address(x.data.ptr + 4)

def press() -> None:
    while seen.value == 0:
        pass
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=press, daemon=True).start()  # so that an error is not hidden
try:
    kernel((1,), (1,), (x, xp.int32(1)))
    tcuda.synchronize()
except KeyboardInterrupt:
    print("interrupted")
kernel((1,), (1,), (x, xp.int32(0)))
print(x[0].item())
"""
    assert output_of(code).split() == ["interrupted", "5"]


@pytest.mark.emulated
@pytest.mark.eager
def test_a_launch_from_a_signal_handler_in_the_same_module_is_refused(output_of: OutputOf) -> None:
    code = """
import ctypes, os, signal, threading
import tcuda.emulation
tcuda.emulation.enable()
xp = tcuda.emulation.xp
code = 'extern "C" __global__ void f(volatile int* x, int n) { while (x[0] < n) { x[1] = 1; } x[0] = 5; }'
kernel = xp.RawKernel(code, "f")
x, y = xp.zeros(2, dtype=xp.int32), xp.zeros(2, dtype=xp.int32)
kernel((1,), (1,), (y, xp.int32(0)))
first, seen = (ctypes.c_int.from_address(x.data.ptr + offset) for offset in (0, 4))

def handle(*_) -> None:
    try:
        kernel((1,), (1,), (y, xp.int32(0)))
    except RuntimeError as error:
        print(error)
    first.value = 1

def press() -> None:
    while seen.value == 0:
        pass
    os.kill(os.getpid(), signal.SIGUSR1)

signal.signal(signal.SIGUSR1, handle)
threading.Thread(target=press, daemon=True).start()  # so that an error is not hidden
kernel((1,), (1,), (x, xp.int32(1)))
print(x[0].item())
"""
    lines = output_of(code).splitlines()
    assert "while this thread runs another kernel of the same module" in lines[0]
    assert lines[1:] == ["5"]
