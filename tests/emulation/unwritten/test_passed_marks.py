"""The results of functions are unwritten where they depend on unwritten elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from tcuda.sanitizer import UnwrittenMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda.emulation.runtime import EmulatedRuntime

pytestmark = [pytest.mark.emulated, pytest.mark.eager]

HOST = np.random.default_rng(7).uniform(1, 2, (4, 6))
UNWRITTEN = [(0, 1), (2, 3), (2, 5), (3, 0)]

EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda np, x: x + x[:1],
    "sqrt": lambda np, x: np.sqrt(x),
    "where": lambda np, x: np.where(x > 1.5, x, 0 * x),
    "clip": lambda np, x: np.clip(x, 0, 9),
    "astype": lambda np, x: x.astype("f4"),
    "copy of a part": lambda np, x: x[::2, ::-1].copy(),
    "transposed": lambda np, x: np.ascontiguousarray(x.T),
    "concatenate": lambda np, x: np.concatenate([x, np.ones((1, 6)), x]),
    "stack": lambda np, x: np.stack([x, x + 1], axis=1),
    "vstack": lambda np, x: np.vstack([x, x]),
    "tile": lambda np, x: np.tile(x, (2, 1)),
    "roll": lambda np, x: np.roll(x, 1),
    "repeat": lambda np, x: np.repeat(x, 2, axis=0),
    "tril": lambda np, x: np.tril(x),
    "take": lambda np, x: np.take(x, np.asarray([0, 2]), axis=0),
    "index": lambda np, x: x[np.asarray([0, 3, 2]), np.asarray([0, 0, 3])],
    "mask": lambda np, x: x[np.arange(24).reshape(4, 6) % 5 < 2],
    "sum": lambda np, x: x.sum(axis=1),
    "sum with axes": lambda np, x: x.sum(axis=0, keepdims=True),
    "sum of all": lambda np, x: x.sum(),
    "mean": lambda np, x: np.mean(x[:2], axis=0),
    "std": lambda np, x: np.std(x, axis=0),
    "reduce": lambda np, x: np.add.reduce(x),
    "cumsum": lambda np, x: np.cumsum(x, axis=1),
    "flat cumsum": lambda np, x: np.cumsum(x[1:3]),
    "accumulate": lambda np, x: np.add.accumulate(x, axis=0),
    "matmul": lambda np, x: x @ x.T,
    "dot": lambda np, x: np.dot(x, np.ones(6)),
    "outer": lambda np, x: np.outer(x[0], x[1]),
    "einsum": lambda np, x: np.einsum("ij,kj->ik", x, x[1:2]),
    "tensordot": lambda np, x: np.tensordot(x, x, axes=([0], [0])),
    "modf": lambda np, x: np.modf(x * 3)[0],
    "structure": lambda np, x: (x + 1j * x).real.copy(),
}
"""Functions that pass on exactly the elements that matter."""

COARSE: dict[str, Callable[[Any, Any], Any]] = {
    "max": lambda np, x: x.max(axis=1),
    "sort": lambda np, x: np.sort(x, axis=1),
    "argsort": lambda np, x: np.argsort(x, axis=1),
    "median": lambda np, x: np.median(x, axis=1),
    "fft": lambda np, x: np.fft.fft(x),
    "interp": lambda np, x: np.interp(x[0], np.arange(4), x[:, 1]),
    "diff": lambda np, x: np.diff(x, axis=1),
    "trace": lambda np, x: np.trace(x),
    "inverse": lambda np, x: np.linalg.inv(x[:, :4]),
    "fmod": lambda np, x: np.divmod(x, 0.3)[1],
}
"""Functions of which more elements count as unwritten than those that change."""


def marks_of(runtime: EmulatedRuntime, array: Any) -> np.ndarray:
    host = array._host
    unwritten = runtime.contents.unwritten
    assert unwritten is not None
    marks = unwritten.marks((host.ctypes.data, host.itemsize, host.shape, host.strides))
    return np.zeros(host.shape, bool) if marks is None else marks.any(-1)


def half_written(xp: Any) -> Any:
    x = xp.empty(HOST.shape)
    x._host[...] = HOST  # so that the functions compute with the same numbers
    mask = np.ones(HOST.shape, bool)
    for place in UNWRITTEN:
        mask[place] = False
    x[xp.asarray(mask)] = xp.asarray(HOST[mask])
    return x


def changed(function: Callable[[Any, Any], Any]) -> np.ndarray:
    """Return which elements of the result change if an unwritten element has another number."""
    before = np.asarray(function(np, HOST))
    found = np.zeros(before.shape, bool)
    for place in UNWRITTEN:
        for number in (0.1, 1.47, 77.7):
            other = HOST.copy()
            other[place] = number
            found |= np.asarray(function(np, other)) != before
    return found


@pytest.mark.parametrize("name", EXACT)
def test_the_elements_that_depend_on_unwritten_elements_are_unwritten(
    name: str, xp: Any, runtime: EmulatedRuntime, unwritten: Any
) -> None:
    found = marks_of(runtime, EXACT[name](xp, half_written(xp)))
    assert found.tolist() == changed(EXACT[name]).tolist()
    assert found.any()


@pytest.mark.parametrize("name", COARSE)
def test_no_element_that_depends_on_unwritten_elements_counts_as_written(
    name: str, xp: Any, runtime: EmulatedRuntime, unwritten: Any
) -> None:
    found = marks_of(runtime, COARSE[name](xp, half_written(xp)))
    assert (found >= changed(COARSE[name])).all()
    assert found.any()


@pytest.mark.parametrize("name", [*EXACT, *COARSE])
def test_written_arrays_give_written_results(name: str, xp: Any, runtime: EmulatedRuntime, unwritten: Any) -> None:
    result = {**EXACT, **COARSE}[name](xp, xp.asarray(HOST))
    assert not marks_of(runtime, result).any()
    result.get()


def test_assigned_elements_have_the_marks_of_the_value(xp: Any, runtime: EmulatedRuntime, unwritten: Any) -> None:
    x, target = half_written(xp), xp.zeros((4, 6))
    target[1:, :2] = x[1:, :2]
    target[xp.asarray([0, 0]), xp.asarray([4, 5])] = x[0, 1:3]
    expected = np.zeros((4, 6), bool)
    expected[3, 0] = expected[0, 4] = True
    assert marks_of(runtime, target).tolist() == expected.tolist()


@pytest.mark.parametrize(
    "write",
    [
        lambda xp, x: x.__setitem__((xp.zeros((0, 1), int), xp.asarray([99])), 1),
        lambda xp, x: xp.put(x, xp.asarray([2]), xp.zeros(0)),
        lambda xp, x: xp.put(x, xp.asarray([99]), xp.zeros(0), mode="raise"),
        lambda xp, x: xp.putmask(x, xp.ones((4, 6), bool), xp.zeros(0)),
    ],
)
def test_a_write_of_no_elements_ends_no_marks(
    write: Callable[[Any, Any], Any], xp: Any, runtime: EmulatedRuntime, unwritten: Any
) -> None:
    x = xp.empty((4, 6))
    write(xp, x)
    assert marks_of(runtime, x).all()


def test_a_write_ends_the_marks(xp: Any, runtime: EmulatedRuntime, unwritten: Any) -> None:
    x = half_written(xp)
    x.fill(1)
    assert not marks_of(runtime, x).any()
    assert unwritten.open == 0


def test_an_array_that_is_gone_leaves_no_marks(xp: Any, unwritten: Any) -> None:
    x = xp.empty(100)
    view = x[3:]
    del x
    assert unwritten.open == 1
    del view
    assert unwritten.open == 0


def test_pools_of_the_program_give_unwritten_memory(xp: Any, unwritten: Any) -> None:
    pool = xp.cuda.MemoryPool()
    with xp.cuda.using_allocator(pool.malloc):
        address = xp.ones(100).data.ptr
        x = xp.empty(100)
        assert x.data.ptr == address
        with pytest.raises(UnwrittenMemoryError, match="of 800 bytes allocated at"):
            x.get()
        x[...] = 1
        assert x.get().sum() == 100


def test_memory_without_an_array_counts_as_written(xp: Any, unwritten: Any) -> None:
    x = xp.empty(64)
    address = x.data.ptr
    del x
    raw = tcuda.caching_allocator_alloc(512)
    assert raw == address
    memory = xp.cuda.UnownedMemory(raw, 512, None)
    assert xp.ndarray(64, "f8", xp.cuda.MemoryPointer(memory, 0)).get().shape == (64,)
    tcuda.caching_allocator_delete(raw)


@pytest.mark.parametrize("share", ["dlpack", "interface"])
def test_memory_that_another_library_knows_counts_as_written(xp: Any, unwritten: Any, share: str) -> None:
    x = xp.empty(4)
    with pytest.raises(UnwrittenMemoryError):
        x.get()
    shared = x.__dlpack__() if share == "dlpack" else x.__cuda_array_interface__
    assert shared
    x.get()


def test_an_index_is_refused_before_the_function_uses_it(xp: Any, unwritten: Any) -> None:
    index = xp.empty(2, int)
    index._host[...] = 1 << 40
    with pytest.raises(UnwrittenMemoryError, match="element 0 of 2 int64 elements that decide what is used"):
        xp.ones(4)[index]
