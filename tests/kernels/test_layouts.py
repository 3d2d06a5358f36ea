"""The check whether a kernel gets a view of which the kernel reads other elements."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tcuda

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("runtime")]

CODE = r"""
extern "C" __global__ void plain(double* x, int rows, int columns) {}
extern "C" __global__ void strided(double* x, int rows, int columns, long long first, long long second) {}
extern "C" __global__ void pitched(double* x, int rows, int columns, int pitch) {}
extern "C" __global__ void listed(double* x, int rows, int columns, long long* strides) {}
extern "C" __global__ void addressed(unsigned long long x, int rows, int columns) {}
struct Steps { long long steps[2]; };
extern "C" __global__ void packed(double* x, int rows, int columns, Steps steps) {}
"""


def matrix(xp: Any) -> Any:
    return xp.arange(24.0).reshape(4, 6).copy()


VIEWS = {
    "a transpose": lambda xp: matrix(xp).T,
    "a transpose of a square": lambda xp: xp.ones((8, 8)).T,
    "every second column": lambda xp: matrix(xp)[:, ::2],
    "every second row": lambda xp: matrix(xp)[::2],
    "every second element": lambda xp: xp.arange(24.0)[::2],
    "backwards": lambda xp: xp.arange(24.0)[::-1],
    "some columns": lambda xp: matrix(xp)[:, 1:4],
    "a broadcast row": lambda xp: xp.broadcast_to(xp.arange(6.0), (4, 6)),
    "a real part": lambda xp: xp.ones((4, 6), complex).real,
    "a view of a view": lambda xp: matrix(xp)[1:].T[1:],
    "axes of three": lambda xp: xp.ones((2, 3, 4)).transpose(1, 0, 2),
    "rows of an array by columns": lambda xp: xp.ones((4, 6), order="F")[1:3],
    "a field": lambda xp: xp.zeros(5, np.dtype([("x", "f8"), ("n", "i8")]))["x"],
}
"""Views of which a kernel reads other elements than those of the view, unless the kernel knows the strides."""


@pytest.fixture
def kernels(xp: Any, request: pytest.FixtureRequest) -> Any:
    """A module, whose code no other test shares, so that no kernel has warned."""
    return xp.RawModule(code=f"{CODE}// {request.node.name}")


def sizes(x: Any) -> tuple[np.int32, np.int32]:
    return np.int32(x.shape[0]), np.int32(x.shape[-1])


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_with_gaps_warns_once(xp: Any, kernels: Any, view: str) -> None:
    x, plain = VIEWS[view](xp), kernels.get_function("plain")
    with pytest.warns(RuntimeWarning, match=r"Argument 0 \(x\) is a view that is not C-contiguous") as caught:
        plain((1,), (1,), (x, *sizes(x)))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    text = str(caught[0].message)
    assert f"shape {x.shape} and strides {x.strides}" in text
    assert "xp.ascontiguousarray()" in text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain((1,), (1,), (x, *sizes(x)))


@pytest.mark.parametrize("view", [view for view in VIEWS if view != "axes of three"])
@pytest.mark.parametrize("unit", ["bytes", "elements"])
def test_a_kernel_that_gets_the_strides_does_not_warn(xp: Any, kernels: Any, view: str, unit: str) -> None:
    x = VIEWS[view](xp)
    steps = [stride if unit == "bytes" else stride / x.itemsize for stride in x.strides]
    if not all(step == int(step) for step in steps):
        return  # a field of structures has no stride in elements
    first, last = int(steps[0]), int(steps[-1])
    kernels.get_function("strided")((1,), (1,), (x, *sizes(x), np.int64(first), np.int64(last)))
    kernels.get_function("strided")((1,), (1,), (x, *sizes(x), first, last))
    kernels.get_function("listed")((1,), (1,), (x, *sizes(x), xp.asarray([first, last])))


@pytest.mark.parametrize(
    "array",
    [
        matrix,
        lambda xp: matrix(xp)[1:3],
        lambda xp: matrix(xp)[1],
        lambda xp: matrix(xp)[:1, 1:4],
        lambda xp: matrix(xp).reshape(2, 12).ravel(),
        lambda xp: matrix(xp)[:0].T,
        lambda xp: xp.ones((4, 6), order="F"),  # the kernel works by columns
        lambda xp: xp.asfortranarray(matrix(xp)),
        lambda xp: xp.ones((4, 6), order="F").T,
        lambda xp: xp.ones((4, 6), order="F")[:, 1:3],
        lambda xp: xp.ascontiguousarray(matrix(xp).T),
        lambda xp: matrix(xp).T.copy(),
        lambda xp: matrix(xp).view("i8").view("f8"),
        lambda xp: np.float64(1) * matrix(xp).T,  # a new array
    ],
)
def test_an_array_without_gaps_does_not_warn(xp: Any, kernels: Any, array: Any) -> None:
    x = array(xp)
    if x.size:
        kernels.get_function("addressed")((1,), (1,), (x, *sizes(x)[:1], np.int32(0)))
    kernels.get_function("plain")((1,), (1,), (x, np.int32(0), np.int32(0)))


def test_the_length_of_a_row_in_memory_is_enough_for_some_columns(xp: Any, kernels: Any) -> None:
    x = matrix(xp)[:, 1:4]
    kernels.get_function("pitched")((1,), (1,), (x, *sizes(x), np.int32(6)))
    kernels.get_function("pitched")((1,), (1,), (x, *sizes(x), np.int32(48)))
    with pytest.warns(RuntimeWarning, match="not C-contiguous"):
        kernels.get_function("pitched")((1,), (1,), (x, *sizes(x), np.int32(7)))


def test_a_structure_may_have_the_strides(xp: Any, kernels: Any) -> None:
    x = matrix(xp).T
    steps = np.array([x.strides], "i8").view([("steps", "i8", 2)])[0, 0]
    kernels.get_function("packed")((1,), (1,), (x, *sizes(x), steps))


def test_the_check_is_an_error_if_asked_for(xp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = matrix(xp)
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", "memory, types")
    plain = xp.RawKernel(CODE, "plain")
    for _ in range(2):
        with pytest.raises(TypeError, match="not C-contiguous"):
            plain((1,), (1,), (x.T, np.int32(6), np.int32(4)))
    plain((1,), (1,), (x.T.copy(), np.int32(6), np.int32(4)))
    for value in ("memory", "0"):
        monkeypatch.setenv("TCUDA_EMULATED_CHECKS", value)
        xp.RawKernel(CODE, "plain")((1,), (1,), (x.T, np.int32(6), np.int32(4)))


def test_both_warnings_of_a_kernel_are_told(xp: Any, kernels: Any) -> None:
    plain, x = kernels.get_function("plain"), matrix(xp)
    with pytest.warns(RuntimeWarning, match="not C-contiguous"):
        plain((1,), (1,), (x.T, np.int32(6), np.int32(4)))
    with pytest.warns(RuntimeWarning, match="an array of float32"):
        plain((1,), (1,), (x.astype("f4"), np.int32(4), np.int32(6)))


def test_kernels_that_know_the_strides_by_themselves_do_not_warn(xp: Any) -> None:
    x = matrix(xp).T
    twice = xp.ElementwiseKernel("raw float64 x", "float64 y", "y = 2 * x[i]", "twice_of_a_view")
    assert (twice(x, size=24) == 2 * x.ravel()).all()
    total = xp.ReductionKernel("float64 x", "float64 y", "x", "a + b", "y = a", "0", "total_of_a_view")
    assert total(x) == x.sum()
    add = tcuda.jiterator._create_jit_fn("template <typename T> T add_views(T x, T y) { return x + y; }")
    assert (add(x, matrix(xp)[:, :4].reshape(4, 4)[:, :1].T) == x + matrix(xp)[:, :1].T).all()
