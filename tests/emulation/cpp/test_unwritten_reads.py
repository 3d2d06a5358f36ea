"""Launches on the processor find reads of bytes that nothing has written, and change the marks of bytes."""

from __future__ import annotations

import functools
import random
import struct

import numpy as np
import pytest

from tcuda._core import EmulatedLaunch, EmulatedModule
from tcuda.emulation.rtc import compiler
from tcuda.emulation.rtc.build import build

SOURCE = r"""
extern "C" __global__ void touch(char *x, const int *steps, int n, int *sum) {
    for (int i = 0; i < n; ++i) {
        char *place = x + steps[3 * i];
        const bool write = steps[3 * i + 2];
        if (steps[3 * i + 1] == 1) {
            if (write) *place = 1;
            else *sum += *place;
        } else {
            if (write) *(int *)place = 1;
            else *sum += *(int *)place;
        }
    }
}
extern "C" __global__ void shared(int *sum, int missing) {
    extern __shared__ int tile[];
    if (threadIdx.x != missing || blockIdx.x == 0) tile[threadIdx.x] = 1;
    __syncthreads();
    *sum += tile[threadIdx.x];
}
"""

try:
    compiler.find()
except RuntimeError as error:
    pytestmark = pytest.mark.skip(reason=str(error))

SIZE = 3 << 14


@functools.cache
def module() -> EmulatedModule:
    return EmulatedModule(build(SOURCE, recorded=True)[0])


def made(
    name: str,
    args: list[np.ndarray | int],
    marks: list[tuple[int, int, int]],
    *,
    grid: int = 1,
    threads: int = 1,
    strict: bool = False,
) -> EmulatedLaunch:
    function = module().function(name)
    assert function is not None
    packed = bytearray(function.argument_bytes)
    for (_, size, offset), arg in zip(function.parameters, args, strict=True):
        number = arg if isinstance(arg, int) else arg.ctypes.data
        packed[offset : offset + size] = struct.pack("Q" if size == 8 else "i", number)
    ranges = [(arg.ctypes.data, arg.ctypes.data + arg.nbytes) for arg in args if isinstance(arg, np.ndarray)]
    launch = EmulatedLaunch(
        function,
        (grid, 1, 1),
        (threads, 1, 1),
        bytes(packed),
        64,
        ranges,
        marked=True,
        strict_marks=strict,
        marks=marks,
        marks_shared=grid > 1,
    )
    assert launch.run() is None
    return launch


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_random_accesses_give_what_a_list_of_marks_gives(seed: int, strict: bool) -> None:
    chosen = random.Random(seed)
    memory = np.zeros(SIZE, np.uint8)
    begin, size = chosen.randrange(0, 1 << 14), chosen.randrange(1 << 14, 2 << 14)
    marks = np.zeros(size, np.uint8)
    for _ in range(chosen.randrange(40)):
        start = chosen.randrange(size)
        marks[start : start + chosen.randrange(2000)] = 255
    steps = []
    for _ in range(400):
        width = chosen.choice([1, 4])
        steps.append((chosen.randrange(SIZE - 4) // width * width, width, chosen.random() < 0.5))
    written = np.ones(SIZE, bool)
    written[begin : begin + size] = marks == 255
    before = written.copy()
    found = []
    base = memory.ctypes.data
    for place, width, write in steps:
        used = written[place : place + width]
        if not write and not (used.all() if strict else used.any()):
            found.append((base + place, width))
        written[place : place + width] |= write
    args: list[np.ndarray | int] = [memory, np.asarray(steps, np.int32), len(steps), np.zeros(1, np.int32)]
    launch = made("touch", args, [(base + begin, base + begin + size, marks.ctypes.data)], strict=strict)
    reads = {width: (address, count) for address, width, count, *_ in launch.unwritten_reads}
    expected = {width: [place for place, each in found if each == width] for width in (1, 4)}
    assert reads == {width: (places[0], len(places)) for width, places in expected.items() if places}
    assert launch.keep_marks() == [(base + begin, int((written & ~before).sum()))]
    assert ((marks == 255) == written[begin : begin + size]).all()


def test_each_block_of_threads_begins_without_shared_memory() -> None:
    total = np.zeros(1, np.int32)
    assert made("shared", [total, -1], [], grid=3, threads=8).unwritten_reads == []
    (read,) = made("shared", [total, 5], [], grid=3, threads=8).unwritten_reads
    assert read[1:5] == (4, 2, (5, 0, 0), (1, 0, 0))


def test_marks_may_come_while_the_launch_waits_for_memory() -> None:
    memory, hidden, total = np.zeros(8, np.uint8), np.zeros(8, np.uint8), np.zeros(1, np.int32)
    marks = np.full(8, 255, np.uint8)
    marks[5] = 0
    function = module().function("touch")
    assert function is not None
    steps = np.asarray([0, 1, 0, hidden.ctypes.data - memory.ctypes.data + 5, 1, 0])
    if abs(steps).max() >= 1 << 31:
        pytest.skip("the arrays are too far from each other")
    steps = steps.astype(np.int32)
    packed = bytearray(function.argument_bytes)
    for (_, size, offset), value in zip(
        function.parameters, (memory.ctypes.data, steps.ctypes.data, 2, total.ctypes.data), strict=True
    ):
        packed[offset : offset + size] = struct.pack("Q" if size == 8 else "i", value)
    ranges = [(each.ctypes.data, each.ctypes.data + each.nbytes) for each in (memory, steps, total)]
    launch = EmulatedLaunch(function, (1, 1, 1), (1, 1, 1), bytes(packed), 0, ranges, marked=True)
    asked = launch.run()
    assert asked is not None
    assert asked[:2] == ("access", hidden.ctypes.data + 5)
    begin, end = hidden.ctypes.data, hidden.ctypes.data + 8
    launch.mark(begin, end, marks.ctypes.data)
    launch.allow(begin, end)
    assert launch.run() is None
    assert [read[:3] for read in launch.unwritten_reads] == [(begin + 5, 1, 1)]
