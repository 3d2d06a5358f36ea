"""Races between the threads of a kernel on the processor: what is found, and what orders accesses."""

from __future__ import annotations

import resource
import shutil

import numpy as np
import pytest

from support.racing_kernels import Found, found_by, launch, races_of
from tcuda._core import EmulatedLaunch, EmulatedModule
from tcuda.emulation.rtc.build import build
from tcuda.emulation.rtc.source_lines import source_lines

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")


def kernel(body: str, parameters: str = "float* x, float* out", before: str = "") -> str:
    """Return the source of a kernel with ``body``."""
    return f"""{before}
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void kernel({parameters}) {{
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
{body}
}}
"""


def floats(count: int = 4096) -> np.ndarray:
    return np.ones(count, np.float32)


def ints(count: int = 4096) -> np.ndarray:
    return np.zeros(count, np.int32)


def one(found: list[Found]) -> Found:
    assert len(found) == 1, [(race.missing, race.lines) for race in found]
    return found[0]


def missing(found: list[Found]) -> set[str]:
    return {race.missing for race in found}


# Barriers of the block

REDUCTION = """
    __shared__ float s[256];
    {rank}
    s[r] = x[i];
    {first}
    for (int n = 128; n > 0; n /= 2) {{
        if (r < n)
            s[r] += s[r + n];
        {each}
    }}
    if (r == 0) out[blockIdx.x] = s[0];
"""
SYNC = "__syncthreads();"


@pytest.mark.parametrize("rank", ["const int r = t;", "const int r = 255 - t;"])  # the writer runs first, or the reader
def test_a_missing_barrier_is_found_whichever_thread_runs_first(rank: str) -> None:
    good = REDUCTION.format(rank=rank, first=SYNC, each=SYNC)
    assert races_of(kernel(good), floats(), floats(), grid=4, block=256) == []
    found = one(
        races_of(kernel(REDUCTION.format(rank=rank, first="", each=SYNC)), floats(), floats(), grid=4, block=256)
    )
    assert found.lines == ("read: s[r] += s[r + n];", "write: s[r] = x[i];")
    assert found.missing == "barrier"
    assert found.race.shared
    found = one(
        races_of(kernel(REDUCTION.format(rank=rank, first=SYNC, each="")), floats(), floats(), grid=4, block=256)
    )
    assert found.lines == ("read: s[r] += s[r + n];", "write: s[r] += s[r + n];")
    assert found.missing == "barrier"


@pytest.mark.parametrize("barrier", [SYNC, "__syncthreads_count(1);", "cg::this_thread_block().sync();"])
def test_each_barrier_of_the_block_orders(barrier: str) -> None:
    body = f"__shared__ float s[64]; s[t] = x[i]; {barrier} out[i] = s[63 - t];"
    assert races_of(kernel(body), floats(), floats(), block=64) == []


def test_shared_memory_belongs_to_a_block() -> None:
    body = """
    __shared__ int s;
    extern __shared__ int d[];
    if (t == 0) s = d[0] = blockIdx.x;
    __syncthreads();
    out[i] = s + d[0];"""
    assert races_of(kernel(body), floats(), floats(), grid=8, block=64, shared=4) == []


def test_a_read_that_only_the_last_barrier_separates_from_a_write_of_the_next_turn_is_a_race() -> None:
    body = """
    __shared__ float s[64];
    for (int turn = 0; turn < 3; ++turn) {
        s[t] = turn;
        __syncthreads();
        out[i] += s[63 - t];
        LAST
    }"""
    assert races_of(kernel(body.replace("LAST", SYNC)), floats(), floats(), block=64) == []
    found = one(races_of(kernel(body.replace("LAST", "")), floats(), floats(), block=64))
    assert found.lines == ("read: out[i] += s[63 - t];", "write: s[t] = turn;")
    assert (found.missing, found.race.count) == ("barrier", 128)


def test_memory_that_all_threads_read_is_no_race() -> None:
    body = "float sum = 0; for (int j = 0; j < 64; ++j) sum += x[j]; out[i] = sum;"
    assert races_of(kernel(body), floats(), floats(), grid=4, block=64) == []
    body += " if (i == 200) x[5] = 0;"
    found = one(races_of(kernel(body), floats(), floats(), grid=4, block=64))
    assert (found.missing, found.race.shared) == ("atomic", False)


def test_a_later_write_finds_a_read_by_any_of_many_threads() -> None:
    body = "if (t == {reader}) out[i] = x[0]; else if (t < 64) out[i] = x[1]; if (t == {writer}) x[0] = 5;"
    for reader, writer in ((3, 5), (5, 3), (3, 200), (200, 3)):
        found = one(races_of(kernel(body.format(reader=reader, writer=writer)), floats(), floats(), block=256))
        threads = {found.race.first.thread[0], found.race.second.thread[0]}
        assert threads == {reader, writer}
        assert found.missing == ("warp barrier" if {reader, writer} == {3, 5} else "barrier")


