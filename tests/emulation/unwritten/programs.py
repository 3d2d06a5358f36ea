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


MEETING = r"""
#include <cooperative_groups.h>
extern "C" __global__ void reversed_meeting(const double *x, double *y, int missing) {
    __shared__ double tile[8];
    if (threadIdx.x != missing || blockIdx.x != 0) tile[threadIdx.x] = x[threadIdx.x];
    cooperative_groups::this_grid().sync();
    y[threadIdx.x] = tile[7 - threadIdx.x];
}
"""


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
def shared_memory_behind_a_barrier_of_the_grid(wrong: bool) -> None:
    y = xp.empty(N)
    meeting = xp.RawKernel(MEETING, "reversed_meeting", enable_cooperative_groups=True)
    meeting((3,), (N,), (xp.ones(N), y, np.int32(3 if wrong else -1)))
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


# Kernels with arrays of which a part is written

MORE = r"""
extern "C" __global__ void summed(const float *x, float *y, int n) {
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += x[threadIdx.x * n + i];
    y[threadIdx.x] = sum;
}
extern "C" __global__ void smoothed(const float *x, float *y, int n) {
    int i = threadIdx.x;
    y[i] = (x[i] + x[i + 1] + x[i + 2]) / 3;
}
extern "C" __global__ void added(const float *x, float *y) { y[threadIdx.x] += x[threadIdx.x]; }
extern "C" __global__ void gathered(const float *x, const int *places, float *y) {
    y[threadIdx.x] = x[places[threadIdx.x]];
}
extern "C" __global__ void widened(const unsigned short *halves, unsigned *y) {
    y[threadIdx.x] = ((const unsigned *)halves)[threadIdx.x];
}
extern "C" __global__ void counted_bins(const int *x, int *bins) { atomicAdd(&bins[x[threadIdx.x]], 1); }
extern "C" __global__ void largest(const int *x, int *most) { atomicMax(most, x[threadIdx.x]); }
extern "C" __global__ void locked(int *lock, int *count) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    *count += 1;
    atomicExch(lock, 0);
}
extern "C" __global__ void vectors(const float4 *x, float4 *y) { y[threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void by_pointers(float **rows, float *y) { y[threadIdx.x] = rows[threadIdx.x][0]; }
extern "C" __global__ void whole_rows(const float *x, float *y, int pitch, int width) {
    for (int i = 0; i < width; ++i) y[threadIdx.x * pitch + i] = x[threadIdx.x * pitch + i];
}
extern "C" __global__ void tile_of_two(const float *x, float *y, int n) {
    __shared__ float tile[2][8];
    tile[0][threadIdx.x] = x[threadIdx.x];
    if (threadIdx.x < n) tile[1][threadIdx.x] = 1;
    __syncthreads();
    y[threadIdx.x] = tile[0][threadIdx.x] + tile[1][7 - threadIdx.x];
}
extern "C" __global__ void words(const char *text, int *lengths) {
    int length = 0;
    while (text[8 * threadIdx.x + length] != 0) ++length;
    lengths[threadIdx.x] = length;
}
"""

STRUCTURES = r"""
struct Cell { float value; char kind; };
extern "C" __global__ void set_values(Cell *cells) { cells[threadIdx.x].value = threadIdx.x; }
extern "C" __global__ void set_kinds(Cell *cells) { cells[threadIdx.x].kind = 1; }
extern "C" __global__ void moved(const Cell *x, Cell *y) { y[threadIdx.x] = x[7 - threadIdx.x]; }
extern "C" __global__ void values(const Cell *cells, float *y) { y[threadIdx.x] = cells[threadIdx.x].value; }
"""


def more(name: str, args: tuple[Any, ...], threads: int = N) -> None:
    xp.RawKernel(STRUCTURES if name in STRUCTURES else MORE, name)((1,), (threads,), args)


def floats(count: int, written: int) -> Any:
    """Return an array of which the first elements are written."""
    x = xp.empty(count, "f4")  # here
    x[:written] = 1
    return x


@program
def rows_of_a_kernel(wrong: bool) -> None:
    y = xp.empty(4, "f4")
    more("summed", (floats(12, 12 - wrong), y, np.int32(3)), 4)
    y.get()


@program
def a_halo_on_both_sides(wrong: bool) -> None:
    x, y = xp.empty(N + 2, "f4"), xp.empty(N, "f4")  # here
    x[1:-1] = 2
    x[0] = 0
    if not wrong:
        x[-1] = 0
    more("smoothed", (x, y, np.int32(N)))
    y.get()


