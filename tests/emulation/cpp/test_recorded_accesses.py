"""Launches on the processor note the bytes that a kernel reads and writes, and write them as few regions."""

from __future__ import annotations

import functools
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcuda._core import EmulatedLaunch, EmulatedModule, regions_of_items
from tcuda.emulation.rtc import compiler
from tcuda.emulation.rtc.build import build

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SOURCE = r"""
extern "C" {
__global__ void mixed(char *x, const int *steps, int n) {
    for (int i = 0; i < n; ++i) {
        char *place = x + steps[3 * i];
        int size = steps[3 * i + 1];
        if (steps[3 * i + 2]) memset(place, 1, size);
        else if (memcmp(place, place + 0, size)) *x = 1;
    }
}
__global__ void twice(float *x) { x[threadIdx.x] *= 2; }
__global__ void add(short *x) { x[threadIdx.x] += 1; }
__global__ void slow(int *x, int n) {
    for (int i = 0; i < n; ++i) x[i % 1000 * 2] += threadIdx.x;
}
__global__ void in_turns(int *x) {
    __shared__ int tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x + 64] = __shfl_sync(0xffffffff, tile[63 - threadIdx.x], threadIdx.x % 32);
}
}
"""

try:
    compiler.find()
except RuntimeError as error:
    pytestmark = pytest.mark.skip(reason=str(error))

READ, WRITE = 1, 2
_PAGE = 1 << 14
"""The bytes for which a launch notes accesses in one place."""


@functools.cache
def module(recorded: bool) -> EmulatedModule:
    return EmulatedModule(build(SOURCE, recorded=recorded)[0])


def launched(name: str, *args: Any, threads: int = 1, complete: bool = True, most: int = 1000) -> list[Any]:
    """Return the accesses of a launch."""
    function = module(complete).function(name)
    assert function is not None
    packed = b"".join(
        struct.pack("Q", arg.ctypes.data) if isinstance(arg, np.ndarray) else struct.pack("i", arg) for arg in args
    )
    arrays = [arg for arg in args if isinstance(arg, np.ndarray)]
    ranges = [(array.ctypes.data, array.ctypes.data + array.nbytes) for array in arrays]
    launch = EmulatedLaunch(
        function, (1, 1, 1), (threads, 1, 1), packed, 0, ranges, recorded=True, finds_changes=not complete
    )
    assert launch.run() is None
    assert launch.recorded == sorted(ranges)
    return launch.accesses(sorted({end for pair in ranges for end in pair}), most)


def covered(regions: Iterable[Sequence[Any]]) -> list[int]:
    """Return the bytes of the regions in ascending order, twice if they are in two regions."""
    found: list[int] = []
    for address, itemsize, shape, strides, *_ in regions:
        starts = np.full((), address)
        for length, stride in zip(shape, strides, strict=True):
            starts = starts[..., None] + np.arange(length) * stride
        found += (starts[..., None] + np.arange(itemsize)).ravel().tolist()
    return sorted(found)


def of_kind(accesses: list[Any], kind: int, array: np.ndarray) -> set[int]:
    """Return the bytes of ``array`` that are read or written."""
    found = covered(access for access in accesses if access[4] & kind)
    return {byte - array.ctypes.data for byte in found if 0 <= byte - array.ctypes.data < array.nbytes}


