"""The members of CuPy's arrays, which the core reads and writes in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tcuda

if TYPE_CHECKING:
    from tcuda._backend import Backend

pytestmark = pytest.mark.gpu


@pytest.fixture
def core(backend: Backend) -> Any:
    transfers: Any = backend.transfers()
    return transfers._core


def samples() -> list[tuple[Any, Any]]:
    from tcuda._cupy.transfers import _samples

    return _samples()


def base() -> Any:
    from cupy._core.core import _ndarray_base

    return _ndarray_base


def test_the_layout_is_that_of_the_installed_cupy(core: Any) -> None:
    assert core.use_layout(base(), samples())


def test_a_view_that_differs_from_that_of_cupy_is_noticed(core: Any) -> None:
    pairs = samples()
    for wrong in ((pairs[0][0], pairs[1][0]), (pairs[3][0], pairs[3][0].T), (pairs[1][0], pairs[1][0].view("q"))):
        assert not core.use_layout(base(), [wrong])


def test_views_have_the_attributes_of_arrays_that_cupy_makes(core: Any) -> None:
    xp = tcuda.xp
    like = [xp.ones(shape, dtype) for shape, dtype in (((), "f"), ((3, 4), "d"), ((0, 2), "?"), ((2, 1, 3), "F"))]
    flat = xp.arange(256, dtype=xp.uint8)
    for view, array in zip(core.views(flat, like, [0, 16, 112, 128]), like, strict=True):
        for name in ("shape", "strides", "dtype", "size", "nbytes", "ndim", "base"):
            assert getattr(view, name) == getattr(array, name), name
        assert repr(view.flags) == repr(array.flags)
        assert view.data.mem is flat.data.mem
        assert (view + array).shape == array.shape


def test_a_view_keeps_the_memory_alive(core: Any) -> None:
    xp = tcuda.xp
    before = tcuda.memory_allocated()
    flat = xp.zeros(4096, xp.uint8)
    (view,) = core.views(flat, [xp.empty(8)], [512])
    del flat
    assert tcuda.memory_allocated() == before + 4096
    del view
    assert tcuda.memory_allocated() == before