# Updates and atomic functions


@pytest.mark.parametrize(("grid", "block"), [(1, 256), (4, 1), (4, 64)])
def test_an_update_without_an_atomic_function(grid: int, block: int) -> None:
    found = races_of(kernel("out[0] += x[i];"), floats(), floats(), grid=grid, block=block)
    assert missing(found) == {"atomic"}
    assert sorted(race.lines for race in found) == [
        ("read: out[0] += x[i];", "write: out[0] += x[i];"),
        ("write: out[0] += x[i];", "write: out[0] += x[i];"),
    ]
    assert races_of(kernel("atomicAdd(out, x[i]);"), floats(), floats(), grid=grid, block=block) == []


def test_a_histogram() -> None:
    body = """
    __shared__ int bins[16];
    if (t < 16) bins[t] = 0;
    FIRST
    atomicAdd(bins + (i * 7) % 16, 1);
    SECOND
    if (t < 16) atomicAdd(out + t, bins[t]);"""
    used = "int* x, int* out"
    good = body.replace("FIRST", SYNC).replace("SECOND", SYNC)
    out = ints()
    assert races_of(kernel(good, used), ints(), out, grid=4, block=128) == []
    assert out[:16].tolist() == [32] * 16
    update, start = "atomic: atomicAdd(bins + (i * 7) % 16, 1);", "write: if (t < 16) bins[t] = 0;"
    found = races_of(kernel(good.replace(SYNC, "", 1), used), ints(), ints(), grid=4, block=128)
    assert {race.lines for race in found} == {(update, start)}
    assert "barrier" in missing(found)
    late = body.replace("FIRST", SYNC).replace("SECOND", "")
    found = races_of(kernel(late, used), ints(), ints(), grid=4, block=128)
    assert {race.lines for race in found} == {(update, "read: if (t < 16) atomicAdd(out + t, bins[t]);")}
    assert "barrier" in missing(found) <= {"barrier", "warp barrier"}


def test_an_atomic_function_races_with_a_plain_access_after_the_own_atomic_function() -> None:
    body = "__shared__ int s; if (t == 0) s = 0; __syncthreads(); atomicAdd(&s, 1); {} if (t == 63) out[0] = s;"
    assert races_of(kernel(body.format(SYNC)), floats(), floats(), block=64) == []
    assert missing(races_of(kernel(body.format("")), floats(), floats(), block=64)) <= {"barrier", "warp barrier"}
    assert races_of(kernel(body.format("")), floats(), floats(), block=64) != []


def test_functions_of_block_scope_do_not_suffice_between_blocks() -> None:
    used = "int* x, int* out"
    assert races_of(kernel("atomicAdd_block(out, 1);", used), ints(), ints(), block=64) == []
    found = one(races_of(kernel("atomicAdd_block(out, 1);", used), ints(), ints(), grid=2, block=64))
    assert found.missing == "scope"
    mixed = "if (blockIdx.x == 0) atomicAdd(out, 1); else atomicAdd_block(out, 1);"
    assert one(races_of(kernel(mixed, used), ints(), ints(), grid=2, block=64)).missing == "scope"
    assert races_of(kernel("atomicAdd_system(out, 1);", used), ints(), ints(), grid=2, block=64) == []


@pytest.mark.parametrize(
    ("value", "same"), [("1.0f", True), ("x[0]", True), ("t", False), ("t < 100 ? 1.0f : 2.0f", False)]
)
def test_writes_of_the_same_value_are_told_apart(value: str, same: bool) -> None:
    found = one(races_of(kernel(f"const float v = {value}; out[0] = v;"), floats(), floats(), block=128))
    assert found.race.same_value is same
    assert found.race.first.kind == found.race.second.kind == "write"


# Guesses for a compare-and-swap

LOOP = """
    {kind}* place = ({kind}*)out;
    {kind} old = *place, assumed;
    {between}
    do {{
        assumed = old;
        old = atomicCAS(place, assumed, {next});
    }} while (assumed != old);
"""
SWAPS = {
    "sum of doubles": ("unsigned long long", "__double_as_longlong(1.0 + __longlong_as_double(assumed))"),
    "largest float": ("int", "__float_as_int(fmaxf((float)i, __int_as_float(assumed)))"),
    "smallest float": ("unsigned", "__float_as_uint(fminf((float)i, __uint_as_float(assumed)))"),
    "sum in half a word": ("unsigned", "(assumed & 0xffff) | ((assumed >> 16) + 1) << 16"),
    "sum of shorts": ("unsigned short", "(unsigned short)(assumed + 1)"),
}
SWITCH = "(void)*(volatile float*)x;"  # the other threads run up to here, or to their ends


