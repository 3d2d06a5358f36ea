"""Kernels on the processor: grids, barriers, exchanges of warps, checks, and the life of a launch."""

from __future__ import annotations

import contextlib
import functools
import gc
import resource
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.cpp_compilers import array_type, needs_gcc
from support.descriptors import open_descriptors
from support.threads import in_thread, in_threads
from tcuda._core import EmulatedLaunch, EmulatedModule
from tcuda.emulation.rtc import compiler
from tcuda.emulation.rtc.build import build
from tcuda.emulation.rtc.errors import CompileException

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = r"""
#define RANK (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z))
#define BLOCK (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z))
#define THREADS (blockDim.x * blockDim.y * blockDim.z)

extern "C" {

__global__ void axpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
__global__ void order(int *next, int *out) { out[(*next)++] = BLOCK * THREADS + RANK; }
__global__ void reversed(int *out) {
    extern __shared__ int shared[];
    shared[RANK] = RANK;
    __syncthreads();
    out[BLOCK * THREADS + RANK] = shared[THREADS - 1 - RANK];
}
__global__ void votes(int *out) {
    int odd = RANK % 2, large = RANK >= 1000;
    out[4 * RANK] = __syncthreads_count(odd);
    out[4 * RANK + 1] = __syncthreads_and(RANK < 1024) + 2 * __syncthreads_and(odd);
    out[4 * RANK + 2] = __syncthreads_or(odd) + 2 * __syncthreads_or(large);
    out[4 * RANK + 3] = __syncthreads_count(1);
}
__global__ void barriers(int n) { for (int i = 0; i < n; ++i) __syncthreads(); }
__global__ void shift(int *out) { out[RANK] = __shfl_sync(0xffffffff, (int)RANK * 10, RANK + 1); }
__global__ void halves(int *out) {
    if (threadIdx.x % 2) out[RANK] = __ballot_sync(0xaaaaaaaa, threadIdx.x > 16);
    else out[RANK] = __ballot_sync(0x55555555, threadIdx.x > 16);
}
__global__ void some_return(int *out) {
    if (threadIdx.x % 4 == 3) return;
    out[RANK] = __ballot_sync(0xffffffff, 1);
}
__global__ void kept_values(int *out) {
    int value = 0;
    unsigned present;
    const unsigned long long *values = tcuda::exchange(0xffffffff, RANK + 100, &present);
    if (RANK == 31) for (int i = 0; i < 100; ++i) value += __shfl_sync(0x80000000, 0, 31);
    if (RANK != 31) value = (int)values[(RANK + 1) % 32];
    out[RANK] = value;
}
__global__ void many_exchanges(int n, int *out) {
    int sum = RANK;
    for (int i = 0; i < n; ++i) sum = __shfl_xor_sync(0xffffffff, sum, 1 << i % 5) + 1;
    out[RANK] = sum;
}
__global__ void active(unsigned *out) {
    if (threadIdx.x % 3 == 0) out[RANK] = __activemask();
    else if (threadIdx.x % 3 == 1) out[RANK] = ~__activemask();
    else return;
    if (threadIdx.x == 0) out[RANK] = __activemask();
}
__global__ void half_at_barrier() { if (threadIdx.x < 16) __syncthreads(); }
__global__ void two_places(int *out) {
    if (threadIdx.x < 8) __syncthreads();
    else if (threadIdx.x < 9) __syncwarp();
    else return;
    out[0] = 1;
}
__global__ void foreign_mask() { __syncwarp(0x1); }
__global__ void at(int *p, long long i) { p[i] = 5; }
__global__ void from(int *p, long long i, int *out) { *out = p[i]; }
__global__ void wide(double *p, int *out) { *out = *p != 0; }
#define WALK(name, type)                                                                                               \
    __global__ void name(const char *memory, const long long *places, int count, char *out) {                          \
        for (int i = 0; i < count; ++i) *(type *)out = *(const type *)(memory + places[i]);                            \
    }
WALK(walk_1, char)
WALK(walk_2, short)
WALK(walk_4, int)
WALK(walk_8, double)
WALK(walk_16, __int128)
__global__ void waits(int *next, int *out, int *ends) {
    out[(*next)++] = BLOCK * THREADS + RANK;
    if (RANK % 3 == 1) __activemask();
    ends[BLOCK * THREADS + RANK] += 1;
}
__global__ void fixed(int i, int *out) { __shared__ int s[8]; s[i] = 1; *out = s[0]; }
__global__ void quotient(int a, int b, int *out) { *out = a / b; }
__global__ void asserts(int n) { assert(threadIdx.x != n && "no"); }
__global__ void traps(int n) { if (threadIdx.x == n) __trap(); }
__global__ void locked(int *lock, int *count) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    int old = *count;
    __threadfence();
    *count = old + 1;
    atomicExch(lock, 0);
}
__global__ void held(int *lock) { while (atomicCAS(lock, 0, 1) != 0) {} }
#define READ(place) __atomic_load_n(place, __ATOMIC_RELAXED)
__global__ void plain_wait(int *flag) {
    if (threadIdx.x == 0) { while (READ(flag) == 0) {} flag[1] = 5; } else if (threadIdx.x == 20) flag[0] = 1;
}
__global__ void for_ever(int *flag) { flag[1] = 1; while (READ(flag) != 77) {} }
__global__ void barriers_for_ever() { for (;;) __syncthreads(); }
__global__ void blocks_for_ever(int *flag) { *flag = blockIdx.x; }
__global__ void slow(int n, int *sum, int *last) {
    for (int i = 0; i < n; ++i) atomicAdd(&sum[i % 2], 1);
    last[RANK] = sum[0] + sum[1];
}
__global__ void local(int *out) {
    char large[400000];
    for (int i = 0; i < 400000; i += 1000) large[i] = (char)(i / 1000 + out[1]);
    __syncthreads();
    for (int i = 0; i < 400000; i += 1000) out[0] += large[i] == (char)(i / 1000 + out[1]);
}

}

__device__ int variable[5];
"""