@program
def a_stale_halo_after_an_exchange(wrong: bool) -> None:
    parts = [xp.empty(N + 2, "f4") for _ in range(2)]  # here
    for part in parts:
        part[1:-1] = 1
        part[0] = part[-1] = 0
    inner = xp.empty(N + 2, "f4")  # here
    inner[1:-1] = parts[0][1:-1]
    inner[0] = parts[1][-2]
    if not wrong:
        inner[-1] = parts[1][1]
    more("smoothed", (inner, xp.empty(N, "f4"), np.int32(N)))


@program
def added_to_nothing(wrong: bool) -> None:
    y = floats(N, N - wrong)
    more("added", (xp.ones(N, "f4"), y))
    y.get()


@program
def added_twice(wrong: bool) -> None:
    y = xp.empty(N, "f4")  # here
    if not wrong:
        y.fill(0)
    for _ in range(2):
        more("added", (xp.ones(N, "f4"), y))
    y.get()


@program
def gathered_elements(wrong: bool) -> None:
    places = xp.arange(N, dtype="i4") % (HALF + wrong)
    y = xp.empty(N, "f4")
    more("gathered", (floats(N, HALF), places, y))
    y.get()


@program
def places_without_contents(wrong: bool) -> None:
    places = xp.empty(N, "i4")  # here
    places[: N - wrong] = 0
    more("gathered", (xp.ones(N, "f4"), places, xp.empty(N, "f4")))


@program
def half_of_each_number(wrong: bool) -> None:
    halves = xp.empty(2 * N, "u2")  # here
    halves[::2] = 1
    if not wrong:
        halves[1::2] = 0
    y = xp.empty(N, "u4")
    more("widened", (halves, y))
    assert y.get().tolist() == [1] * N


@program
def bins_of_a_histogram(wrong: bool) -> None:
    bins = xp.empty(4, "i4") if wrong else xp.zeros(4, "i4")  # here
    more("counted_bins", (xp.arange(N, dtype="i4") % 4, bins))
    bins.get()


@program
def a_maximum(wrong: bool) -> None:
    most = xp.empty((), "i4")  # here
    if not wrong:
        most[...] = 0
    more("largest", (xp.arange(N, dtype="i4"), most))
    assert int(most) == N - 1


@program
def a_lock(wrong: bool) -> None:
    lock, count = xp.zeros(1, "i4"), xp.empty(1, "i4")  # here
    if not wrong:
        count[:] = 0
    more("locked", (lock, count))
    assert int(count[0]) == N


@program
def vectors_of_four(wrong: bool) -> None:
    y = xp.empty(4 * N, "f4")
    more("vectors", (floats(4 * N, 4 * N - wrong), y))
    y.get()


@program
def rows_by_pointers(wrong: bool) -> None:
    rows = [xp.empty(1, "f4") for _ in range(N)]  # here
    for row in rows[: N - wrong]:
        row[0] = 3
    y = xp.empty(N, "f4")
    more("by_pointers", (xp.asarray([row.data.ptr for row in rows], dtype="u8"), y))
    y.get()


@program
def padding_of_rows_in_a_kernel(wrong: bool) -> None:
    x = xp.empty((4, 8), "f4")  # here
    x[:, :6] = 1
    y = xp.empty((4, 8), "f4")
    more("whole_rows", (x, y, np.int32(8), np.int32(6 + 2 * wrong)), 4)
    y[:, :6].get()


@program
def text_without_an_end(wrong: bool) -> None:
    text = xp.empty((4, 8), "i1")  # here
    text[:, :5] = 65
    text[: 4 - wrong, 5] = 0
    more("words", (text, xp.empty(4, "i4")), 4)


@program
def padding_of_cells(wrong: bool) -> None:
    cells, turned, y = xp.empty(2 * N, "f4"), xp.empty(2 * N, "f4"), xp.empty(N, "f4")  # here
    more("set_values", (cells,), N - wrong)
    more("set_kinds", (cells,), N - wrong)
    more("moved", (cells, turned))
    more("values", (turned, y))
    assert y.get().tolist() == [*range(N - 1, -1, -1)]


@program
def a_field_that_nobody_sets(wrong: bool) -> None:
    cells, y = xp.empty(2 * N, "f4"), xp.empty(N, "f4")  # here
    more("set_kinds" if wrong else "set_values", (cells,))
    more("values", (cells, y))


@program
def fields_of_records(wrong: bool) -> None:
    records = xp.empty(N, np.dtype([("key", "i4"), ("value", "f4")]))  # here
    records["key"] = 1
    if not wrong:
        records["value"] = 2
    (records["value"] * 2).get()