@pytest.mark.parametrize("between", ["", SWITCH, f"if (t % 3 == 0) {SWITCH}"])
@pytest.mark.parametrize("swap", SWAPS)
def test_a_plain_read_whose_value_a_compare_and_swap_tests_is_no_race(swap: str, between: str) -> None:
    kind, following = SWAPS[swap]
    source = kernel(LOOP.format(kind=kind, next=following, between=between))
    for grid, block in ((1, 32), (1, 96), (4, 64)):
        out = np.zeros(64)
        assert races_of(source, floats(), out, grid=grid, block=block) == []
        total = grid * block
        expected = {"sum of doubles": total, "largest float": np.float32(total - 1).view(np.int32), "smallest float": 0}
        if swap in expected:
            assert out.view(np.float64 if kind == "unsigned long long" else np.int32)[0] == expected[swap]
        else:
            assert out.view(np.uint16)[1 if "half" in swap else 0] == total


def test_a_compare_and_swap_tests_the_value_of_each_turn() -> None:
    body = """
    unsigned assumed;
    do { assumed = *out; BETWEEN } while (atomicCAS(out, assumed, assumed + 1) != assumed);"""
    for between in ("", SWITCH):
        out = ints().view(np.uint32)
        source = kernel(body.replace("BETWEEN", between), "float* x, unsigned* out")
        assert races_of(source, floats(), out, grid=2, block=64) == []
        assert out[0] == 128


@pytest.mark.parametrize("between", ["", SWITCH])
@pytest.mark.parametrize(
    "body",
    [
        "if (*out < i + 1) {{ {between} atomicMax(out, i + 1); }}",
        "if (*out == 0) {{ {between} atomicExch(out, 1); }}",
        "const int old = *out; {between} atomicAdd(out, 1); atomicCAS(out, old, 5);",
        "const int old = *out; {between} __syncwarp(); atomicCAS(out, old, 5);",
        "const int old = *out; {between} atomicCAS(out + 1, old, 5); atomicAdd(out, 1);",
        "const int old = *out; {between} if (t % 2) atomicCAS(out, old, old + 1); else x[t] = old;",
        "const int old = *out; {between} atomicCAS(out, old, old + 1); if (t == 5) x[0] = *out;",
    ],
)
def test_a_plain_read_without_a_compare_and_swap_is_a_race(body: str, between: str) -> None:
    source = kernel(body.format(between=between), "float* x, int* out")
    for grid, block in ((1, 64), (3, 32)):
        found = races_of(source, floats(), ints(), grid=grid, block=block)
        lines = {line.partition(":")[0] for race in found for line in race.lines}
        assert lines >= {"read", "atomic"}


@pytest.mark.parametrize("reader", [0, 40])
@pytest.mark.parametrize("block", [64, 1])
def test_one_guess_before_or_after_the_atomic_function_of_another_thread(reader: int, block: int) -> None:
    body = """
    if (i == READER) { const int old = *out; SWITCH; FOLLOWING }
    else if (i == 40 - READER) atomicAdd(out, 1);"""
    body = body.replace("READER", str(reader)).replace("SWITCH;", SWITCH)
    grid = 64 // block
    used = "float* x, int* out"
    right = kernel(body.replace("FOLLOWING", "atomicCAS(out, old, old + 1);"), used)
    assert races_of(right, floats(), ints(), grid=grid, block=block) == []
    # A guess is no excuse for a plain write.
    wrong = right.replace("atomicAdd(out, 1)", "*out = 1")
    assert races_of(wrong, floats(), ints(), grid=grid, block=block) != []
    wrong = kernel(body.replace("FOLLOWING", "*out = old + 1;"), used)
    assert races_of(wrong, floats(), ints(), grid=grid, block=block) != []
    for following in ("x[1] = old;", "atomicMax(out, old);"):
        found = races_of(kernel(body.replace("FOLLOWING", following), used), floats(), ints(), grid=grid, block=block)
        read = "read: if (i == READER) { const int old".replace("READER", str(reader))
        pairs = [race for race in found if any(line.startswith(read) for line in race.lines)]
        assert len(pairs) == 1
        assert pairs[0].race.count == 1
        assert pairs[0].race.size == 4


