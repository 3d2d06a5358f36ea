"""Reads of kernels of memory that nothing has written."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda.emulation.rtc.checks import chosen
from tcuda.sanitizer import UnwrittenMemoryError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda.emulation.runtime import EmulatedRuntime

pytestmark = pytest.mark.emulated

CODE = r"""
extern "C" __global__ void add(float *x, const float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += y[i];
}
extern "C" __global__ void fill(float *x, int begin, int end) {
    for (int i = begin + threadIdx.x; i < end; i += blockDim.x) x[i] = 1;
}
extern "C" __global__ void through(float *out, float **table) { out[threadIdx.x] = table[0][threadIdx.x]; }
extern "C" __global__ void parts(const float *x, float *y) {
    __shared__ float first[16];
    __shared__ float second[16];
    first[threadIdx.x] = x[threadIdx.x];
    if (threadIdx.x < 15) second[threadIdx.x] = 2;
    __syncthreads();
    y[threadIdx.x] = first[threadIdx.x] + second[threadIdx.x];
}
__device__ float total[4];
extern "C" __global__ void global_variable(float *x) { x[0] = total[0] += 1; }
extern "C" __global__ void half(const float *x, float *y) {
    if (threadIdx.x == 0) y[0] = x[0];
    if (threadIdx.x == 1) __trap();
}
"""


@pytest.fixture
def watched(runtime: EmulatedRuntime, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", "memory,init")
    runtime.contents.watch(True)
    yield
    runtime.contents.watch(False)


def launch(name: str, threads: int, *args: Any) -> None:
    tcuda.xp.RawKernel(CODE, name)((-(-threads // 128),), (min(threads, 128),), args)
    tcuda.synchronize()


def test_the_error_names_the_argument_the_thread_and_the_number(xp: Any, watched: None) -> None:
    x, y = xp.ones(300, "f4"), xp.empty(300, "f4")
    y[:260] = 1
    with pytest.raises(UnwrittenMemoryError) as caught:
        launch("add", 300, x, y, xp.int32(300))
    first, second, third, fourth, fifth, _ = caught.value.details.splitlines()
    assert first == "Read of unwritten memory in the kernel `add`: nothing has written what the kernel reads."
    assert second.startswith(f"  Memory: element 260 of `y` (float32, shape (300,)), allocated at {__file__}:")
    assert third == "    kernel.cu:4: thread (4, 0, 0) of block (2, 0, 0) reads"
    assert fourth == "        if (i < n) x[i] += y[i];"
    assert fifth.startswith(f"  Launched at {__file__}:")
    assert caught.value.error_code == 719
    (read,) = caught.value.reads
    assert (read.kernel, read.memory.index, read.current.line.line) == ("add", (260,), 4)
    assert pickle.loads(pickle.dumps(caught.value)).reads == (read,)


def test_many_pages_are_written_and_then_read(xp: Any, runtime: EmulatedRuntime, watched: None) -> None:
    x = xp.empty(30_000, "f4")
    launch("fill", 128, x, xp.int32(0), xp.int32(12_345))
    assert runtime.contents.unwritten is not None
    assert runtime.contents.unwritten.open == 1
    launch("fill", 128, x, xp.int32(12_345), xp.int32(30_000))
    assert runtime.contents.unwritten.open == 0
    launch("add", 30_000, x, xp.ones(30_000, "f4"), xp.int32(30_000))
    assert x.get().sum() == 60_000


@pytest.mark.parametrize("missing", [0, 4095, 4096, 8191])
def test_one_missing_element_is_found_at_the_bounds_of_pages(xp: Any, watched: None, missing: int) -> None:
    x = xp.empty(8192, "f4")
    launch("fill", 128, x, xp.int32(0), xp.int32(missing))
    launch("fill", 128, x, xp.int32(missing + 1), xp.int32(8192))
    with pytest.raises(UnwrittenMemoryError, match=rf"element {missing} of `x`"):
        launch("add", 8192, x, xp.ones(8192, "f4"), xp.int32(8192))


def test_memory_that_only_memory_names_is_found(xp: Any, watched: None) -> None:
    hidden, out = xp.empty(8, "f4"), xp.empty(8, "f4")
    hidden[:7] = 1
    table = xp.asarray([hidden.data.ptr], dtype="u8")
    with pytest.raises(UnwrittenMemoryError, match=r"thread \(7, 0, 0\) of block \(0, 0, 0\) reads"):
        launch("through", 8, out, table)
    hidden[7:] = 1
    launch("through", 8, out, table)
    assert out.get().sum() == 8


def test_each_shared_variable_has_its_name(xp: Any, watched: None) -> None:
    y = xp.empty(16, "f4")
    launch("parts", 15, xp.ones(16, "f4"), y)
    with pytest.raises(UnwrittenMemoryError, match="element 15 of `second` in shared memory"):
        launch("parts", 16, xp.ones(16, "f4"), y)


def test_shared_memory_can_be_left_out(xp: Any, watched: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", "memory,init:shared=off")
    launch("parts", 16, xp.ones(16, "f4"), xp.empty(16, "f4"))
    with pytest.raises(UnwrittenMemoryError):
        launch("parts", 16, xp.empty(16, "f4"), xp.empty(16, "f4"))


def test_global_variables_have_contents(xp: Any, watched: None) -> None:
    x = xp.empty(1, "f4")
    launch("global_variable", 1, x)
    before = float(x[0])
    launch("global_variable", 1, x)
    assert float(x[0]) == before + 1


def test_what_a_failed_launch_has_written_is_written(xp: Any, watched: None) -> None:
    y = xp.empty(1, "f4")
    with pytest.raises(tcuda.AcceleratorError) as caught:
        launch("half", 2, xp.ones(1, "f4"), y)
    assert not isinstance(caught.value, UnwrittenMemoryError)
    assert y.get() == [1]


def test_a_race_detector_may_watch_too(xp: Any, watched: None) -> None:
    side = tcuda.Stream()
    with tcuda.sanitizer.check(mode="collect") as report:
        x = xp.empty(128, "f4")
        x[:] = 1
        with tcuda.stream(side):
            launch("add", 128, x, xp.ones(128, "f4"), xp.int32(128))  # the side stream does not wait
    assert len(report.races) == 1
    assert x.get().sum() == 256


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("memory", (True, False, False)),
        ("init", (True, True, True)),
        ("memory, init", (True, True, True)),
        ("init:shared=on", (True, True, True)),
        ("memory,init:shared=off", (True, True, False)),
        ("1", (True, False, False)),
        ("0", (False, False, False)),
    ],
)
def test_the_variable_chooses_the_check(value: str, found: tuple[bool, bool, bool]) -> None:
    checks = chosen({"TCUDA_EMULATED_CHECKS": value})
    assert (checks.memory, checks.init, checks.shared) == found
    with pytest.raises(ValueError, match=r"init:shared=off is init without shared memory"):
        chosen({"TCUDA_EMULATED_CHECKS": f"{value},init:shared"})
