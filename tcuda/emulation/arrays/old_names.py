"""Names of NumPy 1 that CuPy keeps, and that NumPy 2 has removed or deprecated."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.lib import npyio

from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.work import creation

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy import typing as npt


def asfarray(a: Any, dtype: npt.DTypeLike = np.float64) -> Any:
    """Return ``a`` as an array of floating-point numbers; of ``float64`` if ``dtype`` is another kind of type."""
    return creation.asarray(a, dtype=dtype if np.issubdtype(dtype, np.inexact) else np.float64)


def cumproduct(a: Any, axis: int | None = None, dtype: npt.DTypeLike | None = None, out: Any = None) -> Any:
    """Return the cumulative product (``cumprod``)."""
    _warn("Please use `cumprod` instead.")
    return FUNCTIONS["cumprod"](a, axis, dtype, out)


def in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """Return whether each element of ``ar1`` is in ``ar2``, as an array with one dimension (``isin``)."""
    return FUNCTIONS["isin"](ar1.ravel(), ar2.ravel(), assume_unique=assume_unique, invert=invert)


def msort(a: Any) -> Any:
    """Return a copy of ``a`` that is sorted along the first axis (``sort``)."""
    _warn("msort is deprecated, use cupy.sort(a, axis=0) instead")
    return FUNCTIONS["sort"](a, axis=0)


def product(
    a: Any, axis: Any = None, dtype: npt.DTypeLike | None = None, out: Any = None, keepdims: bool = False
) -> Any:
    """Return the product of elements (``prod``)."""
    _warn("Please use `prod` instead.")
    return FUNCTIONS["prod"](a, axis, dtype, out, keepdims)


def round_(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Return rounded elements (``around``)."""
    _warn("Please use `round` instead.")
    return FUNCTIONS["around"](a, decimals, out=out)


def obj2sctype(rep: Any, default: Any = None) -> Any:
    """Return the scalar type that a type, an array of NumPy or a text describes; ``default`` for another object."""
    if isinstance(rep, type) and issubclass(rep, np.generic):
        return rep
    if isinstance(rep, np.ndarray):
        return rep.dtype.type
    try:
        return np.dtype(rep).type
    except Exception:  # CuPy takes every error for "no type".
        return default


def issctype(rep: Any) -> bool:
    """Return whether ``rep`` is the type of a scalar."""
    if not isinstance(rep, (type, np.dtype)):
        return False
    found = obj2sctype(rep)
    return found is not None and found is not np.object_


def issubclass_(arg1: Any, arg2: Any) -> bool:
    """Return whether ``arg1`` is a class and a subclass of ``arg2``."""
    try:
        return issubclass(arg1, arg2)
    except TypeError:
        return False


def issubsctype(arg1: Any, arg2: Any) -> bool:
    """Return whether the scalar type of ``arg1`` is a subclass of that of ``arg2``."""
    return issubclass(obj2sctype(arg1), obj2sctype(arg2))


def sctype2char(sctype: Any) -> str:
    """Return the character of a scalar type.

    Raises:
        ValueError: ``sctype`` describes no type.
    """
    found = obj2sctype(sctype)
    if found is None:
        raise ValueError("unrecognized type")
    char: str = np.dtype(found).char
    return char


def _warn(message: str) -> None:
    warnings.warn(message, DeprecationWarning, stacklevel=3)


def _removed(name: str, instead: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwds: Any) -> NoReturn:
        raise RuntimeError(f"This function has been removed in NumPy v2.\nUse {instead} instead.\n")

    refuse.__module__, refuse.__name__, refuse.__qualname__ = "tcuda.emulation.xp", name, name
    refuse.__doc__ = f"Raise an error: NumPy 2 has removed the function. Use {instead} instead."
    return refuse


_INSTEAD = {
    "disp": "your own print function",
    "find_common_type": "`promote_types` or `result_type`",
    "get_array_wrap": "<no replacement>",
    "safe_eval": "`ast.literal_eval`",
    "set_string_function": "`np.set_printoptions`",
}

_FUNCTIONS = (
    asfarray,
    cumproduct,
    in1d,
    issctype,
    issubclass_,
    issubsctype,
    msort,
    obj2sctype,
    product,
    round_,
    sctype2char,
)

OLD_NAMES: dict[str, Any] = {
    **dict.fromkeys(("Inf", "Infinity", "PINF", "infty"), np.inf),
    **dict.fromkeys(("NAN", "NaN"), np.nan),
    "NINF": -np.inf,
    "NZERO": -0.0,
    "PZERO": 0.0,
    **dict.fromkeys(("cfloat", "complex_"), np.complex128),
    "float_": np.float64,
    "singlecomplex": np.complex64,
    "AxisError": np.exceptions.AxisError,
    "ComplexWarning": np.exceptions.ComplexWarning,
    "ModuleDeprecationWarning": np.exceptions.ModuleDeprecationWarning,
    "RankWarning": np.exceptions.RankWarning,
    "TooHardError": np.exceptions.TooHardError,
    "VisibleDeprecationWarning": np.exceptions.VisibleDeprecationWarning,
    "DataSource": npyio.DataSource,
    "format_parser": np.rec.format_parser,
    "alltrue": FUNCTIONS["all"],
    "sometrue": FUNCTIONS["any"],
    "trapz": FUNCTIONS["trapezoid"],
    **{function.__name__: function for function in _FUNCTIONS},
    **{name: _removed(name, instead) for name, instead in _INSTEAD.items()},
}
"""The names of :mod:`tcuda.emulation.xp` in this module."""