@pytest.mark.parametrize("between", ["", SWITCH])
@pytest.mark.parametrize("reader", [0, 63])
def test_a_guess_of_bytes_beside_the_compare_and_swap_is_a_race(reader: int, between: str) -> None:
    body = f"""
    if (t == {reader}) {{ const int2 old = *(int2*)out; {between} atomicCAS(out, old.x, 5); x[0] = old.y; }}
    else atomicAdd(out + t % 2, 1);"""
    out = ints()
    found = one(races_of(kernel(body, "float* x, int* out"), floats(), out, block=64))
    assert (found.race.address - out.ctypes.data, found.race.size) == (4, 4)


@pytest.mark.parametrize(
    "following",
    [
        "if (t == 0) atomicAdd(out, 1); if (t == 0) atomicCAS(out, old, 5);",
        "__syncwarp(); if (t == 0) atomicCAS(out, old, 5);",
    ],
)
def test_a_compare_and_swap_after_another_use_is_too_late_for_a_guess(following: str) -> None:
    body = (
        f"if (blockIdx.x == 0) {{ const int old = t == 0 ? *out : 0; {following} }} else if (t == 0) atomicAdd(out, 1);"
    )
    found = one(races_of(kernel(body, "float* x, int* out"), floats(), ints(), grid=2))
    assert (found.race.first.kind, found.race.second.block[0]) == ("read", 1)


def test_each_of_several_readers_needs_its_own_compare_and_swap() -> None:
    body = f"""
    if (t < 32) {{ const int old = *out; {SWITCH} if (t < LANES) atomicCAS(out, old + 7, 5); }}
    else atomicAdd(out, 1);"""
    used = "float* x, int* out"
    assert races_of(kernel(body.replace("LANES", "32"), used), floats(), ints(), block=33) == []
    body = body.replace("atomicCAS", "x[t + 64] = old; if (t < 31) atomicCAS").replace("LANES", "32")
    found = one(races_of(kernel(body, used), floats(), ints(), block=33))
    assert (found.race.first.thread[0], found.race.second.thread[0], found.race.count) == (31, 32, 1)


def test_the_exchange_of_the_compiler_is_an_atomic_function() -> None:
    used = "float* x, int* out"
    assert races_of(kernel("__atomic_exchange_n(out, i, __ATOMIC_RELAXED);", used), floats(), ints()) == []
    body = "if (t == 0) __atomic_exchange_n(out, i, __ATOMIC_RELAXED); else x[t] = *out;"
    assert races_of(kernel(body, used), floats(), ints()) != []
    swap = """
    int old = *out, order = __ATOMIC_RELAXED;
    while (!__atomic_compare_exchange_n(out, &old, old + 1, false, order, order));"""
    out = ints()
    assert races_of(kernel(swap, used), floats(), out, grid=2) == []
    assert out[0] == 64


@pytest.mark.parametrize(("grid", "block"), [(1, 64), (8, 1)])
def test_a_plain_unlock_lacks_an_atomic_function(grid: int, block: int) -> None:
    used, fence = "int* lock, int* count", "__threadfence();"
    body = LOCKED.format(acquire=fence, release=fence).replace("atomicExch(lock, 0);", "*lock = 0;")
    found = [
        race
        for race in races_of(kernel(body, used), ints(1), ints(1), grid=grid, block=block)
        if "lock" in str(race.lines)
    ]
    assert missing(found) == {"atomic"}


def test_a_reset_by_one_thread_lacks_a_barrier() -> None:
    body = "__shared__ int s; if (t == 0) s = 0; __syncthreads(); atomicAdd(&s, 1); if (t == 0) s = 0;"
    assert missing(races_of(kernel(body), floats(), floats(), grid=4, block=64)) <= {"barrier", "warp barrier"}


@pytest.mark.parametrize(("value", "word"), [("1", "atomic"), ("t", "barrier")])
def test_writes_of_one_value_at_one_line_need_no_order(value: str, word: str) -> None:
    found = one(
        races_of(kernel(f"__shared__ int s; s = {value}; __syncthreads(); out[i] = s;"), floats(), floats(), block=64)
    )
    assert (found.missing, found.race.same_value) == (word, value == "1")


# Warps


@pytest.mark.parametrize("sync", ["__syncwarp();", "cg::tiled_partition<32>(cg::this_thread_block()).sync();"])
def test_a_function_of_a_warp_orders_its_lanes(sync: str) -> None:
    body = "__shared__ float s[64]; s[t] = x[i]; {} out[i] = s[t ^ 1]; {} s[t] = 2;"
    assert races_of(kernel(body.format(sync, sync)), floats(), floats(), block=64) == []
    found = races_of(kernel(body.format("", sync)), floats(), floats(), block=64)
    assert missing(found) == {"warp barrier"}
    found = races_of(kernel(body.format(sync, "")), floats(), floats(), block=64)
    assert missing(found) == {"warp barrier"}