try:
    compiler.find()
except RuntimeError as error:
    pytestmark = pytest.mark.skip(reason=str(error))


@functools.cache
def library(recorded: bool = False) -> bytes:
    return build(SOURCE, recorded=recorded)[0]


@pytest.fixture(params=["plain", "recorded"])
def module(request: pytest.FixtureRequest) -> Iterator[EmulatedModule]:
    """A module, whose launches note all accesses in the second form."""
    Launch.recorded = request.param == "recorded"
    yield EmulatedModule(library(Launch.recorded))
    Launch.recorded = False


class Launch:
    """A launch of the kernel ``name``, whose arrays are memory that the kernel may use."""

    recorded = False

    def __init__(
        self,
        module: EmulatedModule,
        name: str,
        block: Any,
        *args: Any,
        grid: Any = (1,),
        shared: int = 0,
        ranges: list[tuple[int, int]] | None = None,
        **options: Any,
    ) -> None:
        function = module.function(name)
        assert function is not None
        packed = bytearray(function.argument_bytes)
        dtypes = {"p": "u", "i": "i", "u": "u", "f": "f"}
        for argument, (kind, size, offset) in zip(args, function.parameters, strict=True):
            value = argument.ctypes.data if isinstance(argument, np.ndarray) else argument
            packed[offset : offset + size] = np.array(value, f"{dtypes[kind]}{size}").tobytes()
        arrays = [array for array in args if isinstance(array, np.ndarray)]
        found = [(array.ctypes.data, array.ctypes.data + array.nbytes) for array in arrays]
        self._arrays = arrays
        self.launch = EmulatedLaunch(
            function,
            (*grid, 1, 1)[:3],
            (*block, 1, 1)[:3],
            bytes(packed),
            shared,
            found if ranges is None else ranges,
            recorded=self.recorded,
            **options,
        )

    def run(self) -> Any:
        return self.launch.run()


def ints(count: int) -> np.ndarray:
    return np.zeros(count, np.int32)


BLOCKS = [(1,), (31,), (32,), (33,), (1024,), (16, 16), (5, 7), (4, 4, 64), (3, 5, 7), (1, 1, 9)]


def test_a_plain_kernel_computes_every_element(module: EmulatedModule) -> None:
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    assert Launch(module, "axpy", (256,), 1000, 2.0, x, y, grid=(4,)).run() is None
    np.testing.assert_array_equal(y, 2 * np.arange(1000) + 1)


def test_threads_start_in_the_order_of_their_numbers_block_after_block(module: EmulatedModule) -> None:
    out = ints(2 * 3 * 2 * 24)
    assert Launch(module, "order", (2, 3, 4), ints(1), out, grid=(2, 3, 2)).run() is None
    np.testing.assert_array_equal(out, np.arange(out.size))


