"""Collectives with plain arguments, which are read in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.device_arrays import on_each, read
from tcuda import nccl, xp
from tcuda.nccl import _communicators, _plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda._backend import Backend

Arrays = list[Any]


def pair(length: int = 4, dtype: str = "float32") -> Arrays:
    return on_each([np.arange(length).astype(dtype), np.arange(length).astype(dtype) + 1])


class Subclass(xp.ndarray):  # type: ignore[misc,name-defined]
    """An array of another type."""


def as_subclass(array: Any) -> Subclass:
    return Subclass(array.shape, array.dtype, array.data)


def test_the_places_of_arrays_are_read_in_one_call(backend: Backend) -> None:
    inputs, outputs = pair(4), tuple(pair(8))
    addresses, targets = (tuple([array.data.ptr for array in arrays]) for arrays in (inputs, outputs))
    places = backend.transfers().places
    assert places(inputs, None) == ((0, 1), np.float32, 4, 4, addresses, addresses)
    assert places(inputs, outputs) == ((0, 1), np.float32, 4, 8, addresses, targets)
    assert places(inputs[::-1], None) == ((1, 0), np.float32, 4, 4, addresses[::-1], addresses[::-1])


NOT_PLAIN: dict[str, Callable[[Arrays], tuple[Any, Any]]] = {
    "array": lambda t: (t[0], None),
    "iterator": lambda t: (iter(t), None),
    "none": lambda t: (None, None),
    "empty": lambda t: ([], None),
    "no array": lambda t: ([t[0], 3], None),
    "host": lambda t: ([t[0], np.zeros(4, "float32")], None),
    "subclass": lambda t: ([as_subclass(t[0]), t[1]], None),
    "sizes": lambda t: ([t[0], t[1][:3]], None),
    "dtypes": lambda t: ([t[0], t[1].view("int32")], None),
    "gaps": lambda t: ([array[::2] for array in t], None),
    "same device": lambda t: ([t[0], t[0]], None),
    "array as outputs": lambda t: (t, t[0]),
    "fewer outputs": lambda t: (t, t[:1]),
    "more outputs": lambda t: (t[:1], t),
    "outputs in another order": lambda t: (t, t[::-1]),
    "dtypes of outputs": lambda t: (t, [array.view("int32") for array in t]),
    "sizes of outputs": lambda t: (t, [t[0], t[1][:3]]),
    "gaps in outputs": lambda t: (t, [array[::2] for array in t]),
    "host output": lambda t: (t, [t[0], np.zeros(4, "float32")]),
}


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_other_arrays_have_no_places(name: str, backend: Backend) -> None:
    assert backend.transfers().places(*NOT_PLAIN[name](pair())) is None


def plain_calls(inputs: Arrays, outputs: Arrays) -> dict[str, Callable[[], bool]]:
    return {
        "all_reduce": lambda: _plain.all_reduce(inputs, None, nccl.SUM),
        "all_reduce into outputs": lambda: _plain.all_reduce(inputs, pair(), 2),
        "reduce": lambda: _plain.reduce(inputs, None, 1, nccl.SUM),
        "reduce into an output": lambda: _plain.reduce(inputs, pair()[1], 1, nccl.SUM),
        "broadcast": lambda: _plain.broadcast(inputs, 1),
        "all_gather": lambda: _plain.all_gather(inputs, outputs),
        "reduce_scatter": lambda: _plain.reduce_scatter(outputs, inputs, nccl.SUM),
    }


@pytest.mark.parametrize("name", plain_calls([], []))
def test_plain_arguments_are_not_checked_a_second_time(name: str) -> None:
    nccl.broadcast(pair())  # makes the communicators
    assert plain_calls(pair(), pair(8))[name]()


OTHER: dict[str, Callable[[Arrays], bool]] = {
    "empty arrays": lambda t: _plain.broadcast([array[:0] for array in t], 0),
    "operation of no kind": lambda t: _plain.all_reduce(t, None, 0.0),
    "truth value as operation": lambda t: _plain.reduce(t, None, 0, True),
    "missing operation": lambda t: _plain.reduce_scatter(t, [array[:2] for array in t], 5),
    "negative root": lambda t: _plain.broadcast(t, -1),
    "missing root": lambda t: _plain.reduce(t, None, 2, 0),
    "root of no kind": lambda t: _plain.broadcast(t, True),
    "size of outputs": lambda t: _plain.all_reduce(t, pair(3), 0),
    "size of gathered outputs": lambda t: _plain.all_gather(t, pair(7)),
    "size of parts": lambda t: _plain.reduce_scatter(t, pair(3), 0),
    "output of another device": lambda t: _plain.reduce(t, t[0], 1, 0),
    "size of output": lambda t: _plain.reduce(t, t[0][:3], 0, 0),
    "output of no kind": lambda t: _plain.reduce(t, 3, 0, 0),
}


@pytest.mark.parametrize("name", OTHER)
def test_other_arguments_are_left_to_the_full_checks(name: str) -> None:
    arrays = pair()
    nccl.broadcast(pair())  # makes the communicators
    assert not OTHER[name](arrays)
    assert [got.tolist() for got in read(arrays)] == [[0, 1, 2, 3], [1, 2, 3, 4]]


def test_new_communicators_are_left_to_the_full_checks() -> None:
    arrays = pair()
    _communicators.cliques.clear()
    assert not _plain.broadcast(arrays, 0)
    assert not _communicators.cliques
    nccl.broadcast(arrays)
    assert _plain.broadcast(arrays, 0)


def test_an_array_of_a_subclass_takes_part() -> None:
    arrays = pair()
    nccl.all_reduce([as_subclass(array) for array in arrays])
    assert [got.tolist() for got in read(arrays)] == [[1, 3, 5, 7]] * 2


def test_reduce_writes_only_to_the_output_of_the_root() -> None:
    arrays, [_, output] = pair(), pair()
    nccl.reduce(arrays, output, root=1)
    assert [got.tolist() for got in read([*arrays, output])] == [[0, 1, 2, 3], [1, 2, 3, 4], [1, 3, 5, 7]]