def test_a_function_of_a_warp_does_not_order_other_warps() -> None:
    body = "__shared__ float s[64]; s[t] = x[i]; __syncwarp(); out[i] = s[63 - t];"
    assert one(races_of(kernel(body), floats(), floats(), block=64)).missing == "barrier"


def test_only_the_lanes_of_the_mask_are_ordered() -> None:
    body = """
    __shared__ float s[32];
    s[t] = x[i];
    if (t < 16) __syncwarp(0xffff);
    else __syncwarp(0xffff0000);
    out[i] = s[t ^ {}];"""
    assert races_of(kernel(body.format(8)), floats(), floats()) == []
    assert one(races_of(kernel(body.format(16)), floats(), floats())).missing == "warp barrier"
    assert races_of(kernel(body.format(16) + " __syncwarp();"), floats(), floats()) != []


def test_shuffles_order_and_pass_on_what_lanes_know() -> None:
    body = """
    __shared__ float s[32];
    if (t == 0) s[0] = 1;
    if (t < 2) __shfl_sync(0x3, t, 0);
    if (t == 1 || t == 2) __shfl_sync({}, t, 1);
    if (t == 2) out[0] = s[0];"""
    assert races_of(kernel(body.format("0x6")), floats(), floats()) == []
    alone = kernel(body.format("1u << t").replace("t, 1);", "t, t);"))
    assert one(races_of(alone, floats(), floats())).missing == "warp barrier"


def test_lanes_that_have_returned_come_before_the_function_of_the_warp() -> None:
    body = "__shared__ float s[32]; s[t] = x[i]; if (t == 3) return; {} out[i] = s[3];"
    assert races_of(kernel(body.format("__syncwarp();")), floats(), floats()) == []
    assert one(races_of(kernel(body.format("")), floats(), floats())).missing == "warp barrier"


def test_tiles_order_their_own_threads() -> None:
    body = """
    __shared__ float s[64];
    auto tile = cg::tiled_partition<{}>(cg::this_thread_block());
    s[t] = x[i];
    tile.sync();
    out[i] = s[t ^ 8];"""
    assert races_of(kernel(body.format(16)), floats(), floats(), block=64) == []
    assert one(races_of(kernel(body.format(8)), floats(), floats(), block=64)).missing == "warp barrier"


UNROLLED = """
    __shared__ float s[64];
    s[t] = x[i];
    __syncthreads();
    if (t < 32) {{
        volatile float* v = s;
        {steps}
    }}
    if (t == 0) out[blockIdx.x] = s[0];
"""


def test_volatile_variables_do_not_order_the_lanes_of_a_warp() -> None:
    old = UNROLLED.format(steps="\n".join(f"v[t] += v[t + {n}];" for n in (32, 16, 8)))
    found = races_of(kernel(old), floats(), floats(), block=64)
    assert missing(found) == {"warp barrier"}
    assert all(line.startswith("volatile ") for race in found for line in race.lines)
    new = UNROLLED.format(
        steps="\n".join(
            f"float v{n} = t < {n} ? v[t + {n}] : 0;\n__syncwarp();\nif (t < {n}) v[t] += v{n};\n__syncwarp();"
            for n in (32, 16, 8, 4, 2, 1)
        )
    )
    assert races_of(kernel(new), floats(), floats(), block=64) == []


# What is handed over through memory

LAST_BLOCK = """
    __shared__ int last;
    if (t == 0) {{
        out[blockIdx.x] = x[i];
        {fence}
        last = atomicInc({count}, gridDim.x - 1) == gridDim.x - 1;
    }}
    __syncthreads();
    if (last) {{
        float sum = 0;
        for (int j = t; j < gridDim.x; j += blockDim.x) sum += out[j];
        out[gridDim.x + t] = sum;
        if (t == 0) *count = 0;
    }}
"""
COUNTED = "float* x, float* out, unsigned* count"


def test_the_last_block_reads_what_the_others_have_handed_over() -> None:
    good = kernel(LAST_BLOCK.format(fence="__threadfence();", count="count"), COUNTED)
    assert races_of(good, floats(), floats(), ints(1).view(np.uint32), grid=40, block=64) == []
    bad = kernel(LAST_BLOCK.format(fence="", count="count"), COUNTED)
    found = races_of(bad, floats(), floats(), ints(1).view(np.uint32), grid=40, block=64)
    lines = ("read: for (int j = t; j < gridDim.x; j += blockDim.x) sum += out[j];", "write: out[blockIdx.x] = x[i];")
    assert {race.missing for race in found if race.lines == lines} == {"fence"}
    narrow = kernel(LAST_BLOCK.format(fence="__threadfence_block();", count="count"), COUNTED)
    found = races_of(narrow, floats(), floats(), ints(1).view(np.uint32), grid=40, block=64)
    assert "scope" in missing(found)


