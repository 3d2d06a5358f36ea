"""Arrays for tests, of devices and of the host."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.as_cupy.testing.namespace import namespace

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


def _made(xp: Any, values: npt.NDArray[Any], dtype: np.dtype[Any], shape: Any, order: str = "C") -> Any:
    if dtype.kind == "b":
        values = values % 2 == 0
    elif dtype.kind == "c":
        values = values + 1j * values
    return _module(xp).array(values.astype(dtype).reshape(shape), order=order)


def _module(xp: Any) -> Any:
    return namespace() if xp is None else xp


def _size(shape: Any) -> int:
    return math.prod(shape) if isinstance(shape, (tuple, list)) else int(shape)


def shaped_arange(shape: Any, xp: Any = None, dtype: npt.DTypeLike = np.float32, order: str = "C") -> Any:
    """Return an array of ``shape`` with the numbers 1, 2, 3 and so on.

    Args:
        shape: The lengths of the axes.
        xp: The module that makes the array; that of the devices if None.
        dtype: The type of the elements.
        order: The layout.
    """
    return _made(xp, np.arange(1, _size(shape) + 1), np.dtype(dtype), shape, order)


def shaped_reverse_arange(shape: Any, xp: Any = None, dtype: npt.DTypeLike = np.float32) -> Any:
    """Return an array of ``shape`` with numbers that go down to 1; the arguments are those of :func:`shaped_arange`."""
    return _made(xp, np.arange(_size(shape), 0, -1), np.dtype(dtype), shape)


def shaped_random(
    shape: Sequence[int],
    xp: Any = None,
    dtype: npt.DTypeLike = np.float32,
    scale: float = 10,
    seed: int = 0,
    order: str = "C",
) -> Any:
    """Return an array of ``shape`` with random numbers from 0 to ``scale``, which are the same at every call."""
    random, kind = np.random.RandomState(seed), np.dtype(dtype)
    values: Any
    if kind.kind == "b":
        values = random.randint(2, size=shape)
    elif kind.kind == "c":
        values = (random.rand(*shape) + 1j * random.rand(*shape)) * scale
    else:
        values = random.rand(*shape) * scale
    return _module(xp).asarray(values, dtype=kind, order=order)


def shaped_linspace(start: float, stop: float, shape: Any, xp: Any = None, dtype: npt.DTypeLike = np.float32) -> Any:
    """Return an array of ``shape`` with numbers from ``start`` to ``stop`` at equal distances."""
    kind = np.dtype(dtype)
    if kind.kind in "bu":
        start = max(start, 0)
    if kind.kind == "b":
        stop = min(stop, 1)
    return _module(xp).array(np.linspace(start, stop, _size(shape)).astype(kind).reshape(shape))


def generate_matrix(
    shape: Sequence[int], xp: Any = None, dtype: npt.DTypeLike = np.float32, *, singular_values: Any = None
) -> Any:
    """Return random matrices with the given singular values.

    Args:
        shape: The shape of the array; the last two axes are those of the matrices.
        xp: The module that makes the array; that of the devices if None.
        dtype: The type of the elements, real or complex.
        singular_values: The singular values.

    Raises:
        TypeError: ``dtype`` is not a floating-point type, or ``singular_values`` is missing or not real.
        ValueError: There are fewer than two axes, or a singular value is negative.
    """
    module, kind = _module(xp), np.dtype(dtype)
    if len(shape) <= 1:
        raise ValueError(f"shape {shape} is invalid for matrices: too few axes")
    if singular_values is None:
        raise TypeError("singular_values is not given")
    values = module.asarray(singular_values)
    if kind.kind not in "fc":
        raise TypeError(f"dtype {kind} is not supported")
    if not module.isrealobj(values):
        raise TypeError("singular_values is not real")
    if (values < 0).any():
        raise ValueError("negative singular value is given")
    numbers = module.random.randn(*shape)
    if kind.kind == "c":
        numbers = numbers + 1j * module.random.randn(*shape)
    left, found, right = module.linalg.svd(numbers, full_matrices=False)
    scaled = left * module.broadcast_to(values, found.shape)[..., None, :]
    return (scaled @ right).astype(kind)