@pytest.mark.parametrize("block", BLOCKS)
def test_threads_that_wait_change_neither_the_order_nor_the_number_of_the_others(
    module: EmulatedModule, block: tuple[int, ...]
) -> None:
    threads = 2 * int(np.prod(block))
    out, ends = ints(threads), ints(threads)
    assert Launch(module, "waits", block, ints(1), out, ends, grid=(2,)).run() is None
    np.testing.assert_array_equal(out, np.arange(threads))
    np.testing.assert_array_equal(ends, np.ones(threads))


@pytest.mark.parametrize("block", BLOCKS)
def test_a_barrier_separates_writes_from_reads(module: EmulatedModule, block: tuple[int, ...]) -> None:
    threads = int(np.prod(block))
    out = ints(6 * threads)
    assert Launch(module, "reversed", block, out, grid=(3, 2), shared=4 * threads).run() is None
    np.testing.assert_array_equal(out.reshape(6, threads), np.tile(np.arange(threads)[::-1], (6, 1)))


@pytest.mark.parametrize("block", BLOCKS)
def test_barriers_count_the_votes_of_all_threads(module: EmulatedModule, block: tuple[int, ...]) -> None:
    threads = int(np.prod(block))
    out = ints(4 * threads)
    assert Launch(module, "votes", block, out).run() is None
    expected = [threads // 2, 1, (threads > 1) + 2 * (threads > 1000), threads]
    np.testing.assert_array_equal(out.reshape(threads, 4), np.tile(expected, (threads, 1)))


@pytest.mark.parametrize("threads", [1, 20, 32, 50, 256])
def test_lanes_exchange_values_within_their_warp(module: EmulatedModule, threads: int) -> None:
    out = ints(threads)
    assert Launch(module, "shift", (threads,), out).run() is None
    ranks = np.arange(threads)
    source = ranks // 32 * 32 + (ranks + 1) % 32
    np.testing.assert_array_equal(out, 10 * np.where(source < threads, source, ranks))


def test_halves_of_a_warp_exchange_with_their_own_masks(module: EmulatedModule) -> None:
    out = ints(64)
    assert Launch(module, "halves", (64,), out).run() is None
    upper = [0x55555555, 0xAAAAAAAA]
    first = [mask & 0xFFFE0000 for mask in upper]
    expected = [first[rank % 2] if rank < 32 else upper[rank % 2] for rank in range(64)]
    np.testing.assert_array_equal(out.view(np.uint32), expected)


def test_an_exchange_does_not_wait_for_lanes_that_have_returned(module: EmulatedModule) -> None:
    out = ints(40)
    assert Launch(module, "some_return", (40,), out).run() is None
    expected = [0 if rank % 4 == 3 else (0x77777777 if rank < 32 else 0x77) for rank in range(40)]
    np.testing.assert_array_equal(out.view(np.uint32), expected)


def test_the_values_of_an_exchange_stay_until_each_lane_has_read_them(module: EmulatedModule) -> None:
    out = ints(32)
    assert Launch(module, "kept_values", (32,), out).run() is None
    np.testing.assert_array_equal(out[:31], np.arange(1, 32) + 100)


def resident() -> int:
    """Return the bytes of memory that the process has now."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize()


def test_many_exchanges_take_no_more_memory_than_few(module: EmulatedModule) -> None:
    out = ints(32)
    assert Launch(module, "many_exchanges", (32,), 1000, out).run() is None
    before = resident()
    launch = Launch(module, "many_exchanges", (32,), 200_000, out, ranges=[])
    assert launch.run()[0] == "access"  # after the exchanges
    assert resident() - before < 10 << 20
    launch.launch.allow(out.ctypes.data, out.ctypes.data + out.nbytes)
    assert launch.run() is None
    assert sorted(out) == list(range(200_000, 200_032))


def test_the_active_mask_has_the_lanes_of_the_same_branch(module: EmulatedModule) -> None:
    out = ints(32)
    assert Launch(module, "active", (32,), out).run() is None
    masks = [sum(1 << lane for lane in range(branch, 32, 3)) for branch in range(2)]
    expected = [(masks[0], masks[1] ^ 0xFFFFFFFF, 0)[rank % 3] for rank in range(32)]
    expected[0] = 1
    np.testing.assert_array_equal(out.view(np.uint32), expected)


def test_a_deadlock_says_where_the_threads_wait(module: EmulatedModule) -> None:
    kind, text, *_, thread, block = Launch(module, "half_at_barrier", (32,), grid=(2,)).run()
    assert (kind, thread, block) == ("deadlock", (0, 0, 0), (0, 0, 0))
    assert text == "16 threads wait at __syncthreads(), 16 threads have returned"


def test_threads_that_have_returned_are_not_missed_without_strictness(module: EmulatedModule) -> None:
    assert Launch(module, "half_at_barrier", (32,), strict=False).run() is None


def test_a_deadlock_lists_every_place(module: EmulatedModule) -> None:
    out = ints(1)
    kind, text, *_ = Launch(module, "two_places", (40,), out, strict=False).run()
    # The only lane at __syncwarp() goes on when the lanes 9 to 31 have returned, but the lanes 0 to 7 are in its mask.
    assert (kind, out[0]) == ("deadlock", 0)
    assert text == (
        "8 threads wait at __syncthreads(), 1 thread waits at a warp function with the mask 0xffffffff, "
        "31 threads have returned"
    )


def test_a_mask_without_the_calling_lane_is_a_failure_of_the_thread(module: EmulatedModule) -> None:
    kind, text, *_, thread, _ = Launch(module, "foreign_mask", (2,)).run()
    assert (kind, thread) == ("mask", (1, 0, 0))
    assert text == "the mask 0x00000001 of a call for a warp lacks the lane of the calling thread"


@pytest.mark.parametrize(
    ("name", "args", "kind", "text"),
    [
        ("fixed", (8,), "bounds", f"index 8 is out of bounds for '{array_type('int', 8)}'"),
        ("quotient", (1, 0), "divide", "division of an integer by zero"),
        pytest.param("quotient", (-(2**31), -1), "divide", "the quotient of two integers overflows", marks=needs_gcc),
    ],
)
def test_a_failed_check_of_a_statement_names_its_line(
    module: EmulatedModule, name: str, args: tuple[int, ...], kind: str, text: str
) -> None:
    line = next(n for n, code in enumerate(SOURCE.split("\n"), 1) if f"void {name}(" in code)
    report = Launch(module, name, (1,), *args, ints(1)).run()
    assert report[:4] == (kind, text, "kernel.cu", line)


def test_an_assertion_names_the_expression_the_function_and_the_thread(module: EmulatedModule) -> None:
    kind, text, file, line, function, thread, block = Launch(module, "asserts", (8, 2), 3, grid=(1, 2)).run()
    assert (kind, file, thread, block) == ("assert", "kernel.cu", (3, 0, 0), (0, 0, 0))
    assert "threadIdx.x != n" in text
    assert "asserts" in function
    assert "asserts" in SOURCE.split("\n")[line - 1]


def test_a_failure_ends_the_launch_and_is_told_again(module: EmulatedModule) -> None:
    launch = Launch(module, "traps", (8,), 3, grid=(5,))
    first = launch.run()
    assert (first[0], first[-2:]) == ("trap", ((3, 0, 0), (0, 0, 0)))
    assert Launch(module, "traps", (8,), 9).run() is None  # The module is free, although the launch exists.
    assert launch.run() == first


def test_a_launch_that_has_ended_does_not_start_again(module: EmulatedModule) -> None:
    next_place = ints(1)
    launch = Launch(module, "order", (4,), next_place, ints(8))
    assert launch.run() is None
    assert launch.run() is None
    assert next_place[0] == 4


# Accesses


@pytest.mark.parametrize(("place", "size"), [(4, 4), (-1, 4), (1 << 40, 4)])
def test_an_access_outside_the_ranges_is_reported(module: EmulatedModule, place: int, size: int) -> None:
    memory = ints(4)
    report = Launch(module, "at", (1,), memory, place).run()
    assert report == ("access", memory.ctypes.data + 4 * place, size, True, (0, 0, 0), (0, 0, 0))


@pytest.mark.parametrize("address", [0, 4, 2**64 - 4, 2**63 - 4, 2**63, 2**62])
def test_no_address_passes_the_checks_by_chance(module: EmulatedModule, address: int) -> None:
    out = ints(1)
    launch = Launch(module, "from", (3,), address, 0, out, grid=(2,))
    assert launch.run() == ("access", address, 4, False, (0, 0, 0), (0, 0, 0))
    assert launch.run()[:2] == ("access", address)  # without allow()


@pytest.mark.parametrize("length", [48, 49, 55, 63])
@pytest.mark.parametrize("start", [0, 2, 8, 13])
@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_an_access_outside_is_reported_after_accesses_inside_by_the_same_statement(
    module: EmulatedModule, size: int, start: int, length: int
) -> None:
    """The module remembers the memory of each statement, here two ranges that need not begin or end at an element."""
    array, out = np.zeros(2048, np.uint8), np.zeros(32, np.uint8)
    begin, target = (-(-each.ctypes.data // 16) * 16 for each in (array, out))
    first, end = -(-start // size) * size, (start + length) // size * size
    far = 1024
    for wrong in (end, first - size, far - size, -(-(far + length) // size) * size, -size - begin, -begin):
        places = np.array([first, far, end - size, far, first, wrong], np.int64)
        ranges = [(begin + start, begin + start + length), (begin + far, begin + far + length)]
        ranges += [(each.ctypes.data, each.ctypes.data + each.nbytes) for each in (places, out)]
        inside, outside = (
            Launch(module, f"walk_{size}", (1,), begin, places, count, target, ranges=ranges).run() for count in (5, 6)
        )
        assert inside is None
        assert outside[:4] == ("access", (begin + wrong) % 2**64, size, False)


@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_a_misaligned_access_is_reported_after_accesses_of_the_same_statement(
    module: EmulatedModule, size: int
) -> None:
    array = np.zeros(128, np.uint8)
    begin = -(-array.ctypes.data // 16) * 16
    places = np.array([0, 32, 33], np.int64)
    ranges = [(begin, begin + 96), (places.ctypes.data, places.ctypes.data + places.nbytes)]
    kind, text, *_ = Launch(module, f"walk_{size}", (1,), begin, places, 3, begin + 64, ranges=ranges).run()
    assert kind == "misaligned"
    assert f"{begin + 33:#x}, which is no multiple of" in text


def test_a_wide_access_must_end_inside_the_range(module: EmulatedModule) -> None:
    memory, out = np.zeros(2), ints(1)
    address = memory.ctypes.data
    ranges = [(address, address + 12), (out.ctypes.data, out.ctypes.data + 4)]
    assert Launch(module, "wide", (1,), address, out, ranges=ranges).run() is None
    report = Launch(module, "wide", (1,), address + 8, out, ranges=ranges).run()
    assert report[:4] == ("access", address + 8, 8, False)


def test_an_allowed_access_goes_on(module: EmulatedModule) -> None:
    memory = ints(4)
    launch = Launch(module, "at", (1,), memory, 2, ranges=[])
    begin = memory.ctypes.data
    assert launch.run()[:2] == ("access", begin + 8)
    launch.launch.allow(begin, begin + 16)
    assert launch.run() is None
    assert list(memory) == [0, 0, 5, 0]


def test_a_range_inside_another_range_hides_nothing(module: EmulatedModule) -> None:
    memory = ints(100)
    begin = memory.ctypes.data
    for ranges in ([(begin, begin + 400), (begin + 40, begin + 80)], [(begin + 40, begin + 80), (begin, begin + 400)]):
        assert Launch(module, "at", (1,), memory, 50, ranges=ranges).run() is None


def test_dynamic_shared_memory_ends_at_the_size_of_the_launch(module: EmulatedModule) -> None:
    report = Launch(module, "reversed", (64,), ints(64), shared=4 * 63).run()
    assert (report[0], report[3], report[4]) == ("access", True, (63, 0, 0))


def test_a_dropped_launch_leaves_the_module_to_others(module: EmulatedModule) -> None:
    memory = ints(4)
    for _ in range(3):
        launch = Launch(module, "at", (64,), memory, 2, ranges=[], grid=(2,))
        assert launch.run()[0] == "access"
        del launch
    assert Launch(module, "at", (64,), memory, 2, grid=(2,)).run() is None
    assert memory[2] == 5


def test_a_kernel_of_the_same_module_does_not_start_while_an_access_is_asked_for(module: EmulatedModule) -> None:
    memory = ints(4)
    asking = Launch(module, "at", (1,), memory, 2, ranges=[])
    assert asking.run()[0] == "access"
    with pytest.raises(RuntimeError, match="this thread runs another kernel of the same module"):
        Launch(module, "traps", (1,), 9).run()
    assert Launch(EmulatedModule(library()), "traps", (1,), 9).run() is None  # another load of the library


def test_another_thread_waits_for_the_module(module: EmulatedModule) -> None:
    memory, other = ints(4), ints(4)
    asking = Launch(module, "at", (1,), memory, 2, ranges=[])
    assert asking.run()[0] == "access"
    thread = threading.Thread(target=Launch(module, "at", (1,), other, 1).run)
    thread.start()
    thread.join(0.12)  # longer than the wait between two looks for signals
    assert thread.is_alive()
    assert other[1] == 0
    asking.launch.allow(memory.ctypes.data, memory.ctypes.data + 16)
    assert asking.run() is None
    thread.join()
    assert other[1] == 5


def test_a_launch_that_another_thread_drops_frees_the_module(module: EmulatedModule) -> None:
    launches = [Launch(module, "at", (1,), ints(4), 2, ranges=[])]
    assert launches[0].run()[0] == "access"
    in_thread(launches.clear)
    assert Launch(module, "traps", (1,), 9).run() is None


def test_threads_of_python_launch_the_kernels_of_one_module(module: EmulatedModule) -> None:
    outs = [ints(256) for _ in range(8)]

    def work(out: np.ndarray) -> None:
        for _ in range(50):
            Launch(module, "reversed", (256,), out, shared=1024).run()

    in_threads(work, zip(outs))
    for out in outs:
        np.testing.assert_array_equal(out, np.arange(256)[::-1])


@contextlib.contextmanager
def endless_launch(module: EmulatedModule) -> Iterator[Launch]:
    """Give a launch that another thread runs until the end of the scope."""
    flag = ints(2)
    launch = Launch(module, "for_ever", (1,), flag)
    thread = threading.Thread(target=launch.run)
    thread.start()
    while flag[1] == 0:  # The kernel has not begun.
        pass
    try:
        yield launch
    finally:
        flag[0] = 77
        thread.join()


def test_only_one_thread_runs_a_launch(module: EmulatedModule) -> None:
    with endless_launch(module) as launch:
        with pytest.raises(RuntimeError, match="another thread runs this launch"):
            launch.run()
        with pytest.raises(RuntimeError, match="another thread runs the launch"):
            launch.launch.allow(0, 1)
    assert launch.run() is None


def test_launches_leave_no_memory(module: EmulatedModule) -> None:
    memory = ints(4)

    def work(count: int) -> None:
        for _ in range(count):
            Launch(module, "many_exchanges", (32,), 1, ints(32)).run()
            Launch(module, "half_at_barrier", (32,)).run()
            Launch(module, "at", (32,), memory, 2, ranges=[]).run()

    work(300)
    gc.collect()
    before = resident()
    work(3400)
    gc.collect()
    assert resident() - before < 2 << 20


# Threads that wait for each other, and interruptions


def test_a_spin_lock_is_taken_by_every_thread(module: EmulatedModule) -> None:
    count = ints(1)
    assert Launch(module, "locked", (128,), ints(1), count, grid=(3,)).run() is None
    assert count[0] == 3 * 128


@pytest.mark.parametrize("threads", [1, 40])
def test_a_lock_that_nobody_frees_is_reported_after_the_patience(module: EmulatedModule, threads: int) -> None:
    kind, text, *_ = Launch(module, "held", (threads,), ints(1) + 1, patience=0.05).run()
    assert kind == "timeout"
    assert text == (
        "threads of the block spin, and no thread of the block returns, reaches a barrier or writes a volatile variable"
    )


def test_a_block_that_spins_lets_the_others_begin_before_the_launch_is_ended(module: EmulatedModule) -> None:
    kind, text, *_ = Launch(module, "held", (1,), ints(1) + 1, grid=(2,), patience=0.05).run()
    assert kind == "timeout"
    assert "has not begun" not in text


def test_a_thread_that_reads_in_a_loop_lets_the_others_go_on(module: EmulatedModule) -> None:
    flag = ints(2)
    assert Launch(module, "plain_wait", (32,), flag).run() is None
    assert list(flag) == [1, 5]


@pytest.fixture
def alarm(module: EmulatedModule) -> Iterator[None]:
    """Raise KeyboardInterrupt in the main thread after a moment, and never while ``module`` is built."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, previous)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "threads", "grid"),
    [
        ("for_ever", 1, (1,)),
        ("for_ever", 64, (1,)),
        ("barriers_for_ever", 64, (1,)),
        ("blocks_for_ever", 1, (2**31 - 1, 65535)),
        ("held", 1, (1,)),
    ],
)
@pytest.mark.usefixtures("alarm")
def test_a_signal_interrupts_a_kernel(module: EmulatedModule, name: str, threads: int, grid: tuple[int, ...]) -> None:
    args = () if name == "barriers_for_ever" else (ints(2) + 1,)
    with pytest.raises(KeyboardInterrupt):
        Launch(module, name, (threads,), *args, grid=grid).run()
    assert Launch(module, "traps", (1,), 9).run() is None