def test_a_fence_of_all_threads_before_the_barrier_hands_over_what_they_have_written() -> None:
    body = """
    __shared__ int last;
    out[i] = x[i];
    {fence}
    __syncthreads();
    if (t == 0) last = atomicAdd(count, 1) == gridDim.x - 1;
    __syncthreads();
    if (last) x[i] = out[(blockDim.x * t + 5) % {used}];"""
    used = {"used": 4 * 64}
    args = (floats(), floats(), ints(1).view(np.uint32))
    assert races_of(kernel(body.format(fence="__threadfence();", **used), COUNTED), *args, grid=4, block=64) == []
    for fence in ("", "if (t == 0) __threadfence();"):
        args = (floats(), floats(), ints(1).view(np.uint32))
        found = races_of(kernel(body.format(fence=fence, **used), COUNTED), *args, grid=4, block=64)
        assert missing(found) == {"fence"}


LOOK_BACK = """
    if (t == 0) {{
        int before = 0;
        if (blockIdx.x > 0) {{
            while (flags[blockIdx.x - 1] == 0) {{}}
            {acquire}
            before = sums[blockIdx.x - 1];
        }}
        sums[blockIdx.x] = before + 1;
        {release}
        flags[blockIdx.x] = 1;
    }}
"""


def test_a_look_back_needs_a_fence_on_both_sides() -> None:
    used, fence = "int* sums, volatile int* flags", "__threadfence();"
    sums = ints()
    assert races_of(kernel(LOOK_BACK.format(acquire=fence, release=fence), used), sums, ints(), grid=20) == []
    assert sums[:20].tolist() == list(range(1, 21))
    for acquire, release, lacks in (("", fence, "second"), (fence, "", "first"), ("", "", "both")):
        found = one(races_of(kernel(LOOK_BACK.format(acquire=acquire, release=release), used), ints(), ints(), grid=20))
        assert found.lines == ("read: before = sums[blockIdx.x - 1];", "write: sums[blockIdx.x] = before + 1;")
        assert (found.missing, found.race.without_fence) == ("fence", lacks)


def test_what_a_thread_has_learned_is_handed_on() -> None:
    body = LOOK_BACK + "if (t == 0 && blockIdx.x == gridDim.x - 1) sums[100] = sums[0];"
    used, fence = "int* sums, volatile int* flags", "__threadfence();"
    source = kernel(body.format(acquire=fence, release=fence), used)
    assert races_of(source, ints(), ints(), grid=20) == []


LOCKED = """
    bool done = false;
    while (!done) {{
        if (atomicCAS(lock, 0, 1) == 0) {{
            {acquire}
            *count += 1;
            {release}
            atomicExch(lock, 0);
            done = true;
        }}
    }}
"""


@pytest.mark.parametrize(("grid", "block"), [(1, 64), (8, 1), (4, 32)])
def test_a_lock_needs_fences(grid: int, block: int) -> None:
    used, fence = "int* lock, int* count", "__threadfence();"
    count = ints(1)
    good = kernel(LOCKED.format(acquire=fence, release=fence), used)
    assert races_of(good, ints(1), count, grid=grid, block=block) == []
    assert count[0] == grid * block
    for acquire, release in (("", fence), (fence, ""), ("", "")):
        bad = kernel(LOCKED.format(acquire=acquire, release=release), used)
        found = races_of(bad, ints(1), ints(1), grid=grid, block=block)
        assert missing(found) == {"fence"}


def test_a_lock_in_shared_memory() -> None:
    body = "__shared__ int lock[1], count[1]; if (t == 0) *lock = *count = 0; __syncthreads();" + LOCKED
    fence = "__threadfence_block();"
    good = kernel(body.format(acquire=fence, release=fence))
    assert races_of(good, floats(), floats(), grid=4, block=64) == []
    bad = kernel(body.format(acquire="", release=""))
    assert missing(races_of(bad, floats(), floats(), grid=4, block=64)) == {"fence"}


def test_a_comparison_that_fails_hands_over_nothing() -> None:
    body = """
    if (i == 0) { *x = 1; __threadfence(); atomicCAS(flag, 5, 1); }
    if (i == 1) { atomicAdd(flag, 0); __threadfence(); *out = *x; }"""
    used = "float* x, float* out, int* flag"
    assert missing(races_of(kernel(body, used), floats(), floats(), ints(), grid=2, block=1)) == {"atomic"}
    assert races_of(kernel(body.replace("5, 1", "0, 1"), used), floats(), floats(), ints(), grid=2, block=1) == []


