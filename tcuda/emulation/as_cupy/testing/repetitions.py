"""Decorators that run a test for several types of elements, layouts and axes."""

from __future__ import annotations

import itertools
import os
import random
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.as_cupy.testing.signatures import giving
from tcuda.emulation.as_cupy.testing.skips import skips

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_COMPLEX: tuple[Any, ...] = (np.complex64, np.complex128)
_REGULAR: tuple[Any, ...] = (np.float64, np.float32)
_FLOATS: tuple[Any, ...] = (*_REGULAR, np.float16)
_SIGNED: tuple[Any, ...] = tuple(np.dtype(char).type for char in "bhilq")
_UNSIGNED: tuple[Any, ...] = tuple(np.dtype(char).type for char in "BHILQ")
_INTEGERS = (*_SIGNED, *_UNSIGNED)


def _all(no_float16: bool, no_bool: bool, no_complex: bool) -> tuple[Any, ...]:
    floats = _REGULAR if no_float16 else _FLOATS
    return (*floats, *_INTEGERS, *(() if no_bool else (np.bool_,)), *(() if no_complex else _COMPLEX))


def _for_each(choices: Iterable[dict[str, Any]], names: Sequence[str]) -> Decorator:
    """Return a decorator that runs a test with each of ``choices`` as further arguments."""
    each = list(choices)

    def decorate(test: Callable[..., Any]) -> Any:
        @giving(test, *names)
        def repeat(*args: Any, **kwargs: Any) -> None:
            for choice in each:
                shown = ", ".join(f"{name} = {value}" for name, value in choice.items())
                try:
                    test(*args, **kwargs, **choice)
                except skips() as skip:
                    print(f"skipped: {shown} ({skip})")
                except Exception:
                    print(f"failed: {shown}")
                    raise

        return repeat

    return decorate


def for_dtypes(dtypes: Iterable[Any], name: str = "dtype") -> Decorator:
    """Run the test for each of ``dtypes``, which the argument ``name`` gets."""
    return _for_each([{name: np.dtype(dtype).type} for dtype in dtypes], [name])


def for_all_dtypes(
    name: str = "dtype", no_float16: bool = False, no_bool: bool = False, no_complex: bool = False
) -> Decorator:
    """Run the test for all types that devices know, except those left out."""
    return for_dtypes(_all(no_float16, no_bool, no_complex), name)


def for_float_dtypes(name: str = "dtype", no_float16: bool = False) -> Decorator:
    """Run the test for the types of real floating-point numbers."""
    return for_dtypes(_REGULAR if no_float16 else _FLOATS, name)


def for_signed_dtypes(name: str = "dtype") -> Decorator:
    """Run the test for the types of signed integers."""
    return for_dtypes(_SIGNED, name)


def for_unsigned_dtypes(name: str = "dtype") -> Decorator:
    """Run the test for the types of unsigned integers."""
    return for_dtypes(_UNSIGNED, name)


def for_int_dtypes(name: str = "dtype", no_bool: bool = False) -> Decorator:
    """Run the test for the types of integers, and for truth values unless ``no_bool``."""
    return for_dtypes(_INTEGERS if no_bool else (*_INTEGERS, np.bool_), name)


def for_complex_dtypes(name: str = "dtype") -> Decorator:
    """Run the test for the types of complex numbers."""
    return for_dtypes(_COMPLEX, name)


def for_dtypes_combination(
    types: Iterable[Any], names: Sequence[str] = ("dtype",), full: bool | None = None
) -> Decorator:
    """Run the test for combinations of types.

    Args:
        types: The types.
        names: The arguments that get the types.
        full: Whether to run all combinations, and not only some in which each type occurs. If None, the environment
            variable ``CUPY_TEST_FULL_COMBINATION`` decides.
    """
    kinds = list(types)
    if full is None:
        full = os.environ.get("CUPY_TEST_FULL_COMBINATION", "0") != "0"
    if full:
        rows = list(itertools.product(kinds, repeat=len(names)))
    else:
        columns = [[*kinds, *random.sample(kinds, len(kinds))] for _ in names]
        rows = list(dict.fromkeys(zip(*columns, strict=True)))
    return _for_each([dict(zip(names, row, strict=True)) for row in rows], names)


def for_all_dtypes_combination(
    names: Sequence[str] = ("dtyes",),
    no_float16: bool = False,
    no_bool: bool = False,
    full: bool | None = None,
    no_complex: bool = False,
) -> Decorator:
    """Run the test for combinations of all types that devices know, except those left out."""
    return for_dtypes_combination(_all(no_float16, no_bool, no_complex), names, full)


def for_signed_dtypes_combination(names: Sequence[str] = ("dtype",), full: bool | None = None) -> Decorator:
    """Run the test for combinations of the types of signed integers."""
    return for_dtypes_combination(_SIGNED, names, full)


def for_unsigned_dtypes_combination(names: Sequence[str] = ("dtype",), full: bool | None = None) -> Decorator:
    """Run the test for combinations of the types of unsigned integers."""
    return for_dtypes_combination(_UNSIGNED, names, full)


def for_int_dtypes_combination(
    names: Sequence[str] = ("dtype",), no_bool: bool = False, full: bool | None = None
) -> Decorator:
    """Run the test for combinations of the types of integers, with truth values unless ``no_bool``."""
    return for_dtypes_combination(_INTEGERS if no_bool else (*_INTEGERS, np.bool_), names, full)


def for_orders(orders: Iterable[Any], name: str = "order") -> Decorator:
    """Run the test for each of ``orders``, which the argument ``name`` gets."""
    return _for_each([{name: order} for order in orders], [name])


def for_CF_orders(name: str = "order") -> Decorator:
    """Run the test for the names of the row-major and the column-major order, and for None."""
    return for_orders([None, "C", "F", "c", "f"], name)


def for_contiguous_axes(name: str = "axis") -> Decorator:
    """Run the test for the axes that lie together in memory, by the arguments ``shape`` and ``order`` of the test."""

    def decorate(test: Callable[..., Any]) -> Any:
        @giving(test, name)
        def repeat(*args: Any, **kwargs: Any) -> None:
            axes = range(len(kwargs["shape"]))
            order = kwargs["order"]
            if order not in ("c", "C", "f", "F"):
                raise ValueError("Please specify the array order.")
            for count in axes:
                together = tuple(axes[count:]) if order in ("c", "C") else tuple(axes[: count + 1])
                test(*args, **{**kwargs, name: together})

        return repeat

    return decorate
