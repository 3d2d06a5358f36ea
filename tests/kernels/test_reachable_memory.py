"""Accesses to arrays to which no pointer of a launch leads, and pointers that are found wherever a kernel has them."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.devices import synchronized

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler"),
]
FULL = 128
"""The items of an array of 32-bit integers that fills its block."""


def kernel(xp: Any, body: str, parameters: str, before: str = "") -> Any:
    """Return a kernel with the name ``f``."""
    return xp.RawKernel(f'{before}\nextern "C" __global__ void f({parameters}) {{ {body} }}', "f")


def neighbours(xp: Any) -> tuple[Any, Any]:
    """Return two arrays that fill their blocks, side by side."""
    arrays = [xp.zeros(FULL, dtype=xp.int32) for _ in range(16)]
    for left in arrays:
        for right in arrays:
            if left.data.ptr + left.nbytes == right.data.ptr:
                return left, right
    raise AssertionError("no two arrays lie side by side")


@pytest.mark.parametrize(
    ("of", "index", "text"),
    [
        (0, FULL, "The access is right after the block of 512 bytes of the argument x at {0:#x}."),
        (0, FULL + 5, "The access is 20 bytes after the block of 512 bytes of the argument x at {0:#x}."),
        (1, -1, "The access is 4 bytes before the block of 512 bytes of the argument x at {1:#x}."),
    ],
)
def test_a_neighbour_that_the_kernel_does_not_know_is_refused(of: int, index: int, text: str, xp: Any) -> None:
    both = neighbours(xp)
    store = kernel(xp, "x[i] = 5;", "int* x, int i")
    with pytest.raises(tcuda.AcceleratorError) as caught, synchronized():
        store((1,), (1,), (both[of], index))
    assert caught.value.error_code == 700
    addresses = [array.data.ptr for array in both]
    lines = str(caught.value).splitlines()
    assert lines[4] == text.format(*addresses)
    assert lines[5].startswith(
        f"The memory belongs to another array, in the block of 512 bytes at {addresses[1 - of]:#x}: no argument"
    )
    assert [int(array.sum()) for array in both] == [0, 0]


def test_an_array_far_away_is_refused(xp: Any) -> None:
    x, y = (xp.zeros(1 << 18, dtype=xp.int32) for _ in range(2))
    x, y = sorted((x, y), key=lambda array: array.data.ptr)
    store = kernel(xp, "x[i] = 5;", "int* x, long long i")
    with (
        pytest.raises(tcuda.AcceleratorError, match="The memory belongs to another array, in the block"),
        synchronized(),
    ):
        store((1,), (1,), (x, (y.data.ptr - x.data.ptr) // 4 + 100_000))
    assert int(y.sum()) == 0


def test_an_argument_reaches_its_whole_block(xp: Any) -> None:
    x, y = neighbours(xp)
    store = kernel(xp, "x[i] = 5; y[j] = 6;", "int* x, int i, int* y, int j")
    store((1,), (1,), (x[64:], -64, y[FULL - 1 :], 1 - FULL))
    store((1,), (1,), (x.data.ptr + 256, 63, y.data.ptr, 1))
    assert x.get()[[0, -1]].tolist() == [5, 5]
    assert y.get()[:2].tolist() == [6, 6]


def test_a_pointer_in_a_structure_of_the_arguments_leads_to_its_array(xp: Any) -> None:
    x, y = neighbours(xp)
    pair = kernel(xp, "p.second[1] = p.n; *p.first = 1;", "Pair p", "struct Pair { int n; int *first, *second; };")
    value = np.zeros((), np.dtype([("n", "i4"), ("first", "u8"), ("second", "u8")], align=True))
    value["n"], value["first"], value["second"] = 7, x.data.ptr, y.data.ptr
    pair((1,), (1,), (value,))
    assert x.get()[0] == 1
    assert y.get()[1] == 7


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_pointers_in_memory_lead_to_their_arrays(depth: int, xp: Any) -> None:
    x, y = neighbours(xp)
    place, keep = y, []
    for _ in range(depth):
        place = xp.asarray([0, x.nbytes, place.data.ptr], dtype=xp.uint64)
        keep.append(place)
    store = kernel(xp, f"int *p = (int *)a{'[2]' * depth}; p[i] = 5;", f"int {'*' * (depth + 1)}a, int i")
    store((1,), (1,), (place, 3))
    assert y.get()[3] == 5
    with pytest.raises(tcuda.AcceleratorError, match="The memory belongs to another array"), synchronized():
        store((1,), (1,), (place, -1))


def test_a_table_behind_large_arrays_is_found(xp: Any) -> None:
    large = xp.full(3 << 20, 0x7F00_1234, dtype=xp.int32)
    targets = [xp.zeros(FULL, dtype=xp.int32) for _ in range(100)]
    table = xp.asarray([target.data.ptr for target in targets], dtype=xp.uint64)
    kernel(xp, "table[threadIdx.x][1] = large[threadIdx.x];", "int* large, int** table")((1,), (100,), (large, table))
    assert {int(target[1]) for target in targets} == {0x7F00_1234}


def test_arrays_that_are_shorter_than_a_pointer_are_read_too(xp: Any) -> None:
    x, y = neighbours(xp)
    place, last = xp.full(1, 2, dtype=xp.int32), xp.zeros(1, dtype=xp.int8)
    table = xp.asarray([x.data.ptr], dtype=xp.uint64)
    store = kernel(xp, "table[0][*place + *last] = 5;", "int* place, char* last, int** table")
    store((1,), (1,), (place, last, table))
    assert x.get()[2] == 5
    place.fill(FULL)
    with pytest.raises(tcuda.AcceleratorError, match="The memory belongs to another array"), synchronized():
        store((1,), (1,), (place, last, table))
    assert int(y.sum()) == 0


def test_the_two_halves_of_a_pointer_lead_to_its_array(xp: Any) -> None:
    y = neighbours(xp)[1]
    words = xp.asarray([1, y.data.ptr & 0xFFFF_FFFF, y.data.ptr >> 32, 0], dtype=xp.uint32)
    body = "int *p = (int *)((unsigned long long)x[2] << 32 | x[1]); p[3] = 5;"
    kernel(xp, body, "unsigned* x")((1,), (1,), (words,))
    assert y.get()[3] == 5


def test_a_pointer_in_a_global_variable_leads_to_its_array(xp: Any) -> None:
    x, y = neighbours(xp)
    code = """
    namespace state { __device__ int *kept[3]; }
    template <class T> __device__ T *&other() { static __device__ T *p; return p; }
    extern "C" __global__ void keep(int *a, int *b) { state::kept[1] = a; other<int>() = b; }
    extern "C" __global__ void store() { state::kept[1][2] = 5; other<int>()[3] = 6; }
    """
    module = xp.RawModule(code=code)
    module.get_function("keep")((1,), (1,), (x, y))
    module.get_function("store")((1,), (1,), ())
    assert (x.get()[2], y.get()[3]) == (5, 6)


def test_an_address_in_the_source_leads_to_its_array(xp: Any) -> None:
    x, y = neighbours(xp)
    kernel(xp, f"((int *){y.data.ptr}ull)[3] = x[0] + 5;", "int* x")((1,), (1,), (x,))
    assert y.get()[3] == 5


def test_a_pointer_in_page_locked_memory_leads_to_its_array(xp: Any, runtime: Any) -> None:
    y = neighbours(xp)[1]
    host = np.asarray([y.data.ptr, 0], dtype=np.uint64)
    runtime.hostRegister(host.ctypes.data, host.nbytes, 0)
    try:
        kernel(xp, "(*p)[3] = 5;", "int** p")((1,), (1,), (host.ctypes.data,))
        assert y.get()[3] == 5
    finally:
        runtime.hostUnregister(host.ctypes.data)


def test_memory_of_cuda_malloc_is_reached_by_pointers_only(xp: Any, runtime: Any) -> None:
    first = runtime.malloc(512)
    try:
        x = xp.zeros(4, dtype=xp.int32)
        store = kernel(xp, "*(int *)((char *)x + distance) = 5;", "int* x, long long distance, long long hint")
        store((1,), (1,), (x, first - x.data.ptr, first))
        with pytest.raises(tcuda.AcceleratorError, match="The memory belongs to another array"), synchronized():
            store((1,), (1,), (x, first - x.data.ptr, 0))
    finally:
        runtime.free(first)


def test_arrays_of_a_pool_of_the_program_are_told_from_each_other(xp: Any) -> None:
    pool = tcuda.MemPool()
    with tcuda.use_mem_pool(pool):
        x, y = neighbours(xp)
    store = kernel(xp, "x[i] = 5;", "int* x, int i")
    store((1,), (1,), (x, 1))
    with pytest.raises(tcuda.AcceleratorError, match="The memory belongs to another array"), synchronized():
        store((1,), (1,), (x, FULL))
    assert int(y.sum()) == 0


def test_a_graph_reaches_its_arguments_and_their_pointers(xp: Any) -> None:
    x, y = neighbours(xp)
    table = xp.asarray([y.data.ptr], dtype=xp.uint64)
    store = kernel(xp, "x[0] += 1; (*t)[2] += 1; x[*place] += 1;", "int* x, int** t, int* place")
    place = xp.ones(1, dtype=xp.int32)
    store((1,), (1,), (x, table, place))
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        store((1,), (1,), (x, table, place))
    graph.replay()
    assert (x.get()[:2].tolist(), y.get()[2]) == ([2, 2], 2)
    alone = kernel(xp, "x[*place] += 1;", "int* x, int* place")
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        alone((1,), (1,), (x, place))
    place.fill(FULL)
    with pytest.raises(tcuda.AcceleratorError, match="The memory belongs to another array"), synchronized():
        graph.replay()


def test_the_race_detector_sees_only_memory_that_a_launch_reaches(xp: Any) -> None:
    x, y = neighbours(xp)
    table = xp.asarray([y.data.ptr], dtype=xp.uint64)
    store = kernel(xp, "(*t)[i] = 5;", "int** t, int i")
    with tcuda.sanitizer.check() as report:
        store((1,), (1,), (table, 3))
        with pytest.raises(tcuda.AcceleratorError, match="The memory belongs to another array"), synchronized():
            store((1,), (1,), (table, -1))
        tcuda.synchronize()
    assert not report.races
    assert (int(x.sum()), y.get()[3]) == (0, 5)


PROGRAM = """
import tcuda
from tcuda import xp

