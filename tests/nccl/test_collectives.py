"""The results of collectives, compared with NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tcuda
from support.device_arrays import on_each, read
from support.examples import examples
from tcuda import nccl

if TYPE_CHECKING:
    from support.fixture_types import Changes, OutputOf

INTEGERS = ["int8", "uint8", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
MOVED = [*INTEGERS, *FLOATS, *COMPLEX, "bool", "int16", "uint16"]
SUM, PROD, MAX, MIN, AVG = range(5)
REDUCTIONS: dict[int, Any] = {SUM: np.add.reduce, PROD: np.multiply.reduce, MAX: np.max, MIN: np.min}


def hosts(dtype: str, count: int, length: int) -> list[Any]:
    """Return small integers of ``dtype``, whose sums and products have no rounding error; each array has others."""
    base = np.arange(length) % 5
    return [((base + place) % 3 + place % 2).astype(dtype) for place in range(count)]


counts = st.integers(2, 8).map(lambda most: min(most, tcuda.device_count()))
lengths = st.sampled_from([0, 1, 3, 64, 1000])


@settings(deadline=None, max_examples=examples(30))
@given(st.sampled_from([*INTEGERS, *FLOATS]), st.sampled_from(list(REDUCTIONS)), counts, lengths)
def test_all_reduce_gives_every_device_the_reduction(dtype: str, op: int, count: int, length: int) -> None:
    given_ = hosts(dtype, count, length)
    arrays = on_each(given_)
    nccl.all_reduce(arrays, op=op)
    expected = REDUCTIONS[op](np.stack(given_), axis=0).astype(dtype)
    for got in read(arrays):
        np.testing.assert_array_equal(got, expected, strict=True)


@settings(deadline=None, max_examples=examples(40))
@given(st.sampled_from(FLOATS), counts, st.randoms(use_true_random=False))
def test_sums_of_any_numbers_are_right_up_to_rounding(dtype: str, count: int, random: Any) -> None:
    given_ = [np.array([random.uniform(-1, 1) for _ in range(50)], dtype) for _ in range(count)]
    summed, averaged = on_each(given_), on_each(given_)
    nccl.all_reduce(summed)
    nccl.all_reduce(averaged, op=AVG)
    tolerance = {"float16": 1e-2, "float32": 1e-5, "float64": 1e-12}[dtype]
    exact = np.stack(given_).astype("float64").sum(axis=0)
    for got in read(summed):
        np.testing.assert_allclose(got, exact, tolerance, tolerance)
    for got in read(averaged):
        np.testing.assert_allclose(got, exact / count, tolerance, tolerance)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_sums_of_integers_wrap_around(dtype: str) -> None:
    most = np.iinfo(dtype).max
    arrays = on_each([np.array([most], dtype), np.array([1], dtype)])
    nccl.all_reduce(arrays)
    assert [int(got[0]) for got in read(arrays)] == [np.iinfo(dtype).min] * 2


def test_the_average_of_integers_is_rounded_towards_zero() -> None:
    arrays = on_each([np.array([3, -3, 4], "int32"), np.array([0, 0, 2], "int32")])
    nccl.all_reduce(arrays, op=AVG)
    assert [got.tolist() for got in read(arrays)] == [[1, -1, 3]] * 2


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("op", [SUM, AVG])
def test_complex_arrays_are_summed_and_averaged(dtype: str, op: int) -> None:
    given_ = [np.array([1 + 2j, -4j], dtype), np.array([3 - 1j, 2 + 2j], dtype)]
    arrays = on_each(given_)
    nccl.all_reduce(arrays, op=op)
    for got in read(arrays):
        np.testing.assert_array_equal(got, sum(given_) / (2 if op == AVG else 1), strict=True)


@pytest.mark.parametrize(("op", "expected"), [(SUM, [0, 1, 1]), (PROD, [0, 0, 1]), (MAX, [0, 1, 1]), (MIN, [0, 0, 1])])
def test_truth_values_stay_truth_values(op: int, expected: list[int]) -> None:
    arrays = on_each([np.array([0, 0, 1], bool), np.array([0, 1, 1], bool)])
    nccl.all_reduce(arrays, op=op)
    assert [got.view("uint8").tolist() for got in read(arrays)] == [expected] * 2


def test_outputs_get_the_result_and_inputs_stay_as_they_are() -> None:
    given_ = hosts("float32", 2, 10)
    inputs, outputs = on_each(given_), on_each(np.zeros((2, 10), "float32"))
    assert nccl.all_reduce(inputs, outputs) is None  # type: ignore[func-returns-value]
    assert all((got == sum(given_)).all() for got in read(outputs))
    assert all((got == was).all() for got, was in zip(read(inputs), given_, strict=True))


@settings(deadline=None, max_examples=examples(40))
@given(st.sampled_from([*INTEGERS, *FLOATS]), counts, lengths, st.data())
def test_reduce_gives_only_the_root_the_reduction(dtype: str, count: int, length: int, data: st.DataObject) -> None:
    root = data.draw(st.integers(0, count - 1))
    given_ = hosts(dtype, count, length)
    arrays = on_each(given_)
    nccl.reduce(arrays, root=root)
    for place, got in enumerate(read(arrays)):
        expected = np.add.reduce(given_).astype(dtype) if place == root else given_[place]
        np.testing.assert_array_equal(got, expected)


def test_reduce_writes_to_the_output() -> None:
    given_ = hosts("float32", 2, 10)
    arrays = on_each(given_)
    [output] = on_each([np.zeros(10, "float32")], [1])
    nccl.reduce(arrays, output, root=1)
    assert (read([output])[0] == sum(given_)).all()
    assert all((got == was).all() for got, was in zip(read(arrays), given_, strict=True))


@settings(deadline=None, max_examples=examples(40))
@given(st.sampled_from(MOVED), counts, lengths, st.data())
def test_broadcast_copies_the_array_of_the_root(dtype: str, count: int, length: int, data: st.DataObject) -> None:
    root = data.draw(st.integers(0, count - 1))
    given_ = hosts(dtype, count, length)
    arrays = on_each(given_)
    nccl.broadcast(arrays, root)
    for got in read(arrays):
        np.testing.assert_array_equal(got, given_[root], strict=True)


@settings(deadline=None, max_examples=examples(40))
@given(st.sampled_from(MOVED), counts, lengths)
def test_all_gather_puts_the_arrays_one_after_the_other(dtype: str, count: int, length: int) -> None:
    given_ = hosts(dtype, count, length)
    outputs = on_each(np.zeros((count, count * length), dtype))
    nccl.all_gather(on_each(given_), outputs)
    for got in read(outputs):
        np.testing.assert_array_equal(got, np.concatenate(given_), strict=True)


@settings(deadline=None, max_examples=examples(40))
@given(st.sampled_from([*INTEGERS, *FLOATS, *COMPLEX]), counts, lengths)
def test_reduce_scatter_gives_each_device_its_part(dtype: str, count: int, length: int) -> None:
    given_ = hosts(dtype, count, length * count)
    outputs = on_each(np.zeros((count, length), dtype))
    nccl.reduce_scatter(on_each(given_), outputs)
    expected = np.add.reduce(given_).astype(dtype)
    np.testing.assert_array_equal(np.concatenate(read(outputs)), expected)


def test_arrays_may_have_any_order_of_devices_and_any_shape() -> None:
    given_ = [np.arange(6.0).reshape(2, 3), np.arange(6.0)]
    arrays = on_each(given_, [1, 0])
    nccl.all_reduce(arrays)
    first, second = read(arrays)
    assert first.tolist() == [[0, 2, 4], [6, 8, 10]]
    assert second.tolist() == [0, 2, 4, 6, 8, 10]


def test_one_device_is_a_clique_too() -> None:
    arrays = on_each([np.arange(4.0)], [1])
    nccl.all_reduce(arrays)
    nccl.broadcast(arrays)
    assert read(arrays)[0].tolist() == [0, 1, 2, 3]


def test_inputs_may_be_any_collection() -> None:
    arrays = on_each(hosts("float32", 2, 4))
    nccl.all_reduce(tuple(arrays))
    nccl.all_reduce(dict(enumerate(arrays)).values())
    assert (read(arrays)[0] == 2 * sum(hosts("float32", 2, 4))).all()


def test_a_view_in_the_middle_of_an_array_is_reduced_alone() -> None:
    wholes = on_each([np.ones(9), np.ones(9)])
    nccl.all_reduce([whole[3:6] for whole in wholes])
    assert [got.tolist() for got in read(wholes)] == [[1, 1, 1, 2, 2, 2, 1, 1, 1]] * 2


def test_a_call_allocates_nothing_on_a_device(changes: Changes) -> None:
    arrays = on_each(hosts("float32", 2, 1000))
    nccl.all_reduce(arrays)
    with changes(0) as first, changes(1) as second:
        nccl.all_reduce(arrays)
        nccl.broadcast(arrays, 1)
        nccl.reduce(arrays)
    assert (first, second) == ({}, {})


@pytest.mark.emulated
def test_eight_devices_work_together(output_of: OutputOf) -> None:
    code = """
import tcuda
from tcuda import nccl, xp

inputs, outputs = [], []
for device in range(8):
    with tcuda.device(device):
        inputs.append(xp.arange(16.0) + device)
        outputs.append(xp.zeros(2))
nccl.reduce_scatter(inputs, outputs)
nccl.all_gather(outputs, inputs)
print(inputs[7].get().tolist() == [8.0 * x + 28 for x in range(16)])
"""
    assert output_of(code, TCUDA_RUNTIME="emulated", TCUDA_EMULATED_DEVICES="8") == "True"