# Streams, graphs and memory that is given again


@program
def kernels_on_two_streams(wrong: bool) -> None:
    side, y = tcuda.Stream(), xp.empty(N, "f4")  # here
    side.wait_stream(tcuda.current_stream())
    with tcuda.stream(side):
        more("vectors", (xp.ones(N, "f4"), y), 2 - wrong)
    tcuda.current_stream().wait_stream(side)
    more("added", (y, xp.zeros(N, "f4")))


@program
def kernel_of_a_graph_that_fills(wrong: bool) -> None:
    x, y = xp.ones(N, "f4"), xp.empty(N, "f4")  # here
    captured = tcuda.CUDAGraph()
    with tcuda.graph(captured):
        more("vectors", (x, y), 2)
    if not wrong:
        captured.replay()
    more("added", (y, xp.zeros(N, "f4")))


@program
def graph_with_two_kernels(wrong: bool) -> None:
    x, y, z = xp.ones(N, "f4"), xp.empty(N, "f4"), xp.zeros(N, "f4")  # here
    captured = tcuda.CUDAGraph()
    with tcuda.graph(captured):
        more("vectors", (x, y), 2 - wrong)
        more("added", (y, z))
    captured.replay()
    z.get()


@program
def scratch_that_is_given_again(wrong: bool) -> None:
    y = xp.zeros(N, "f4")
    for step in range(3):
        scratch = xp.empty(N, "f4")  # here
        if step < 2 or not wrong:
            scratch[:] = step
        more("added", (scratch, y))
        del scratch


@program
def memory_of_another_device(wrong: bool) -> None:
    with tcuda.device(1):
        x = floats(N, N - wrong)
    y = xp.empty(N, "f4")
    y[...] = xp.asarray(x)
    y.get()


# Functions


@program
def running_sum(wrong: bool) -> None:
    sums = xp.cumsum(half())
    (sums[: HALF + wrong]).get()


@program
def running_product_in_place(wrong: bool) -> None:
    x = half()
    xp.cumprod(x, out=x)
    used(x, wrong)


@program
def masked_assignment(wrong: bool) -> None:
    x = xp.empty(N)  # here
    mask = xp.arange(N) < HALF
    x[mask] = 1
    if not wrong:
        x[~mask] = 2
    x.sum().get()


@program
def assignment_where_a_condition_holds(wrong: bool) -> None:
    x, condition = xp.empty(N), xp.arange(N) < (HALF if wrong else N)  # here
    xp.copyto(x, xp.ones(N), where=condition)
    x.get()


@program
def output_of_a_part(wrong: bool) -> None:
    out = xp.empty(N)  # here
    xp.multiply(xp.ones(HALF), 2, out=out[:HALF])
    if not wrong:
        xp.multiply(xp.ones(HALF), 2, out=out[HALF:])
    out.get()


@program
def in_place_on_a_slice(wrong: bool) -> None:
    x = half()
    x[: HALF + wrong] *= 3
    x[: HALF + wrong].get()


@program
def columns_that_are_filled_in_turn(wrong: bool) -> None:
    x = xp.empty((4, N))  # here
    for column in range(N - wrong):
        x[:, column] = column
    x.mean(axis=1).get()


@program
def concatenated_and_reshaped(wrong: bool) -> None:
    x = xp.concatenate([half().reshape(2, 4), xp.ones((2, 4))])
    (x.sum(axis=1)[1:] if wrong else x[[0, 2, 3]].sum(axis=1)).get()


@program
def padded_array(wrong: bool) -> None:
    x = xp.empty((N + 2, N + 2))  # here
    x[1:-1, 1:-1] = 1
    (x if wrong else x[1:-1, 1:-1]).sum().get()


@program
def a_choice_of_two_arrays(wrong: bool) -> None:
    condition = xp.arange(N) < HALF + wrong
    xp.where(condition, half(), xp.zeros(N)).get()


@program
def rows_of_a_two_dimensional_copy(wrong: bool) -> None:
    x, y = xp.empty((4, 8)), xp.zeros((4, 8))  # here
    x[:, ::2] = 1
    y[:, 1:7] = x[:, 1:7] if wrong else 0
    y[:, ::2] = x[:, ::2]
    y.get()


@program
def a_scalar_that_decides(wrong: bool) -> None:
    limit = xp.empty(())  # here
    if not wrong:
        limit[...] = 3
    while xp.zeros(()) > limit:
        break


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
