"""Small functions of the namespace on arrays as a whole: their memory, their requirements, their common shape."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda._base import strides
from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.work import creation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import numpy.typing as npt

_FLAGS = {
    "C": "C",
    "C_CONTIGUOUS": "C",
    "CONTIGUOUS": "C",
    "F": "F",
    "F_CONTIGUOUS": "F",
    "FORTRAN": "F",
    "O": "O",
    "OWNDATA": "O",
}


class broadcast:
    """Arrays as views of their common shape, as ``cupy.broadcast``.

    Args:
        arrays: The arrays; other objects are left as they are.

    Attributes:
        values: The views.
        shape: The common shape.
        nd: The number of axes.
        size: The number of elements.

    Raises:
        ValueError: The arrays have no common shape.
    """

    __module__ = "tcuda.emulation.xp"

    def __init__(self, *arrays: Any) -> None:
        shapes = [array.shape for array in arrays if isinstance(array, Strided)]
        try:
            self.shape = np.broadcast_shapes(*shapes)
        except ValueError as error:
            texts = " ".join(map(str, shapes))
            raise ValueError(f"operands could not be broadcast together with shapes {texts}") from error
        self.values = tuple([self._view_of(array) for array in arrays])
        self.nd = len(self.shape)
        self.size = int(np.prod(self.shape, dtype=object))

    def _view_of(self, array: Any) -> Any:
        if not isinstance(array, Strided) or array.shape == self.shape:
            return array
        return FUNCTIONS["broadcast_to"](array, self.shape)


def byte_bounds(a: Any) -> tuple[int, int]:
    """Return the address of the first byte of ``a``, and the address after its last byte."""
    return strides.byte_bounds(a.data.ptr, a.itemsize, a.shape, a.strides)


def who(vardict: Mapping[str, Any] | None = None) -> None:
    """Print the names, shapes, bytes and types of the arrays in ``vardict``, the globals of the caller if None."""
    if vardict is None:
        caller = sys._getframe(1)
        vardict = caller.f_globals
    names: dict[int, str] = {}
    rows: list[tuple[str, str, str, str]] = []
    total = 0
    for name in sorted(vardict):
        array = vardict[name]
        if isinstance(array, Strided):
            known = names.get(id(array))
            if known is None:
                names[id(array)] = name
                total += array.nbytes
            shown = name if known is None else f"{name} ({known})"
            rows.append((shown, " x ".join(map(str, array.shape)), str(array.nbytes), array.dtype.name))
    if rows:
        widths = [max(10, *(len(row[column]) for row in rows)) for column in range(3)]
        head = " ".join(
            f"{title} {' ' * width}" for title, width in zip(("Name", "Shape", "Bytes"), widths, strict=True)
        )
        print(f"{head} Type\n{'=' * (len(head) + 10)}\n")
        for row in rows:
            cells = [cell.ljust(width + 6) for cell, width in zip(row, widths, strict=False)]
            print("".join(cells) + row[3])
    print(f"\nUpper bound on total bytes  =       {total}")


def require(a: Any, dtype: npt.DTypeLike | None = None, requirements: str | Iterable[str] | None = None) -> Any:
    """Return ``a`` as an array of the type and the layout that are required; copies only if needed.

    Args:
        a: The array, or an object of which an array can be made.
        dtype: The type of the elements; that of ``a`` if None.
        requirements: The names of flags: ``"C"``, ``"F"`` or ``"O"``, or the long names of these.

    Raises:
        ValueError: There is no such type or flag, or both ``"C"`` and ``"F"`` are required.
    """
    flags = set()
    for name in requirements or ():
        if name.upper() not in _FLAGS:
            raise ValueError(f'Incorrect flag "{name}" in requirements; there are {", ".join(_FLAGS)}.')
        flags.add(_FLAGS[name.upper()])
    if {"C", "F"} <= flags:
        raise ValueError('Cannot specify both "C" and "F" order')
    order = "C" if "C" in flags else "F" if "F" in flags else "A"
    try:
        return creation.array(a, dtype, True if "O" in flags else None, order if flags else "K")
    except TypeError as error:
        raise ValueError(f'Incorrect dtype "{dtype}" provided') from error


def asarray_chkfinite(a: Any, dtype: npt.DTypeLike | None = None, order: str | None = None) -> Any:
    """Return ``a`` as an array of the current device, as :func:`asarray`; waits for the contents.

    Raises:
        ValueError: An element is infinite or not a number.
    """
    array = creation.asarray(a, dtype, order)
    if not FUNCTIONS["isfinite"](array).all():
        raise ValueError("array must not contain Infs or NaNs")
    return array


def mask_indices(n: int, mask_func: Callable[[Any, Any], Any], k: Any = 0) -> Any:
    """Return the indices of the elements that ``mask_func`` keeps in an array of ``n`` rows and columns.

    Args:
        n: The number of rows and columns.
        mask_func: The function, such as :func:`triu`, called with an array and with ``k``.
        k: The second argument of ``mask_func``.
    """
    return mask_func(creation.ones((n, n), np.int8), k).nonzero()


def row_stack(tup: Any, *, dtype: npt.DTypeLike | None = None, casting: str = "same_kind") -> Any:
    """Return :func:`vstack` of ``tup``, with a warning that this name is deprecated."""
    warnings.warn("`row_stack` alias is deprecated. Use `cp.vstack` directly.", DeprecationWarning, stacklevel=2)
    return FUNCTIONS["vstack"](tup, dtype=dtype, casting=casting)


ARRAY_FACTS: dict[str, Any] = {
    "asarray_chkfinite": asarray_chkfinite,
    "broadcast": broadcast,
    "byte_bounds": byte_bounds,
    "mask_indices": mask_indices,
    "require": require,
    "row_stack": row_stack,
    "who": who,
}
"""The functions of this module by name."""

for _function in ARRAY_FACTS.values():
    _function.__module__ = "tcuda.emulation.xp"  # The functions are pickled by their public names.
