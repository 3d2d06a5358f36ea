"""Functions that CuPy writes with the methods of their argument, for arguments with other methods than an array has.

``cupy.squeeze(a)`` only calls ``a.squeeze()``. So the function also takes an array of Dask, or any other object with
such a method. The functions below are these calls, with the parameters of CuPy's functions in their order. The method
gets the arguments as CuPy hands them on, because a method with other parameters refuses them. In
``cupy_signatures.json``, the code ``m`` marks the arguments for which a function goes this way. The functions also go
this way for an array whose class is a subclass with a method of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tcuda.emulation.arrays.ufunc import ufunc
from tcuda.emulation.work import creation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda.emulation.arrays.signatures import OfOtherLibrary, Signature

_isnan = ufunc(np.isnan)


def _array_equal(a1: Any, a2: Any, equal_nan: bool) -> Any:
    if a1.shape != a2.shape:
        return creation.array(False)
    if not equal_nan:
        return (a1 == a2).all()
    is_number = ~_isnan(a1)  # a universal function, which refuses the arrays of most other libraries
    return (is_number == ~_isnan(a2)).all() & (a1[is_number] == a2[is_number]).all()


def _flip(a: Any, axis: Any) -> Any:
    axes = range(a.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, a.ndim)
    return a[tuple(slice(None, None, -1 if place in axes else None) for place in range(a.ndim))]


def _fliplr(a: Any) -> Any:
    _require_axes(a, 2)
    return a[:, ::-1]


def _flipud(a: Any) -> Any:
    _require_axes(a, 1)
    return a[::-1]


def _matrix_transpose(a: Any) -> Any:
    _require_axes(a, 2)
    return a.swapaxes(-1, -2)


def _linalg_matrix_transpose(a: Any) -> Any:
    _require_axes(a, 2)
    return a.swapaxes(a.ndim - 1, a.ndim - 2)


def _put(a: Any, ind: Any, v: Any, mode: str) -> None:
    a.put(ind, v, mode=mode)


def _rot90(a: Any, k: int, axes: Any) -> Any:
    _require_axes(a, 2)
    first, second = np.lib.array_utils.normalize_axis_tuple(axes, a.ndim)
    if k % 4 in (0, 2):
        return a[:] if k % 4 == 0 else _flip(a, (first, second))
    order = list(range(a.ndim))
    order[first], order[second] = second, first
    return _flip(a, second).transpose(order) if k % 4 == 1 else _flip(a.transpose(order), second)


def _require_axes(a: Any, least: int) -> None:
    if a.ndim < least:
        raise ValueError(f"the array needs {least} or more axes; got an array of {a.ndim} axes.")


def _sort(a: Any, axis: int | None, kind: Any) -> Any:
    made = a.flatten() if axis is None else a.copy()
    made.sort(axis=-1 if axis is None else axis, kind=kind)
    return made


def _partition(a: Any, kth: Any, axis: int | None) -> Any:
    made = a.flatten() if axis is None else a.copy()
    made.partition(kth, axis=-1 if axis is None else axis)
    return made


def _sort_complex(a: Any) -> Any:
    made = a.astype("F" if a.dtype.char in "bhBHF" else "D")
    made.sort()
    return made


def _real_if_close(a: Any, tol: float) -> Any:
    if issubclass(a.dtype.type, np.complexfloating):
        _refuse_elements(a)
    return a


def _refuse_elements(a: Any) -> NoReturn:
    raise TypeError(
        f"the function takes elements of {a.dtype} only in an array of the device, not in an object of {type(a)}: make "
        "an array of it with asarray() first."
    )


def _of_whole_numbers(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``method`` for arrays without NaN. CuPy's functions of other arrays are kernels."""

    def reduce(a: Any, *args: Any) -> Any:
        if a.dtype.kind not in "biu":
            _refuse_elements(a)
        return method(a, *args)

    return reduce


def _argmax(a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any) -> Any:
    return a.argmax(axis=axis, dtype=dtype, out=out, keepdims=keepdims)


def _argmin(a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any) -> Any:
    return a.argmin(axis=axis, dtype=dtype, out=out, keepdims=keepdims)