def test_builtin_atomic_functions_of_the_compiler() -> None:
    body = """
    if (i == 0) {{ *x = 1; __atomic_store_n(flag, 1, {release}); }}
    else {{ while (__atomic_load_n(flag, {acquire}) == 0) {{}} *out = *x; }}"""
    used = "float* x, float* out, int* flag"
    good = kernel(body.format(release="__ATOMIC_RELEASE", acquire="__ATOMIC_ACQUIRE"), used)
    assert races_of(good, floats(), floats(), ints(), grid=2, block=1) == []
    bad = kernel(body.format(release="__ATOMIC_RELAXED", acquire="__ATOMIC_ACQUIRE"), used)
    assert missing(races_of(bad, floats(), floats(), ints(), grid=2, block=1)) == {"fence"}


# Bytes


def test_neighbouring_bytes_are_no_race() -> None:
    used = "unsigned char* x, unsigned char* out"
    x = np.zeros(256, np.uint8)
    assert races_of(kernel("out[i] = x[i] + x[(i + 1) % 256];", used), x, np.zeros(256, np.uint8), block=256) == []
    shorts = np.zeros(256, np.uint16)
    assert races_of(kernel("out[i] = 1;", "short* x, short* out"), shorts, shorts.copy(), block=256) == []


@pytest.mark.parametrize(
    ("first", "second", "offset", "size"),
    [
        ("*(int*)x = 1;", "x[3] = 1;", 3, 1),
        ("x[2] = 1;", "*(int*)x = 1;", 2, 1),
        ("*(float4*)x = float4{};", "*(double*)(x + 8) = 1;", 8, 8),
        ("*(double*)x = 1;", "*(float4*)x = float4{};", 0, 8),
        ("memset(x + 1, 1, 100);", "*(int*)(x + 100) = 1;", 100, 1),
        ("memcpy(x, x + 500, 300);", "x[299] = 1;", 299, 1),
        ("*(Three*)x = Three{};", "x[11] = 1;", 11, 1),
        ("x[4095 - 1] = x[4096] = 1;", "memset(x + 4000, 0, 96);", 4094, 1),
    ],
)
def test_accesses_of_different_sizes_meet_in_their_common_bytes(
    first: str, second: str, offset: int, size: int
) -> None:
    memory = np.zeros(3 * 4096, np.int8)
    x = memory[-memory.ctypes.data % 4096 :]
    before = "struct Three { int a, b, c; };"
    for one_first in (True, False):
        threads = ("t == 0", "t == 40") if one_first else ("t == 40", "t == 0")
        source = kernel(f"if ({threads[0]}) {{ {first} }}\nif ({threads[1]}) {{ {second} }}", "char* x", before)
        found = one(races_of(source, x, block=64))
        assert (found.race.address - x.ctypes.data, found.race.size) == (offset, size)


@pytest.mark.parametrize(
    "call",
    [
        "__builtin_memcpy(x + 8, x + 16, 20);",
        "__builtin_memmove(x + 8, x + 9, 20);",
        "__builtin_memset(x + 8, 0, 20);",
        "out[0] = __builtin_memcmp(x + 8, x + 16, 20);",
    ],
)
def test_copies_by_the_names_of_the_compiler_race(call: str) -> None:
    source = kernel(f"if (t == 0) {{ {call} }}\nif (t == 40) x[12] = 3.5;", "float* x, float* out")
    assert races_of(source, floats(), floats(), block=64)


def test_memory_of_the_heap_begins_without_accesses() -> None:
    body = "int* p = (int*)malloc(4); *p = i; out[i] = *p; free(p);"
    assert races_of(kernel(body), floats(), floats(), grid=4, block=64) == []


def test_global_variables_are_no_shared_memory() -> None:
    source = kernel("if (t == 0) total = blockIdx.x;", before="__device__ int total; __constant__ int c[4];")
    assert one(races_of(source, floats(), floats(), grid=4)).race.shared is False
    assert races_of(source, floats(), floats()) == []


def test_local_arrays_are_of_one_thread() -> None:
    body = "float a[40]; for (int j = 0; j < 40; ++j) a[(j * i) % 40] = x[j]; out[i] = a[i % 40];"
    assert races_of(kernel(body), floats(), floats(), grid=4, block=64) == []


# Lines


def test_lines_of_templates_macros_and_inlined_functions() -> None:
    before = """template <class T> __device__ void set(T* place, T value) {
    *place = value; // in the template
}
#define STORE(place) \\
    *(place) = 3
__device__ __forceinline__ float get(const float* place) {
    return __ldg(place); // in the function
}"""
    source = kernel("set(out, 1.0f);\nSTORE(out + 1);\nx[i] = get(out + 2);\nif (t == 9) out[2] = 1;", before=before)
    found = {line for race in races_of(source, floats(), floats(), block=64) for line in race.lines}
    assert found == {
        "write: *place = value; // in the template",
        "write: STORE(out + 1);",
        "read: return __ldg(place); // in the function",
        "write: if (t == 9) out[2] = 1;",
    }


