"""Right programs, and the same programs with memory that nothing has written, for two emulated devices.

Each program takes whether it is wrong. The file prints as JSON what each program reports, right and wrong. A report
names the line with the mark "here".
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

import tcuda
from tcuda.emulation import xp

if TYPE_CHECKING:
    from collections.abc import Callable

N = 8
HALF = N // 2

PROGRAMS: dict[str, Callable[[bool], None]] = {}


def program(function: Callable[[bool], None]) -> Callable[[bool], None]:
    PROGRAMS[function.__name__] = function
    return function


def half() -> Any:
    """Return an array whose second half nothing has written."""
    x = xp.empty(N)  # here
    x[:HALF] = 1
    return x


def used(x: Any, wrong: bool) -> None:
    """Read all of ``x``, or else the first half."""
    (x if wrong else x[:HALF]).get()


@program
def copy_to_the_host(wrong: bool) -> None:
    used(half(), wrong)


@program
def scalar(wrong: bool) -> None:
    float(half()[HALF if wrong else 0])


@program
def truth(wrong: bool) -> None:
    bool(half()[N - 1 if wrong else 0] > 0)


@program
def function_of_each_element(wrong: bool) -> None:
    used(xp.sqrt(half() + 1) * half(), wrong)


@program
def fused_functions(wrong: bool) -> None:
    used(xp.fuse(kernel_name="fused")(lambda x: xp.sqrt(x * x + 1))(half()), wrong)


@program
def numbers_with_weights(wrong: bool) -> None:
    counts = xp.bincount(xp.arange(N), half())
    (counts if wrong else xp.bincount(xp.arange(HALF), half()[:HALF])).get()


@program
def in_place(wrong: bool) -> None:
    x = half()
    x += 1
    used(x, wrong)


@program
def output_argument(wrong: bool) -> None:
    out = xp.empty_like(half())  # here
    if not wrong:
        xp.add(xp.ones(N), 1, out=out)
    out.get()


@program
def comparison_and_where(wrong: bool) -> None:
    x = half()
    used(xp.where(x > 0, x, 0), wrong)


@program
def sum_along_an_axis(wrong: bool) -> None:
    x = xp.empty((2, 3))  # here
    x[0] = 1
    x.sum(axis=1)[int(wrong)].get()


@program
def sum_of_all(wrong: bool) -> None:
    x = half()
    float((x if wrong else x[:HALF]).sum())


@program
def method_of_a_ufunc(wrong: bool) -> None:
    used(xp.add.accumulate(half()), wrong)


@program
def matrix_product(wrong: bool) -> None:
    x = xp.empty((N, 2))  # here
    x[:HALF] = 1
    used(x @ xp.ones((2, 2)), wrong)


@program
def sort(wrong: bool) -> None:
    x = half()
    xp.sort(x if wrong else x[:HALF]).get()


@program
def fourier_transform(wrong: bool) -> None:
    x = half()
    xp.fft.fft(x if wrong else x[:HALF]).get()


@program
def joined(wrong: bool) -> None:
    x = xp.concatenate([xp.ones(HALF), half()])
    (x if wrong else x[:N]).get()


@program
def conversion(wrong: bool) -> None:
    used(half().astype("f4"), wrong)


@program
def reversed_copy(wrong: bool) -> None:
    x = xp.ascontiguousarray(half()[::-1])
    (x if wrong else x[HALF:]).get()


@program
def elements_at_an_index(wrong: bool) -> None:
    half()[xp.asarray([0, N - 1 if wrong else 1])].get()


@program
def taken_elements(wrong: bool) -> None:
    xp.take(half(), xp.asarray([0, N - 1 if wrong else 1])).get()


@program
def index_without_contents(wrong: bool) -> None:
    index = xp.empty(2, int)  # here
    index[: 1 if wrong else 2] = 0
    xp.ones(4)[index].get()


@program
def mask_without_contents(wrong: bool) -> None:
    mask = xp.empty(4, bool)  # here
    mask[: 3 if wrong else 4] = True
    xp.ones(4)[mask].get()


@program
def written_at_an_index(wrong: bool) -> None:
    x = xp.empty(4)  # here
    x[xp.asarray([0, 1, 2, 0 if wrong else 3])] = 1
    x.get()


@program
def written_by_a_mask(wrong: bool) -> None:
    x = xp.empty(4)  # here
    x[xp.asarray([True, True, True, not wrong])] = 1
    x.get()


@program
def assigned_at_an_index(wrong: bool) -> None:
    x = xp.zeros(4)
    x[xp.asarray([1, 2])] = half()[HALF - 2 : HALF] if not wrong else half()[HALF - 1 : HALF + 1]
    x.get()


@program
def places_of_numbers(wrong: bool) -> None:
    x = half()
    xp.nonzero(x if wrong else x[:HALF])


@program
def every_second_element(wrong: bool) -> None:
    x = xp.empty(N)  # here
    x[::2] = 1
    (x if wrong else x[::2]).get()


@program
def rows_with_holes(wrong: bool) -> None:
    pitched = xp.empty((4, 8), "f4")  # here
    pitched[:, :6] = 1
    (pitched if wrong else pitched[:, :6]).get()


@program
def columns(wrong: bool) -> None:
    x = xp.empty((2, 3), order="F")  # here
    x[:, : 2 if wrong else 3] = 1
    x.get()


@program
def structures(wrong: bool) -> None:
    kind = np.dtype([("a", "i1"), ("b", "f8")], align=True)  # with padding, which nobody writes
    x = xp.empty(3, kind)  # here
    x["a"] = 1
    if not wrong:
        x["b"] = 2
    xp.concatenate([x[:1], x.copy()]).get()


@program
def given_again(wrong: bool) -> None:
    x = xp.ones(N)
    address = x.data.ptr
    tcuda.synchronize()
    del x
    y = xp.empty(N)  # here
    assert y.data.ptr == address
    if not wrong:
        y[...] = 2
    y.get()


@program
def set_bytes(wrong: bool) -> None:
    x = xp.empty(N)  # here
    x.data.memset_async(0, x.nbytes // (2 if wrong else 1))
    x.get()


@program
def copy_of_memory(wrong: bool) -> None:
    x = xp.zeros(N)
    x.data.copy_from_device_async(half().data, 8 * (HALF + wrong))
    x.get()


@program
def copy_from_the_host(wrong: bool) -> None:
    x = xp.empty(N)  # here
    if wrong:
        x[:3].set(np.ones(3))
    else:
        x.set(np.ones(N))
    x.get()


@program
def random_numbers(wrong: bool) -> None:
    x = xp.empty(N)  # here
    x[: N - wrong] = xp.random.rand(N - wrong)
    x.get()


@program
def two_streams(wrong: bool) -> None:
    side = tcuda.Stream()
    x = xp.empty(N)  # here
    side.wait_stream(tcuda.current_stream())
    with tcuda.stream(side):
        x[: N - wrong] = 1
    tcuda.current_stream().wait_stream(side)
    x.get()


@program
def two_devices(wrong: bool) -> None:
    x = half()
    with tcuda.device(1):
        used(xp.asarray(x), wrong)


@program
def collective(wrong: bool) -> None:
    arrays = []
    for device in range(2):
        with tcuda.device(device):
            arrays.append(half())
    tcuda.nccl.all_reduce(arrays)
    used(arrays[0], wrong)


@program
def graph(wrong: bool) -> None:
    x = xp.empty(N)  # here
    captured = tcuda.CUDAGraph()
    with tcuda.graph(captured):
        y = x * 2
    if not wrong:
        x[...] = 1
    captured.replay()
    y.get()


@program
def memory_of_a_graph(wrong: bool) -> None:
    captured = tcuda.CUDAGraph()
    x = xp.ones(N)
    with tcuda.graph(captured):
        y = xp.empty(N)  # here
        y[: N - wrong] = x[: N - wrong]
    captured.replay()
    y.get()


@program
def passed_and_never_read(wrong: bool) -> None:
    out = xp.roll(xp.sqrt(half().copy()) * 2, 1)
    (out if wrong else out[1 : HALF + 1]).get()


KERNELS = r"""
extern "C" __global__ void twice(const double *x, double *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
extern "C" __global__ void reversed(const double *x, double *y, int missing) {
    __shared__ double tile[8];
    if (threadIdx.x != missing) tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = tile[7 - threadIdx.x];
}
extern "C" __global__ void reversed_dynamic(const double *x, double *y, int missing) {
    extern __shared__ double tile[];
    if (threadIdx.x != missing || blockIdx.x == 0) tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = tile[7 - threadIdx.x];
}
extern "C" __global__ void through_memory(double *y, int n) {
    if (threadIdx.x < n) y[threadIdx.x] = threadIdx.x;
    __syncthreads();
    y[7 - threadIdx.x] += 1;
}
extern "C" __global__ void counted(int *count, int *flag) {
    atomicExch(flag, 1);
    atomicAdd(count, 1);
}
struct Record { char kind; double value; short place; };
extern "C" __global__ void filled(Record *out) {
    out[threadIdx.x].kind = 1;
    out[threadIdx.x].value = 2;
    out[threadIdx.x].place = 3;
}
extern "C" __global__ void copied(const Record *x, Record *y) { y[threadIdx.x] = x[threadIdx.x]; }
"""


def kernel(name: str) -> Any:
    return xp.RawKernel(KERNELS, name)


@program
def kernel_of_each_element(wrong: bool) -> None:
    y = xp.empty(N)
    kernel("twice")((1,), (N,), (half(), y, np.int32(N if wrong else HALF)))
    y[:HALF].get()


@program
def output_of_a_kernel(wrong: bool) -> None:
    y = xp.empty(N)  # here
    kernel("twice")((1,), (N,), (xp.ones(N), y, np.int32(N - wrong)))
    y.get()


@program
def shared_memory(wrong: bool) -> None:
    y = xp.empty(N)
    kernel("reversed")((2,), (N,), (xp.ones(N), y, np.int32(3 if wrong else -1)))
    y.get()


@program
def dynamic_shared_memory_of_the_second_block(wrong: bool) -> None:
    y = xp.empty(N)
    kernel("reversed_dynamic")((2,), (N,), (xp.ones(N), y, np.int32(3 if wrong else -1)), shared_mem=8 * N)
    y.get()


@program
def written_by_the_same_launch(wrong: bool) -> None:
    y = xp.empty(N)  # here
    kernel("through_memory")((1,), (N,), (y, np.int32(N - wrong)))
    y.get()


@program
def atomic_functions(wrong: bool) -> None:
    count = xp.empty(1, "i4")  # here
    if not wrong:
        count[...] = 0
    flag = xp.empty(1, "i4")
    kernel("counted")((1,), (N,), (count, flag))
    assert (int(count[0]), int(flag[0])) == (N, 1)


@program
def structures_in_kernels(wrong: bool) -> None:
    kind = np.dtype([("kind", "i1"), ("value", "f8"), ("place", "i2")], align=True)
    x, y = xp.empty(4, kind), xp.empty(4, kind)  # here
    kernel("filled")((1,), (4 - wrong,), (x,))
    kernel("copied")((1,), (4,), (x, y))
    assert y.get()["place"].tolist() == [3] * 4


@program
def elementwise_kernel(wrong: bool) -> None:
    x = half()
    add = xp.ElementwiseKernel("T x, T y", "T z", "z = x + y", "sum_of_two")
    add(x if wrong else x[:HALF], 1.0).get()


@program
def reduction_kernel(wrong: bool) -> None:
    x = half()
    total = xp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
    total(x if wrong else x[:HALF]).get()


@program
def kernel_in_a_graph(wrong: bool) -> None:
    x, y, twice = xp.empty(N), xp.empty(N), kernel("twice")  # here
    captured = tcuda.CUDAGraph()
    with tcuda.graph(captured):
        twice((1,), (N,), (x, y, np.int32(N)))
    if not wrong:
        x[...] = 1
    captured.replay()
    y.get()


def outcome(function: Callable[[bool], None], wrong: bool) -> str:
    """Return what a program reports; nothing if the program is right."""
    try:
        function(wrong)
        tcuda.synchronize()
    except tcuda.sanitizer.UnwrittenMemoryError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    json.dump({name: [outcome(each, wrong) for wrong in (False, True)] for name, each in PROGRAMS.items()}, sys.stdout)