x, y = xp.zeros(128, dtype=xp.int32), xp.zeros(128, dtype=xp.int32)
code = 'extern "C" __global__ void store(int* x, int i, int* y) { x[i] = 5; if (i < 0) y[0] = 1; }'
store = xp.RawKernel(code, "store")
z = xp.zeros(128, dtype=xp.int32)
for other in z, y:
    try:
        store((1,), (1,), (x, (y.data.ptr - x.data.ptr) // 4, other))
        tcuda.synchronize()
        print("done", y.get()[0])
    except tcuda.AcceleratorError as error:
        print(error.error_code)
"""


@pytest.mark.parametrize(
    ("checks", "printed"),
    [
        ("1", "700 done 5"),
        ("memory", "700 done 5"),
        ("memory:neighbours=off", "done 5 done 5"),
        ("memory,memory:neighbours=off,types", "done 5 done 5"),
        ("0", "done 5 done 5"),
    ],
)
def test_the_variable_chooses_the_check(checks: str, printed: str, output_of: OutputOf) -> None:
    assert output_of(PROGRAM, TCUDA_EMULATED_CHECKS=checks).split() == printed.split()


def test_the_history_of_memory_tells_the_line_that_has_allocated_an_array(output_of: OutputOf) -> None:
    program = """
import tcuda
from tcuda import xp

tcuda.memory._record_memory_history()
x = xp.zeros(128, dtype=xp.int32)
y = xp.zeros(128, dtype=xp.int32)
try:
    xp.RawKernel('extern "C" __global__ void store(int* x, int i) { x[i] = 5; }', "store")((1,), (1,), (x, 128))
    tcuda.synchronize()
except tcuda.AcceleratorError as error:
    print(*error.details.splitlines()[2:], sep="\\n")
"""
    first, second = output_of(program).splitlines()[:2]
    assert re.fullmatch(
        r"The access is right after the block of 512 bytes of the argument x at 0x\w+ \(.*:6\)\.", first
    )
    assert re.search(r"in the block of 512 bytes at 0x\w+ \(.*:7\): no argument", second)
