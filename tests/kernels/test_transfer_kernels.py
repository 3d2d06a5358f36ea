"""The kernels for the arrays of several devices: the copy of many arrays into one, and the sum over peers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcuda
from support.core import for_tests
from tcuda import _core
from tcuda._cupy.transfer_source import ADDITION, LARGE_PACK, SMALL_PACK, expression

xp = tcuda.xp
DTYPES = ["?", "b", "B", "h", "H", "i", "I", "q", "Q", "e", "f", "d", "F", "D"]
CAPACITIES = _core.pack_capacities


def kernel(kind: int, dtype: Any = None, count: int = 0) -> Any:
    found = expression(kind, dtype, count)
    assert found is not None
    code, name = found
    return xp.RawModule(code=code, options=("-std=c++17",), name_expressions=(name,)).get_function(name)


def by_value(words: Any) -> Any:
    """Return an argument that has the bytes of ``words``: an array of one element of a structured dtype."""
    return words.view([("words", words.dtype, (words.size,))])


def pack(target: Any, arrays: list[Any], offsets: list[int], *, large: bool = False) -> int:
    """Copy ``arrays`` into ``target`` by the kernel, and return the number of launches."""
    entries = [(array.data.ptr, array.nbytes, offset) for array, offset in zip(arrays, offsets, strict=True)]
    tables = for_tests.pack_tables(target.data.ptr, entries, large)
    for table, blocks, threads in tables:
        kernel(LARGE_PACK if large else SMALL_PACK)((blocks,), (threads,), (by_value(np.frombuffer(table, np.uint8)),))
    return len(tables)


def add(out: Any, inputs: list[Any], blocks: int, threads: int) -> None:
    addresses = by_value(np.array([array.data.ptr for array in inputs], np.uint64))
    arguments = np.uint64(out.data.ptr), addresses, np.uint64(out.size)
    kernel(ADDITION, out.dtype, len(inputs))((blocks,), (threads,), arguments)


def random_bytes(size: int) -> Any:
    return np.random.default_rng(size).integers(0, 256, size, np.uint8)


@pytest.mark.parametrize("large", [False, True])
def test_arrays_of_any_size_are_packed(large: bool) -> None:
    sizes = [0, 1, 15, 16, 17, 4096, 16 << 10, (16 << 10) + 1, 100_003, 0]
    values = [random_bytes(size) for size in sizes]
    offsets = [int(place) for place in np.cumsum([0, *((size + 15) // 16 * 16 + 32 for size in sizes)])]
    flat = xp.zeros(offsets[-1], np.uint8)
    assert pack(flat, [xp.asarray(value) for value in values], offsets[:-1], large=large) == 1
    expected = np.zeros(offsets[-1], np.uint8)
    for value, offset in zip(values, offsets, strict=False):
        expected[offset : offset + value.size] = value
    np.testing.assert_array_equal(flat.get(), expected)


@pytest.mark.parametrize("source", range(17))
@pytest.mark.parametrize("target", [0, 1, 2, 4, 8])
def test_arrays_of_any_alignment_are_packed(source: int, target: int) -> None:
    values = random_bytes(10_000)
    array, flat = xp.asarray(values), xp.zeros(10_100, np.uint8)
    pack(flat, [array[source : source + 5001]], [target])
    expected = np.zeros(10_100, np.uint8)
    expected[target : target + 5001] = values[source : source + 5001]
    np.testing.assert_array_equal(flat.get(), expected)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("more", [0, 1])
def test_a_launch_packs_as_many_arrays_as_its_parameters_hold(large: bool, more: int) -> None:
    count = CAPACITIES[large] + more
    values = random_bytes(count * 3)
    array, flat = xp.asarray(values), xp.zeros(count * 16, np.uint8)
    pieces = [array[3 * i : 3 * i + 3] for i in range(count)]
    assert pack(flat, pieces, [16 * i for i in range(count)], large=large) == 1 + more
    np.testing.assert_array_equal(flat.get().reshape(count, 16)[:, :3].ravel(), values)


def test_arrays_beyond_32_bits_get_tables_of_their_own() -> None:
    gib = 1 << 30
    tables = for_tests.pack_tables(1 << 40, [(1 << 20, 5 * gib, 0), (1 << 21, 10, 5 * gib)], False)
    heads = [np.frombuffer(table[:16], [("target", "Q"), ("count", "I"), ("blocks", "I")])[0] for table, *_ in tables]
    assert [(int(head["target"]), int(head["count"])) for head in heads] == [
        (1 << 40, 1),
        ((1 << 40) + 2 * gib, 3),
    ]
    assert sum(blocks for _, blocks, _ in tables) == 5 * gib // (16 << 10) + 1


@pytest.mark.long
@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sum_has_the_bits_of_the_additions_from_the_last_to_the_first(dtype: str, count: int) -> None:
    values = [random_bytes(1003 * 16)[: 1003 * np.dtype(dtype).itemsize] for _ in range(count)]
    rng = np.random.default_rng(count)
    if np.dtype(dtype).kind in "fc":
        values = [(rng.standard_normal(1003) * 100 + 1j * rng.standard_normal(1003)) for _ in range(count)]
        arrays = [value.astype(dtype) if np.dtype(dtype).kind == "c" else value.real.astype(dtype) for value in values]
    elif dtype == "?":
        arrays = [rng.integers(0, 2, 1003).astype(bool) for _ in range(count)]
    else:
        arrays = [np.roll(value, number).view(dtype) for number, value in enumerate(values)]
    expected = arrays[-1]
    for array in reversed(arrays[:-1]):
        expected = array + expected
    out = xp.zeros(1003, dtype)
    add(out, [xp.asarray(array) for array in arrays], 3, 64)
    assert out.get().tobytes() == expected.tobytes()


@pytest.mark.parametrize("size", [1, 3, 4, 5, 127, 1000])
def test_arrays_that_are_not_aligned_to_16_bytes_are_added(size: int) -> None:
    values = np.arange(2 * size + 2, dtype=np.float32)
    array, out = xp.asarray(values), xp.zeros(size + 2, np.float32)
    add(out[1:-1], [array[1 : size + 1], array[size + 1 : 2 * size + 1]], 2, 32)
    np.testing.assert_array_equal(out.get(), [0, *(values[1 : size + 1] + values[size + 1 : 2 * size + 1]), 0])


@pytest.mark.parametrize("dtype", ["S3", ">f4", "M8[s]"])
def test_a_dtype_that_cupy_does_not_add_has_no_kernel(dtype: str) -> None:
    assert expression(ADDITION, np.dtype(dtype), 2) is None
