"""Laws of the functions over several devices, checked against NumPy with all devices of the process."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tcuda
from support.devices import allocated
from support.examples import examples
from support.placed_arrays import on, places
from tcuda import comm
from tcuda.comm import _reduce, _routes
from tcuda.comm._routes import Way

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

DTYPES = ["?", "b", "B", "h", "i", "I", "q", "e", "f", "d", "F", "D"]
WAYS = [Way("flat"), Way("tree"), Way("chain", 1), Way("chain", 3), Way("chain", 8)]
LAYOUTS: list[Callable[[Any], Any]] = [
    lambda array: array,
    lambda array: array.T,
    lambda array: array[::-1] if array.ndim else array,
    lambda array: array[..., ::2] if array.ndim else array,
    lambda array: array[1:] if array.ndim else array,
]
_settings = settings(max_examples=examples(40), deadline=None)
_devices = st.integers(0, tcuda.device_count() - 1)
_sources = st.one_of(st.none(), _devices)
_shapes = st.lists(st.integers(0, 70), max_size=3).filter(lambda shape: int(np.prod(shape, dtype=int)) < 20_000)
_dtypes = st.sampled_from(DTYPES)
_layouts = st.sampled_from(LAYOUTS)


@contextlib.contextmanager
def routes_of_kind(way: Way) -> Iterator[None]:
    """Let all copies to several devices, and all sums, take routes of one kind."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_routes, "best_way", lambda devices, nbytes: way)
        patched.setattr(_reduce, "best_sum", lambda devices, nbytes: way)
        _routes.route.cache_clear()
        yield
    _routes.route.cache_clear()


def values(shape: Sequence[int], dtype: str, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return random numbers."""
    numbers = np.random.default_rng(seed).normal(0, 50, tuple(shape))
    return np.asarray(numbers > 0 if dtype == "?" else numbers.astype("b").astype(dtype))


@_settings
@given(
    _shapes, _dtypes, _layouts, st.one_of(st.none(), _devices), st.lists(_devices, max_size=9), st.sampled_from(WAYS)
)
def broadcasts(shape: Sequence[int], dtype: str, layout: Any, source: int | None, devices: list[int], way: Way) -> None:
    expected = layout(values(shape, dtype))
    array = expected if source is None else layout(on(source, values(shape, dtype)))
    with routes_of_kind(way):
        made = comm.broadcast(array, devices)
        out = [layout(on(device, np.zeros(shape, dtype))) for device in devices]
        comm.broadcast(array, out=out)
    assert places(made) == devices
    for each in (*made, *out):
        np.testing.assert_array_equal(each.get(), expected, strict=True)


@_settings
@given(st.data(), _shapes.filter(len), _dtypes, _layouts, _sources)
def parts(data: Any, shape: Sequence[int], dtype: str, layout: Any, source: int | None) -> None:
    expected = layout(values(shape, dtype))
    array = expected if source is None else layout(on(source, values(shape, dtype)))
    dim = data.draw(st.integers(-expected.ndim, expected.ndim - 1))
    length = expected.shape[dim]
    marks = sorted(data.draw(st.lists(st.integers(0, length), max_size=8)))
    sizes = [end - begin for begin, end in zip([0, *marks], [*marks, length], strict=True)]
    devices = data.draw(st.lists(_devices, min_size=len(sizes), max_size=len(sizes)))
    split = comm.scatter(array, devices, sizes, dim)
    assert places(split) == devices
    for part, each in zip(split, np.split(expected, marks, dim), strict=True):
        np.testing.assert_array_equal(part.get(), each, strict=True)
    equal = comm.scatter(array, devices, dim=dim)
    size = max(-(-length // len(devices)), 1)
    assert [part.shape[dim] for part in equal] == [min(size, length - b) for b in range(0, length, size)] or not length
    destination = data.draw(st.one_of(_devices, st.just("cpu")))
    for joined in (comm.gather(split, dim, destination), comm.gather(equal, dim, destination)):
        np.testing.assert_array_equal(
            joined if destination == "cpu" else joined.get(), np.ascontiguousarray(expected), strict=True
        )


@_settings
@given(_shapes, _dtypes, _layouts, st.lists(_devices, min_size=1, max_size=8), st.data(), st.sampled_from(WAYS))
def sums(shape: Sequence[int], dtype: str, layout: Any, devices: list[int], data: Any, way: Way) -> None:
    terms = [values(shape, dtype, seed) for seed in range(len(devices))]
    inputs = [layout(on(device, each)) for device, each in zip(devices, terms, strict=True)]
    destination = data.draw(st.sampled_from(devices))
    with routes_of_kind(way):
        total = comm.reduce_add(inputs, destination)
        (coalesced,) = comm.reduce_add_coalesced([[each] for each in inputs], destination)
    assert total.device.id == destination
    root = max(place for place, device in enumerate(devices) if device == destination)
    ordered = [layout(terms[root]), *(layout(each) for place, each in enumerate(terms) if place != root)]
    expected = np.asarray(functools.reduce(lambda right, left: left + right, reversed(ordered)))
    for each in (total, coalesced):
        np.testing.assert_array_equal(each.get(), expected, strict=True)


@_settings
@given(
    st.lists(st.tuples(_shapes, _dtypes, _layouts), max_size=6),
    st.lists(_devices, min_size=1, max_size=8, unique=True),
    st.sampled_from([0, 1, 100, 5000, 10485760]),
    st.sampled_from(WAYS),
)
def many_arrays(kinds: list[Any], devices: list[int], buffer_size: int, way: Way) -> None:
    terms = [values(shape, dtype, seed) for seed, (shape, dtype, _) in enumerate(kinds)]
    expected = [layout(each) for each, (_, _, layout) in zip(terms, kinds, strict=True)]
    rows = [[layout(on(device, each)) for each, (_, _, layout) in zip(terms, kinds, strict=True)] for device in devices]
    with routes_of_kind(way):
        copies = comm.broadcast_coalesced(rows[0], devices, buffer_size)
        totals = comm.reduce_add_coalesced(rows, devices[-1], buffer_size)
    for device, row in zip(devices, copies, strict=True):
        assert places(row) == [device] * len(kinds)
        for each, value in zip(row, expected, strict=True):
            np.testing.assert_array_equal(each.get(), value, strict=True)
    for each, value in zip(totals, expected, strict=True):
        total = np.asarray(functools.reduce(lambda right, left: left + right, [value] * len(devices)))
        np.testing.assert_array_equal(each.get(), total, strict=True)


LAWS: dict[str, Callable[[], None]] = {
    "broadcasts": broadcasts,
    "parts": parts,
    "sums": sums,
    "many arrays": many_arrays,
}


def check_all() -> None:
    """Check all laws, and that no memory is left."""
    before = allocated()
    for law in LAWS.values():
        law()
    assert allocated() == before