def _max(a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    return a.max(axis=axis, out=out, keepdims=keepdims)


def _min(a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    return a.min(axis=axis, out=out, keepdims=keepdims)


def _mean(a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any) -> Any:
    return a.mean(axis=axis, dtype=dtype, out=out, keepdims=keepdims)


def _std(a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: Any) -> Any:
    return a.std(axis=axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims)


def _var(a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: Any) -> Any:
    return a.var(axis=axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims)


CALLS: dict[str, Callable[..., Any]] = {
    "amax": _max,
    "amin": _min,
    "argmax": _argmax,
    "argmin": _argmin,
    "argpartition": lambda a, kth, axis: a.argpartition(kth, axis=axis),
    "argsort": lambda a, axis, kind: a.argsort(axis=axis, kind=kind),
    "array_equal": _array_equal,
    "choose": lambda a, choices, out, mode: a.choose(choices, out, mode),
    "clip": lambda a, a_min, a_max, out: a.clip(a_min, a_max, out=out),
    "compress": lambda condition, a, axis, out: a.compress(condition, axis, out),
    "copy": lambda a, order: a.copy(order=order),
    "diagonal": lambda a, offset, axis1, axis2: a.diagonal(offset, axis1, axis2),
    "dot": lambda a, b, out: a.dot(b, out),
    "flip": _flip,
    "fliplr": _fliplr,
    "flipud": _flipud,
    "isfortran": lambda a: a.flags.fnc,
    "linalg.matrix_transpose": _linalg_matrix_transpose,
    "matrix_transpose": _matrix_transpose,
    "max": _max,
    "mean": _mean,
    "min": _min,
    "nanargmax": _of_whole_numbers(_argmax),
    "nanargmin": _of_whole_numbers(_argmin),
    "nanmean": _of_whole_numbers(_mean),
    "nanstd": _of_whole_numbers(_std),
    "nanvar": _of_whole_numbers(_var),
    "partition": _partition,
    "prod": lambda a, axis, dtype, out, keepdims: a.prod(axis, dtype, out, keepdims),
    "ptp": lambda a, axis, out, keepdims: a.ptp(axis=axis, out=out, keepdims=keepdims),
    "put": _put,
    "ravel": lambda a, order: a.ravel(order),
    "real_if_close": _real_if_close,
    "repeat": lambda a, repeats, axis: a.repeat(repeats, axis),
    "reshape": lambda a, newshape, order, *, copy: a.reshape(newshape, order=order, copy=copy),
    "rot90": _rot90,
    "sort": _sort,
    "sort_complex": _sort_complex,
    "squeeze": lambda a, axis: a.squeeze(axis),
    "std": _std,
    "sum": lambda a, axis, dtype, out, keepdims: a.sum(axis, dtype, out, keepdims),
    "swapaxes": lambda a, axis1, axis2: a.swapaxes(axis1, axis2),
    "take": lambda a, indices, axis, out: a.take(indices, axis, out),
    "trace": lambda a, offset, axis1, axis2, dtype, out: a.trace(offset, axis1, axis2, dtype, out),
    "transpose": lambda a, axes: a.transpose(axes),
    "var": _var,
}
"""By the name of the function: the calls of methods that CuPy makes."""


CHANGED: set[type] = set()
"""The subclasses of the array that have methods of their own in the places of those of the array."""


def enter_class(kind: type, array_type: type) -> None:
    """Take note of ``kind``, a subclass of ``array_type``, if the class changes methods that functions call."""
    own = {name for base in kind.__mro__[: kind.__mro__.index(array_type)] for name in vars(base)}
    if any(hasattr(array_type, name) for name in own if name == "__getitem__" or not name.startswith("__")):
        CHANGED.add(kind)


def has_other_methods(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether an argument is an array of a class in ``CHANGED``."""
    return any(type(value) in CHANGED for value in (*args, *kwargs.values()))


def call_methods(signature: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what the methods of an operand give, for the arguments of CuPy's function.

    Raises:
        TypeError: The function has no such parameters.
    """
    bound = signature.described.bind(*args, **kwargs)
    bound.apply_defaults()
    return CALLS[signature.name](*bound.args, **bound.kwargs)


def call(signature: Signature, found: OfOtherLibrary, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what the methods of the operand that was ``found`` give, for the arguments of CuPy's function.

    Raises:
        AttributeError: The operand lacks the methods.
    """
    try:
        return call_methods(signature, args, kwargs)
    except AttributeError as error:
        if error.obj is found.operand:
            raise found.refusal from None
        raise
