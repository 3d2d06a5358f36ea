"""A race detector is told of the elements that indices and masks select, and of no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.race_recorder import BOTH, READ, WRITE, RaceRecorder, span, whole
from tcuda.emulation import xp
from tcuda.emulation.work import selected_elements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcuda.emulation.runtime import EmulatedRuntime

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]

_ROWS, _COLUMNS = 6, 8
_MASK = np.random.default_rng(5).random((_ROWS, _COLUMNS)) < 0.4


@pytest.fixture
def recorder(runtime: EmulatedRuntime) -> Iterator[RaceRecorder]:
    """A recorder that watches until the test ends."""
    made = RaceRecorder()
    runtime.watchRaces(made)  # type: ignore[arg-type]
    made.take()
    yield made
    runtime.watchRaces(None)


def accesses(recorder: RaceRecorder, function: Callable[[], Any]) -> list[Any]:
    """Return the accesses of the last operation of ``function``; the others make its arguments."""
    return _operations(recorder, function)[-1][1]


def places(found: list[Any], kind: int, array: Any) -> set[int]:
    """Return the elements of the contiguous ``array`` that are accessed, by their numbers."""
    covered: set[int] = set()
    for address, itemsize, shape, strides, of_kind, *_ in found:
        if of_kind == kind:
            starts = np.full((), address - array.data.ptr)
            for length, stride in zip(shape, strides, strict=True):
                starts = starts[..., None] + np.arange(length) * stride
            covered.update((starts[..., None] + np.arange(itemsize)).ravel().tolist())
    inside = {byte for byte in covered if 0 <= byte < array.nbytes}
    used = {byte // array.itemsize for byte in inside}
    assert len(inside) == len(used) * array.itemsize, "only whole elements are accessed"
    return used


def numbers() -> np.ndarray[Any, Any]:
    """Return the number of each element of an array of :data:`_ROWS` rows."""
    return np.arange(_ROWS * _COLUMNS).reshape(_ROWS, _COLUMNS)


def as_set(array: Any) -> set[int]:
    """Return the items of ``array``."""
    return set(np.asarray(array).ravel().tolist())


# Indices

_INDICES = {
    "list": [1, 4],
    "repeated": [3, 3, 0],
    "negative": [-1, -3],
    "columns": (slice(None), [0, 7, 2]),
    "pairs": ([0, 2, 5], [7, 1, 0]),
    "mask": _MASK,
    "rows of a mask": _MASK[:, 0],
    "slice and array": (slice(None, None, -2), [6, 1]),
    "new axis": (None, [2, 5]),
    "nothing": np.zeros(0, int),
    "nothing, and a number beyond an axis": (np.zeros((0, 1), int), [99]),
}


@pytest.mark.parametrize("name", _INDICES)
def test_reading_at_an_index(recorder: RaceRecorder, name: str) -> None:
    x, index = xp.ones((_ROWS, _COLUMNS), "f"), _INDICES[name]
    on_device = tuple(map(_on_device, index)) if isinstance(index, tuple) else _on_device(index)
    found = accesses(recorder, lambda: x[on_device])
    assert places(found, READ, x) == as_set(numbers()[index])


@pytest.mark.parametrize("name", _INDICES)
def test_writing_at_an_index(recorder: RaceRecorder, name: str) -> None:
    x, index = xp.ones((_ROWS, _COLUMNS), "f"), _INDICES[name]
    on_device = tuple(map(_on_device, index)) if isinstance(index, tuple) else _on_device(index)
    value = xp.zeros((), "f")
    found = accesses(recorder, lambda: x.__setitem__(on_device, value))
    assert places(found, WRITE, x) == as_set(numbers()[index])
    assert places(found, READ, x) == set()
    assert places(found, READ, value) == {0}


def _on_device(item: Any) -> Any:
    return xp.asarray(item) if isinstance(item, (list, np.ndarray)) else item


def test_an_index_of_a_view_selects_elements_of_the_memory(recorder: RaceRecorder) -> None:
    x, index = xp.ones((_ROWS, _COLUMNS), "h"), xp.asarray([0, 2])
    found = accesses(recorder, lambda: x[::2, ::-1].T[index])
    assert places(found, READ, x) == as_set(numbers()[::2, ::-1].T[[0, 2]])


def test_an_index_is_read(recorder: RaceRecorder) -> None:
    x, index = xp.ones(9), xp.asarray([4])
    assert whole(index, READ, "index[0]") in accesses(recorder, lambda: x[index])


def test_an_array_that_is_its_own_index_is_read_as_a_whole(recorder: RaceRecorder) -> None:
    x = xp.asarray([0, 1, 1, 0])
    assert places(accesses(recorder, lambda: x[x]), READ, x) == {0, 1, 2, 3}


def test_changes_at_an_index_read_and_write(recorder: RaceRecorder) -> None:
    x, index = xp.zeros(10), xp.asarray([2, 2, 7])
    assert places(accesses(recorder, lambda: xp.add.at(x, index, 1)), BOTH, x) == {2, 7}


def test_equal_distances_are_one_region(recorder: RaceRecorder) -> None:
    x, index = xp.zeros(1000, "f"), xp.arange(5, 1000, 5)
    found = accesses(recorder, lambda: x.__setitem__(index, xp.float32(1)))
    assert (x.data.ptr + 20, 4, (199,), (20,), WRITE, "a") in found


def test_neighbours_are_one_range(recorder: RaceRecorder) -> None:
    x, index = xp.zeros(1000, "f"), xp.arange(99, 9, -1)
    assert span(x.data.ptr + 40, 360, READ, "a") in accesses(recorder, lambda: x[index])


def test_too_many_elements_are_only_possible(recorder: RaceRecorder) -> None:
    chosen = np.random.default_rng(2).permutation(100_000)[:10_000]
    x, index = xp.zeros(100_000, "f"), xp.asarray(chosen)
    found = [access for access in accesses(recorder, lambda: x[index]) if access[5] == "a"]
    assert 1 < len(found) < 100
    assert all(access[6:] == ("possible",) for access in found)
    assert places(found, READ, x) >= set(chosen.tolist())


# Functions

_CHOSEN = [0, 2, 5]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: xp.take(x, xp.asarray(_CHOSEN), axis=1), lambda n: n[:, _CHOSEN]),
        (lambda x: x.take(xp.asarray([40, -1])), lambda n: n.ravel()[[40, -1]]),
        (lambda x: xp.take_along_axis(x, xp.asarray([[3]] * _ROWS), 1), lambda n: n[:, 3]),
        (lambda x: xp.compress(xp.asarray([True, False, True]), x, axis=0), lambda n: n[[0, 2]]),
        (lambda x: xp.extract(xp.asarray(_MASK), x), lambda n: n[_MASK]),
        (lambda x: xp.delete(x, xp.asarray([1, 3]), axis=0), lambda n: n[[0, 2, 4, 5]]),
    ],
)
def test_functions_that_select(
    recorder: RaceRecorder, call: Callable[[Any], Any], expected: Callable[[Any], Any]
) -> None:
    x = xp.ones((_ROWS, _COLUMNS))
    found = [access for _, operation in _operations(recorder, lambda: call(x)) for access in operation]
    assert places(found, READ, x) == as_set(expected(numbers()))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: xp.put(x, xp.asarray([3, 50]), xp.ones(2), mode="wrap"), lambda n: {3, 2}),
        (lambda x: x.put(xp.asarray([3, 50]), xp.ones(2), mode="clip"), lambda n: {3, 47}),
        (lambda x: xp.put_along_axis(x, xp.asarray([[3]] * _ROWS), xp.ones((_ROWS, 1)), 1), lambda n: n[:, 3]),
        (lambda x: xp.place(x, xp.asarray(_MASK), xp.ones(3)), lambda n: n[_MASK]),
        (lambda x: xp.putmask(x, xp.asarray(_MASK), xp.ones((_ROWS, _COLUMNS))), lambda n: n[_MASK]),
        (lambda x: xp.copyto(x, xp.ones(_COLUMNS), where=xp.asarray(_MASK)), lambda n: n[_MASK]),
        (lambda x: xp.fill_diagonal(x, 3), np.diagonal),
        (lambda x: xp.put(x, xp.asarray([3]), xp.ones(0)), lambda n: ()),
        (lambda x: xp.put(x, xp.asarray([999]), xp.ones(0), mode="raise"), lambda n: ()),
        (lambda x: xp.putmask(x, xp.asarray(_MASK), xp.ones(0)), lambda n: ()),
        (lambda x: xp.copyto(x, xp.ones((1, 1, _COLUMNS)), where=xp.asarray(_MASK)), lambda n: n[_MASK]),
    ],
)
def test_functions_that_write(
    recorder: RaceRecorder, call: Callable[[Any], Any], expected: Callable[[Any], Any]
) -> None:
    x = xp.ones((_ROWS, _COLUMNS))
    found = [access for _, operation in _operations(recorder, lambda: call(x)) for access in operation]
    assert places(found, WRITE, x) == as_set(list(expected(numbers())))
    assert places(found, READ, x) == places(found, BOTH, x) == set()


def _operations(recorder: RaceRecorder, function: Callable[[], Any]) -> list[tuple[str, list[Any]]]:
    recorder.take()
    function()
    return recorder.operations()


def test_masks_select_from_the_source_as_well(recorder: RaceRecorder) -> None:
    mask, x, values = xp.asarray(_MASK), xp.ones((_ROWS, _COLUMNS)), xp.ones((_ROWS, _COLUMNS))
    expected = as_set(numbers()[_MASK])
    assert places(accesses(recorder, lambda: xp.putmask(x, mask, values)), READ, values) == expected
    assert places(accesses(recorder, lambda: xp.copyto(x, values, where=mask)), READ, values) == expected
    few = xp.ones(20)
    assert places(accesses(recorder, lambda: xp.place(x, mask, few)), READ, few) == set(range(min(20, len(expected))))


def test_choose_reads_what_is_chosen(recorder: RaceRecorder) -> None:
    choices = xp.ones((2, 4))
    found = accesses(recorder, lambda: xp.choose(xp.asarray([0, 1, 1, 0]), choices))
    assert places(found, READ, choices) == {0, 5, 6, 3}


def test_a_wrong_index_raises_the_error_of_the_function(recorder: RaceRecorder) -> None:
    x, index = xp.ones(4), xp.asarray([7])
    with pytest.raises(IndexError, match="out of bounds"):
        x[index]
    with pytest.raises(IndexError, match="out of bounds"):
        x[index] = 1


def test_every_launch_of_a_graph_selects_anew(recorder: RaceRecorder) -> None:
    x, index, value = xp.zeros(100, "f"), xp.zeros(3, "i8"), xp.ones((), "f")
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        x[index] = value
        index += 1  # the accesses are those of the index as the launch finds the index
    written = []
    for first in (10, 50):
        index[...] = xp.arange(first, first + 3)
        recorder.take()
        graph.replay()
        [node] = [call for call in recorder.take() if call[0] == "set_node"]
        written.append(places(node[3], WRITE, x))
    assert written == [{10, 11, 12}, {50, 51, 52}]


def test_work_of_a_graph_keeps_no_memory_alive(recorder: RaceRecorder) -> None:
    x, index = xp.zeros(100, "f"), xp.zeros(3, "i8")
    before = tcuda.memory_allocated()
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        x[index] = 1
    del x, index
    assert tcuda.memory_allocated() < before


ROWS = np.array([3, -6, 0, 3])
INDICES: dict[str, Any] = {
    "a number": 2,
    "a negative number": np.int64(-1),
    "an array": ROWS,
    "an array without axes": np.array(4),
    "an array of two axes": ROWS.reshape(2, 2),
    "an empty array": np.array([], np.int64),
    "unsigned numbers": np.array([1, 5], np.uint8),
    "arrays for both axes": (ROWS, ROWS + 1),
    "an array behind a slice": (slice(4, 1, -2), ROWS),
    "an array before a slice": (ROWS, slice(1, -1, 3)),
    "an array behind an ellipsis": (Ellipsis, np.array([1, 0, -2])),
    "an array behind a new axis": (None, ROWS),
    "arrays around a new axis": (ROWS, None, ROWS),
    "a number and an array": (1, slice(None), np.array([1, -2])),
    "a mask": _MASK,
    "a mask of rows": (_MASK[:, 0], slice(0, 2)),
    "a mask behind an array": (ROWS[:1], _MASK[0]),
    "a true value": (True, ROWS),
    "no result, and a number beyond an axis": (np.zeros((0, 1), np.int64), np.array([99, 0])),
    "a mask of nothing, and a number beyond an axis": (np.zeros(_ROWS, bool), slice(0, 3), np.array([7])),
}


@pytest.mark.parametrize("name", INDICES)
def test_the_addresses_of_an_index_are_those_that_numpy_takes(name: str) -> None:
    host = np.zeros((_ROWS, _COLUMNS, 3), np.float64)[::-1, :, 1:]
    index = INDICES[name]
    addresses = np.array([host[(*place, ...)].__array_interface__["data"][0] for place in np.ndindex(*host.shape)])
    expected = addresses.reshape(host.shape)[index]
    found = selected_elements.of_index(host, index)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("index", [6, np.array([0, -7]), (0, 0, 0, ROWS), _MASK[:2]], ids=str)
def test_an_index_beyond_an_axis_selects_nothing(index: Any) -> None:
    with pytest.raises(IndexError):
        selected_elements.of_index(np.zeros((_ROWS, _COLUMNS, 3)), index)


def test_an_index_looks_at_the_named_elements_only() -> None:
    host = np.broadcast_to(np.zeros(1), (1 << 40, 2))
    found = selected_elements.of_index(host, (np.array([5, -1]), slice(0, 1)))
    assert found.shape == (2, 1)