@settings(deadline=None)  # The first call compiles the kernels.
@given(st.lists(st.tuples(st.integers(0, 3 * _PAGE), st.integers(1, 300), st.booleans()), max_size=12), st.data())
def test_every_byte_is_noted_once(steps: list[tuple[int, int, bool]], data: st.DataObject) -> None:
    if data.draw(st.booleans()):  # near the end of a page
        steps = [(address // _PAGE * _PAGE + _PAGE - size // 2, size, write) for address, size, write in steps]
    memory = np.zeros(4 * _PAGE + 600, np.int8)
    x = memory[-memory.ctypes.data % _PAGE :][: 3 * _PAGE + 600]
    steps = [(min(address, 3 * _PAGE), size, write) for address, size, write in steps]
    flat = np.array(steps, np.int32).ravel() if steps else np.zeros(3, np.int32)
    found = launched("mixed", x, flat, len(steps))
    for kind, writes in ((READ, False), (WRITE, True)):
        expected = {
            byte for address, size, write in steps if write == writes for byte in range(address, address + size)
        }
        assert of_kind(found, kind, x) == expected
    for kind in (1, 2, 3):
        bytes_ = covered(access for access in found if access[4] == kind)
        assert len(bytes_) == len(set(bytes_))


def test_accesses_between_waits_of_threads_are_noted() -> None:
    x = np.arange(128, dtype=np.int32)
    found = launched("in_turns", x, threads=64)
    begin = x.ctypes.data
    assert found == [(begin, 1, (256,), (1,), READ, True), (begin + 256, 1, (256,), (1,), WRITE, True)]


def test_interruptions_lose_no_access() -> None:
    x = np.zeros(2000, np.int32)
    found = launched("slow", x, 6_000_000, threads=2)  # takes longer than the interval of the watchdog
    assert found == [(x.ctypes.data, 4, (1000,), (8,), 3, True)]


def test_memory_that_is_allowed_later_is_noted() -> None:
    x = np.zeros(8, np.float32)
    function = module(True).function("twice")
    assert function is not None
    packed = struct.pack("Q", x.ctypes.data)
    launch = EmulatedLaunch(function, (1, 1, 1), (8, 1, 1), packed, 0, [], recorded=True)
    report = launch.run()
    assert report[:4] == ("access", x.ctypes.data, 4, False)
    begin, end = x.ctypes.data, x.ctypes.data + x.nbytes
    launch.allow(begin, end)
    assert launch.run() is None
    assert launch.accesses([begin, end], 10) == [(begin, 1, (32,), (1,), 3, True)]


def test_changes_tell_what_a_kernel_with_the_usual_checks_writes() -> None:
    x = np.arange(1, 9, dtype=np.int16)
    found = launched("add", x, threads=8, complete=False)
    assert of_kind(found, READ, x) == set(range(16))
    assert of_kind(found, WRITE, x) == set(range(0, 16, 2)), "the upper byte of each number stays the same"


def test_changes_are_found_in_each_of_two_arrays_of_one_page() -> None:
    memory = np.ones(1024, np.float32)
    first, second = memory[:8], memory[512:520]
    for x, other in ((first, second), (second, first)):
        found = launched("twice", x, threads=8, complete=False)
        assert {byte // 4 for byte in of_kind(found, WRITE, x)} == set(range(8))
        assert of_kind(found, READ, other) == set()


def test_a_launch_that_notes_nothing_has_no_accesses() -> None:
    x = np.ones(8, np.float32)
    for complete in (False, True):
        function = module(complete).function("twice")
        assert function is not None
        begin, end = x.ctypes.data, x.ctypes.data + x.nbytes
        launch = EmulatedLaunch(function, (1, 1, 1), (8, 1, 1), struct.pack("Q", begin), 0, [(begin, end)])
        assert launch.run() is None
        assert launch.accesses([begin, end], 10) == []
    assert launched("twice", x, threads=8) == [(begin, 1, (32,), (1,), 3, True)]
    assert x.tolist() == [8.0] * 8


# Regions


def regions(places: Iterable[int], itemsize: int, most: int = 1000) -> list[Any]:
    return regions_of_items(np.array(sorted(places), np.int64).tobytes(), itemsize, most)


@given(st.sets(st.integers(1, 400), max_size=80), st.integers(1, 9), st.integers(1, 4))
def test_regions_have_each_byte_of_the_items_once(places: set[int], itemsize: int, scale: int) -> None:
    items = {place * scale for place in places}
    found = regions(items, itemsize)
    assert covered(found) == sorted({byte for item in items for byte in range(item, item + itemsize)})
    assert all(exact for *_, exact in found)


@pytest.mark.long
@given(st.sets(st.integers(1, 100_000), min_size=200, max_size=600), st.integers(1, 8), st.integers(0, 60))
def test_few_ranges_have_all_bytes_of_the_items(places: set[int], itemsize: int, most: int) -> None:
    found = regions(places, itemsize, most)
    bytes_ = covered(found)
    expected = {byte for place in places for byte in range(place, place + itemsize)}
    assert expected <= set(bytes_)
    assert len(bytes_) == len(set(bytes_))
    assert len(found) <= max(most, 64)
    if not all(exact for *_, exact in found):
        assert (bytes_[0], bytes_[-1]) == (min(expected), max(expected))
    else:
        assert set(bytes_) == expected


def test_ranges_leave_the_widest_gaps() -> None:
    near = [base + place * place for base in (10_000, 50_000, 90_000) for place in range(60)]
    ends = [(address, address + shape[0]) for address, _, shape, *_ in regions(near, 1, 20)]
    assert not any(begin < 40_000 < end or begin < 80_000 < end for begin, end in ends)


@pytest.mark.parametrize(
    ("places", "itemsize", "expected"),
    [
        ([], 4, []),
        ([8], 4, [(8, 1, (4,), (1,))]),
        ([8, 12, 16], 4, [(8, 1, (12,), (1,))]),
        ([8, 16, 24], 4, [(8, 4, (3,), (8,))]),
        ([8, 100], 4, [(8, 1, (4,), (1,)), (100, 1, (4,), (1,))]),
        ([1, 3, 11, 13, 21, 23], 1, [(1, 1, (3, 2), (10, 2))]),
        (
            [a + b + c for a in (1, 1001) for b in (0, 100, 200) for c in (0, 10, 20)],
            4,
            [(1, 4, (2, 3, 3), (1000, 100, 10))],
        ),
        ([4, 5, 6, 7, 20, 36, 52], 1, [(4, 1, (4,), (1,)), (20, 1, (3,), (16,))]),
    ],
)
def test_patterns(places: list[int], itemsize: int, expected: list[Any]) -> None:
    assert [region[:4] for region in regions(places, itemsize)] == expected