@pytest.mark.usefixtures("alarm")
def test_a_signal_interrupts_the_wait_for_a_module(module: EmulatedModule) -> None:
    waiting = Launch(module, "traps", (1,), 9)
    with endless_launch(module), pytest.raises(KeyboardInterrupt):
        waiting.run()
    assert waiting.run() is None


@pytest.mark.parametrize("module", ["plain", pytest.param("recorded", marks=pytest.mark.long)], indirect=True)
def test_interruptions_change_neither_the_order_of_threads_nor_atomic_sums(module: EmulatedModule) -> None:
    # The kernel takes several times the 50 ms between two interruptions. A thread takes a few milliseconds, because a
    # thread that is interrupted twice lets other threads run.
    count, threads = 90_000, 1024
    total, last = ints(2), ints(threads)
    assert Launch(module, "slow", (threads,), count, total, last).run() is None
    np.testing.assert_array_equal(last, count * np.arange(1, threads + 1))


# Limits


def test_a_thread_has_as_much_local_memory_as_on_a_gpu(module: EmulatedModule) -> None:
    out = ints(2)
    assert Launch(module, "local", (2,), out).run() is None
    assert out[0] == 800


def test_a_function_with_more_local_memory_than_a_thread_has_does_not_compile() -> None:
    code = SOURCE.replace("char large[400000]", "char large[600000]")
    with pytest.raises(CompileException, match=r"frame size (of )?\(?6\d{5}\)? .*524288"):
        build(code)