def test_the_lines_of_line_directives_are_kept() -> None:
    source = kernel('\n#line 700 "mine.cu"\nout[0] = t;')
    out = floats()
    started = launch(source, out, out, block=64)
    assert started.run() is None
    (race,) = started.races()
    library, _ = build(source, races=True)
    assert source_lines(library, [race.first.code, 0, race.second.code]) == [("mine.cu", 700), None, ("mine.cu", 700)]


# The life of a launch


def test_a_million_threads_take_bounded_memory() -> None:
    x, out = floats(1 << 20), floats(1 << 20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    body = "__shared__ float s[256]; s[t] = x[i]; __syncthreads(); out[i] = s[255 - t] + x[t];"
    assert races_of(kernel(body), x, out, grid=4096, block=256) == []
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    assert grown < 16 * (x.nbytes + out.nbytes)


def test_races_are_known_after_a_fault() -> None:
    out = floats()
    started = launch(kernel("out[0] = t; __syncthreads(); if (t == 3) __trap();"), out, out, block=64)
    assert started.run()[0] == "trap"
    assert [race.same_value for race in started.races()] == [False]


def test_a_recorded_launch_finds_races_too() -> None:
    out = floats(64)
    source = kernel("out[t / 2] = t;")
    started = launch(source, out, out, block=64, recorded=True)
    assert started.run() is None
    assert one(found_by(started, source)).missing == "warp barrier"
    begin = out.ctypes.data
    assert started.accesses([begin, begin + out.nbytes], 10) == [(begin, 1, (128,), (1,), 2, True)]


def test_threads_that_spin_and_print_end_as_without_the_search(capfd: pytest.CaptureFixture[str]) -> None:
    body = """
    volatile int* flag = (volatile int*)out;
    if (t == 0) { while (*flag != 7) {} __threadfence(); printf("%d\\n", (int)x[0]); }
    if (t == 40) { x[0] = 5; __threadfence(); *flag = 7; }"""
    assert races_of(kernel(body), floats(), floats(), block=64) == []
    assert capfd.readouterr().out == "5\n"


def test_interruptions_lose_no_race() -> None:
    body = "for (int j = 0; j < 3000000; ++j) out[j % 1000 + 1000 * (t % 2)] += 1; if (t == 31) out[0] = 1;"
    found = races_of(kernel(body), floats(), floats(), block=(2, 1, 1))
    assert found == []
    found = races_of(kernel(body.replace("t == 31", "t == 1")), floats(), floats(), block=(2, 1, 1))
    # An interruption may fall between any two accesses, so thread 1 may write first.
    assert found != []
    assert all({race.race.first.thread, race.race.second.thread} == {(0, 0, 0), (1, 0, 0)} for race in found)


def test_many_places_are_counted_and_left_out() -> None:
    lines = "\n".join(f"if (t % 2) out[{n}] = t; else out[{n}] = x[t] + {n};" for n in range(300))
    x, out = floats(), floats()
    started = launch(kernel(lines), x, out, block=2)
    assert started.run() is None
    assert (len(started.races()), started.races_left_out) == (256, 44)


def test_a_launch_without_the_search_has_no_races() -> None:
    source = 'extern "C" __global__ void kernel() { __shared__ int s; s = threadIdx.x; }'
    for races in (False, True):
        function = EmulatedModule(build(source, races=races)[0]).function("kernel")
        assert function is not None
        started = EmulatedLaunch(function, (1, 1, 1), (64, 1, 1), b"", 0, [])
        assert started.run() is None
        assert (started.races(), started.races_left_out) == ([], 0)


def test_equal_ends_of_branches_keep_their_lines() -> None:
    # The compiler would make one store of the stores in lines that end alike, and one line would be told for all.
    body = """
    __shared__ float s[64];
    switch (t % 4) {
        case 0: out[t] = x[t + 1];
            s[t] = x[t]; break; // first
        case 1: out[t] = x[t + 2];
            s[t] = x[t]; break; // second
        case 2: out[t] = x[t + 3];
            s[t] = x[t]; break; // third
        default: s[t] = 0;
    }
    out[t] += s[63 - t] + s[(t + 1) % 64];"""
    lines = {line for found in races_of(kernel(body), floats(), floats(), block=64) for line in found.lines}
    assert {line for line in lines if "write" in line} == {
        "write: s[t] = x[t]; break; // first",
        "write: s[t] = x[t]; break; // second",
        "write: s[t] = x[t]; break; // third",
        "write: default: s[t] = 0;",
    }
