"""Calls of SciPy's functions on sparse matrices and arrays of a device, as work of the current stream."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.cupyx.scipy.sparse.layout import ARRAYS, HOST, Layout, taken_apart
from tcuda.emulation.work import copies, numpy_work, refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MANY = 1 << 24
"""A number of indices. For more indices, the memory for a number of each index counts."""

CLASSES: dict[str, Any] = {}
"""The classes of matrices of a device, by name."""


class Plain:
    """A result that is no array, and stays as it is.

    Args:
        value: The result.
    """

    def __init__(self, value: Any) -> None:
        self.value = value


def call(
    work: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    reads: bool = True,
    name: str | None = None,
    room: int = 0,
) -> Any:
    """Call ``work`` of SciPy, and return its results as matrices and arrays of the current device.

    Args:
        work: The function, which gets SciPy's matrices in the places of matrices of a device.
        args: The positional arguments.
        kwargs: The keyword arguments.
        reads: Whether the sizes of the results depend on contents. The call then waits for the current stream, as
            CuPy's function does.
        name: The name of the function, for messages; the name of ``work`` if None.
        room: The number of indices for which SciPy needs memory of the host beside that of the results.

    Raises:
        OutOfMemoryError: The device has no room for so many indices. SciPy is not called then.
        RuntimeError: The call reads contents, and the current stream captures.
    """
    name = name or work.__name__
    if room > MANY:
        numpy_work.new(room, np.int64)
    if reads:
        wait_for_contents(name)
    scope = numpy_work.with_contents() if reads and numpy_work.defers() else contextlib.nullcontext()

    @functools.wraps(work)
    def compute(*arguments: Any, **options: Any) -> Any:
        given = [_joined(value) for value in arguments]
        result = work(*given, **{key: _joined(value) for key, value in options.items()})
        return _apart(result, reads, _has_long_indices(arguments))

    with scope:
        taken = {key: _apart_on_device(value) for key, value in (kwargs or {}).items()}
        return _joined_on_device(numpy_work.call(compute, [_apart_on_device(value) for value in args], taken))


def wait_for_contents(name: str) -> None:
    """Wait for the current stream in the call ``name``, which needs the contents of arrays.

    Raises:
        RuntimeError: The current stream captures.
    """
    refusals.require_contents(name)
    copies.wait_for_contents(name)


def _apart_on_device(value: Any) -> Any:
    """Return ``value`` with a layout and arrays in the place of each matrix of a device."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(_apart_on_device, value))
    layout = getattr(value, "_layout", None)
    return value if layout is None else (layout, *(getattr(value, name) for name in ARRAYS[value.format]))


def _joined(value: Any) -> Any:
    """Return ``value`` with SciPy's matrix in the place of each layout and its arrays."""
    if isinstance(value, (tuple, list)):
        if value and isinstance(value[0], Layout):
            return value[0].on_host(value[1:])
        return type(value)(map(_joined, value))
    return value


def _has_long_indices(value: Any) -> bool:
    """Return whether a matrix in ``value`` has indices of 64 bits; the matrices in the result then have such, too."""
    if isinstance(value, (tuple, list)):
        if value and isinstance(value[0], Layout):
            return bool(value[-1].dtype == np.int64)
        return any(map(_has_long_indices, value))
    return False


def _apart(result: Any, facts: bool, long: bool) -> Any:
    """Return ``result`` with a layout and arrays in the place of each matrix of SciPy."""
    if HOST.issparse(result):
        layout, arrays = taken_apart(result, facts, long)
        return (layout, *arrays)
    if isinstance(result, np.matrix):
        return np.asarray(result)
    if isinstance(result, (tuple, list)):
        return tuple(_apart(part, facts, long) for part in result)
    return result


def _joined_on_device(result: Any) -> Any:
    if isinstance(result, tuple):
        if result and isinstance(result[0], Layout):
            return CLASSES[result[0].name]._of_layout(*result)
        return tuple(map(_joined_on_device, result))
    return result.value if isinstance(result, Plain) else result