@pytest.mark.parametrize(
    ("block", "grid", "shared", "message"),
    [
        ((1025,), (1,), 0, "a block must have 1 to 1024 threads"),
        ((65536, 65536), (1,), 0, "a block must have 1 to 1024 threads"),
        ((0,), (1,), 0, "a block must have 1 to 1024 threads"),
        ((1,), (0,), 0, "a grid must have at least one block"),
        ((1,), (1,), 232449, "a block has at most 232448 bytes of dynamic shared memory"),
    ],
)
def test_a_launch_that_no_gpu_could_run_is_refused(
    module: EmulatedModule, block: tuple[int, ...], grid: tuple[int, ...], shared: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Launch(module, "traps", block, 9, grid=grid, shared=shared)


def test_arguments_of_another_size_are_refused(module: EmulatedModule) -> None:
    function = module.function("traps")
    assert function is not None
    with pytest.raises(ValueError, match="another size than the parameters"):
        EmulatedLaunch(function, (1, 1, 1), (1, 1, 1), b"", 0, [])


# Modules


def test_the_memory_of_a_module_has_its_code_and_its_variables(module: EmulatedModule) -> None:
    function = module.function("axpy")
    assert function is not None
    memory = function.module_memory
    assert memory == sorted(memory)
    assert all(begin < end for begin, end, _ in memory)
    address, size = module.symbol("variable") or (0, 0)
    assert [code for begin, end, code in memory if begin <= address and address + size <= end] == [False]
    assert any(code for _, _, code in memory)


def test_every_load_has_variables_of_its_own(module: EmulatedModule) -> None:
    first, second = module.symbol("variable"), EmulatedModule(library()).symbol("variable")
    assert first is not None
    assert second is not None
    assert first[1] == second[1] == 20
    assert first[0] != second[0]


@pytest.mark.parametrize("name", ["axpy", "environ", "nothing"])
def test_only_variables_of_the_source_are_found(module: EmulatedModule, name: str) -> None:
    assert module.symbol(name) is None


def test_bytes_that_are_no_library_are_refused() -> None:
    with pytest.raises(RuntimeError, match="invalid ELF header|file too short"):
        EmulatedModule(b"wrong")


def test_loads_keep_no_descriptor_and_are_different_libraries() -> None:
    content = library()
    loaded = [EmulatedModule(content) for _ in range(20)]
    assert open_descriptors("/memfd:tcuda kernels") == []
    assert len({module.symbol("variable") for module in loaded}) == 20
