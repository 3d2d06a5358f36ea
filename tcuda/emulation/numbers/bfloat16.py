"""bfloat16, the numbers of 16 bits with the exponents of float32 that ``ml_dtypes`` adds to NumPy.

A GPU adds and multiplies many numbers of bfloat16 in single precision, and rounds the result once. Sums and products of
float16 are computed in this way, too. CuPy's functions know bfloat16 only in part.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_CHARACTER = "E"  # of several dtypes of ``ml_dtypes``
_PLACE_OF_DTYPE = 2
_REDUCTIONS = frozenset(["mean", "nanmean", "nanprod", "nanstd", "nansum", "nanvar", "prod", "std", "sum", "var"])
"""The functions that compute in single precision and take the type of the result as their third argument."""
_OF_HALF = frozenset(["nanprod", "nansum", "prod", "sum"])
"""The functions that compute in single precision for float16, too, and that round after each number in NumPy."""
_PRODUCTS = frozenset(
    ["average", "convolve", "correlate", "dot", "einsum", "i0", "inner", "matmul", "sinc", "tensordot", "trace", "vdot"]
)
"""Other functions that compute in single precision."""
_SINGLE = frozenset(["around", "round", "tril", "triu", "where"])
"""The functions whose results have single precision: CuPy has no kernel for bfloat16 there."""
_REFUSED: dict[str, type[Exception]] = {
    "cumprod": NotImplementedError,
    "cumsum": NotImplementedError,
    "histogram": ValueError,
    "lexsort": TypeError,
    "partition": NotImplementedError,
    "percentile": NotImplementedError,
    "quantile": NotImplementedError,
    "unique": NotImplementedError,
}
"""The functions that CuPy has not for bfloat16, with the errors."""


def is_bfloat16(dtype: np.dtype[Any]) -> bool:
    """Return whether ``dtype`` is bfloat16."""
    return dtype.char == _CHARACTER and dtype.name == "bfloat16"


def named_bfloat16() -> np.dtype[Any]:
    """Return the dtype.

    Raises:
        BufferError: ``ml_dtypes`` is not installed.
    """
    try:
        module = importlib.import_module("ml_dtypes")
    except ImportError:
        raise BufferError("Arrays of bfloat16 need ml_dtypes, which is not installed: pip install ml_dtypes.") from None
    dtype: np.dtype[Any] = np.dtype(module.bfloat16)
    return dtype


def is_small(dtype: np.dtype[Any]) -> bool:
    """Return whether ``dtype`` is bfloat16 or float16."""
    return dtype.char == "e" or is_bfloat16(dtype)


def of_device(function: Callable[..., Any], dtype: np.dtype[Any]) -> Callable[..., Any]:
    """Return ``function`` of NumPy, with a GPU's results for arrays of ``dtype``, which is bfloat16 or float16.

    Raises:
        NotImplementedError, TypeError, ValueError: CuPy does not have the function for bfloat16.
    """
    name = getattr(function, "__name__", "").strip("_")
    if dtype.char == "e":
        return _widened(function) if name in _OF_HALF else function
    if name in _REFUSED:
        raise _REFUSED[name](f"{name}() takes no bfloat16, as in CuPy. Convert the array with astype('float32') first.")
    if name in _REDUCTIONS or name in _PRODUCTS or name in _SINGLE:
        return _widened(function)
    return function


@functools.cache
def _widened(function: Callable[..., Any]) -> Callable[..., Any]:
    name = function.__name__.strip("_")

    @functools.wraps(function, updated=())
    def compute(*args: Any, **kwargs: Any) -> Any:
        kinds: list[np.dtype[Any]] = []
        out = kwargs.pop("out", None)
        wide = [_wide(value, kinds) for value in args]
        named = {name: _wide(value, kinds) for name, value in kwargs.items()}
        target = np.result_type(*kinds)
        if name in _REDUCTIONS:
            target = _with_dtype(wide, named) or target
        made = function(*wide, **named)
        if name not in _SINGLE and is_small(target):
            made = _narrow(made, target)
        if out is None:
            return made
        result = out[0] if isinstance(out, tuple) else out
        result[...] = made
        return result

    return compute


def _wide(value: Any, kinds: list[np.dtype[Any]]) -> Any:
    """Return ``value`` with single precision for small numbers, and add the dtypes of arrays to ``kinds``."""
    if isinstance(value, np.ndarray):
        kinds.append(value.dtype)
        return value.astype(np.float32) if is_small(value.dtype) else value
    if isinstance(value, (list, tuple)):
        items = [_wide(item, kinds) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    return value


def _with_dtype(args: Sequence[Any], kwargs: Mapping[str, Any]) -> np.dtype[Any] | None:
    """Return the type that a call asks for, and let the call ask for single precision in the place of small numbers."""
    by_place = len(args) > _PLACE_OF_DTYPE
    given: Any = args[_PLACE_OF_DTYPE] if by_place else kwargs.get("dtype")
    if given is None:
        return None
    dtype: np.dtype[Any] = np.dtype(given)
    if is_small(dtype):
        holder, key = (args, _PLACE_OF_DTYPE) if by_place else (kwargs, "dtype")
        holder[key] = np.float32  # type: ignore[index]
    return dtype


def _narrow(result: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(result, tuple):
        return tuple([_narrow(part, dtype) for part in result])
    single = isinstance(result, (np.ndarray, np.generic)) and result.dtype == np.float32
    return result.astype(dtype) if single else result
