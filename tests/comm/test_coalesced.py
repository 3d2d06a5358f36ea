"""``tcuda.comm.broadcast_coalesced`` and ``tcuda.comm.reduce_add_coalesced``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.placed_arrays import on, places
from support.statuses import status_of
from tcuda._base.statuses import Status
from tcuda.comm import broadcast_coalesced, reduce_add, reduce_add_coalesced

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.skipif(tcuda.device_count() < 2, reason="needs two devices"),
    pytest.mark.usefixtures("memory_comes_back"),
]
BUFFER_SIZES = [0, 1, 64, 100, 10485760, 1 << 70]


def many() -> list[np.ndarray[Any, Any]]:
    """Return arrays of several dtypes, shapes and layouts."""
    return [
        np.arange(10, dtype="f"),
        np.arange(12, dtype="f").reshape(3, 4, order="F"),
        np.zeros((0, 3), "h"),
        np.array(7, "q"),
        np.arange(3) * 1j,
        np.array([True, False, True]),
        np.arange(40, dtype="f").reshape(5, 8),
    ]


@pytest.mark.parametrize("buffer_size", BUFFER_SIZES)
def test_every_device_gets_every_array(buffer_size: int) -> None:
    values = many()
    arrays = [on(1, each) for each in values]
    own, copies = broadcast_coalesced(arrays, [1, 0], buffer_size)
    assert [mine is array for mine, array in zip(own, arrays, strict=True)] == [True] * len(values)
    for copy, each in zip(copies, values, strict=True):
        assert copy.device.id == 0
        assert copy.flags.c_contiguous
        np.testing.assert_array_equal(copy.get(), each, strict=True)


def test_views_are_copied() -> None:
    values = np.arange(24).reshape(4, 6)
    array = on(0, values)
    _, copies = broadcast_coalesced([array[::-1], array[:, 1], array.T], [0, 1])
    for copy, view in zip(copies, (values[::-1], values[:, 1], values.T), strict=True):
        np.testing.assert_array_equal(copy.get(), view)


def test_a_device_may_occur_twice() -> None:
    values = many()
    lists = broadcast_coalesced([on(0, each) for each in values], [0, 1, 0, 1])
    assert [set(places(each)) for each in lists] == [{0}, {1}, {0}, {1}]
    for copies in lists:
        for copy, each in zip(copies, values, strict=True):
            np.testing.assert_array_equal(copy.get(), each)


def test_arrays_of_one_buffer_share_its_memory() -> None:
    arrays = [on(0, np.zeros(4, "f")) for _ in range(3)]
    _, shared = broadcast_coalesced(arrays, [0, 1])
    assert np.diff([each.data.ptr for each in shared]).tolist() == [16, 16]


def test_no_arrays_are_copied() -> None:
    assert broadcast_coalesced([], [0, 1]) == [[], []]


def test_one_device_has_the_arrays_already() -> None:
    array = on(1, np.ones(3))
    ((own,),) = broadcast_coalesced([array], [1], 0)
    assert own is array


def refusal(function: Callable[..., Any], *args: Any) -> str:
    with pytest.raises((RuntimeError, TypeError, ValueError, AssertionError)) as raised:
        function(*args)
    return f"{type(raised.value).__name__}: {raised.value}"


@pytest.mark.parametrize("other", [lambda: np.ones(3), lambda: on(1, np.ones(3))])
def test_all_arrays_are_on_the_first_device(other: Callable[[], Any]) -> None:
    expected = "RuntimeError: All tensors must be on devices[0]: 0"
    assert refusal(broadcast_coalesced, [on(0, np.ones(3)), other()], [0, 1]) == expected


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ([], "RuntimeError: Expected at least one device to broadcast to"),
        ([0, "cpu"], "ValueError: Expected a non cpu device, but got: cpu"),
        ([0, -1], "RuntimeError: Expected non-negative device index, but got -1"),
        ([0, 99], "AcceleratorError: CUDA error: invalid device ordinal"),
    ],
)
def test_other_devices_are_refused(devices: Any, expected: str) -> None:
    assert refusal(broadcast_coalesced, [on(0, np.ones(3))], devices).startswith(expected)


@pytest.mark.parametrize("size", [-1, 1.5, "x", None])
def test_other_buffer_sizes_are_refused(size: Any) -> None:
    array = on(0, np.ones(3))
    assert "buffer_size must be a number of bytes" in refusal(broadcast_coalesced, [array], [0, 1], size)
    assert "buffer_size must be a number of bytes" in refusal(reduce_add_coalesced, [[array]], 0, size)


@pytest.mark.parametrize("buffer_size", BUFFER_SIZES)
@pytest.mark.parametrize("destination", [0, 1])
def test_sums_are_those_of_single_arrays(destination: int, buffer_size: int) -> None:
    values = many()
    inputs = [[on(place % 2, each) for each in values] for place in range(3)]
    sums = reduce_add_coalesced(inputs, destination, buffer_size)
    assert set(places(sums)) == {destination}
    for total, column in zip(sums, zip(*inputs, strict=True), strict=True):
        single = reduce_add(column, destination)
        np.testing.assert_array_equal(total.get(), single.get(), strict=True)


def test_sums_of_views() -> None:
    values = np.arange(24.0).reshape(4, 6)
    inputs = [[array[::-1], array[:, 1], array.T] for array in (on(0, values), on(1, values))]
    for total, view in zip(reduce_add_coalesced(inputs, 1), (values[::-1], values[:, 1], values.T), strict=True):
        np.testing.assert_array_equal(total.get(), 2 * view)


def test_the_sum_of_one_sequence_is_the_sequence() -> None:
    arrays = [on(0, np.ones(3)), on(0, np.ones(4))]
    assert [total is array for total, array in zip(reduce_add_coalesced([arrays], 0), arrays, strict=True)] == [
        True
    ] * 2


@pytest.mark.parametrize("inputs", [[], [[], []]])
def test_no_arrays_have_no_sums(inputs: Any) -> None:
    assert reduce_add_coalesced(inputs, 0) == ()


def test_the_arrays_of_a_sequence_may_be_on_several_devices() -> None:
    rows = [[on(0, np.ones(3)), on(1, np.ones(4))], [on(1, np.ones(3)), on(0, np.ones(4))]]
    assert [total.tolist() for total in reduce_add_coalesced(rows, 1)] == [[2] * 3, [2] * 4]


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        (
            lambda a, b: [[a, a], [b]],
            "ValueError: zip() argument 2 is shorter than argument 1",
        ),
        (lambda a, b: [[a], [b[:5]]], "ValueError: input 1 has invalid size: got 5, but expected 10"),
        (
            lambda a, b: [[np.ones(10)], [a]],
            "AssertionError: reduce_add expects all inputs to be on GPUs, but input 0 is on CPU",
        ),
        (lambda a, b: [[b], [b]], "RuntimeError: reduce_add expects destination to be on the same GPU with one of"),
        (lambda a, b: [[a], [b.view("q")]], "RuntimeError: all inputs and outputs must be of the same Tensor dtype"),
        (lambda a, b: [[a], [5]], "TypeError: inputs[1] must be an array of "),
    ],
)
def test_other_inputs_are_refused(inputs: Any, expected: str) -> None:
    given = inputs(on(0, np.ones(10)), on(1, np.ones(10)))
    assert refusal(reduce_add_coalesced, given, 0).startswith(expected)


def test_copies_that_would_invalidate_a_capture_are_refused() -> None:
    arrays, graph = [on(0, np.zeros(100)), on(0, np.zeros(3))], tcuda.CUDAGraph()
    with tcuda.graph(graph):
        arrays[0] += 1
        status = status_of(lambda: broadcast_coalesced(arrays, [0, 1]))
    assert status == Status.STREAM_CAPTURE_ISOLATION
    graph.replay()
    assert arrays[0].tolist() == [1] * 100
