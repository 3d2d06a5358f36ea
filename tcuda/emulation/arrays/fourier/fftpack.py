"""Fourier transforms with plans of the caller: the functions that ``cupyx.scipy.fftpack`` has for complex results."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from tcuda.emulation.arrays.fft import FFT
from tcuda.emulation.arrays.fourier import cufft, planning
from tcuda.emulation.arrays.fourier.settings import config

if TYPE_CHECKING:
    from collections.abc import Sequence

OF_ARRAYS = ("fft", "fft2", "fftn", "get_fft_plan", "ifft", "ifft2", "ifftn")
"""The functions for ``cupyx.scipy.fftpack``, which take and give arrays of a device."""

_VALUE_TYPES = ("C2C", "R2C", "C2R")


def get_fft_plan(
    a: Any,
    shape: int | Sequence[int | None] | None = None,
    axes: int | Sequence[int] | None = None,
    value_type: str = "C2C",
) -> Any:
    """Return a plan for transforms of arrays like ``a``, to be used as an argument or as a context manager.

    Args:
        a: The array, without gaps.
        shape: The lengths of the output along ``axes``; those of ``a`` if None.
        axes: The axes, at most three neighbours with the first or the last axis; all axes if None.
        value_type: ``"C2C"``, ``"R2C"`` or ``"C2R"``: from complex or real numbers to complex or real numbers.

    Raises:
        ValueError: ``a`` has gaps, the axes do not fit the shape or the array, or cuFFT has no such plan.
    """
    if not a.flags.forc:
        raise ValueError("Input array a must be contiguous")
    order = "C" if a.flags.c_contiguous else "F"
    lengths = (shape,) if isinstance(shape, int) else shape
    along = (axes,) if isinstance(axes, int) else axes
    if lengths is not None and along is not None and len(lengths) != len(along):
        raise ValueError("Shape and axes have different lengths.")
    if along is None:
        count = a.ndim if lengths is None else len(lengths)
        along = tuple(range(-count, 0))
    if len(along) > 3:
        raise ValueError(f"Only up to three axes is supported; got {len(along)}.")
    if any(not -a.ndim <= axis < a.ndim for axis in along):
        raise ValueError(f"The chosen axis ({tuple(along)}) exceeds the number of dimensions of a ({a.ndim})")
    if value_type not in _VALUE_TYPES:
        raise ValueError(f"value_type is one of {', '.join(_VALUE_TYPES)}; got {value_type!r}.")
    fft_type = planning._fft_type(planning._type_of(a.dtype, value_type), value_type)
    if len(along) > 1 and value_type != "C2C" and a.flags.f_contiguous:
        raise ValueError("C2R/R2C PlanNd for F-order arrays is not supported")
    places = tuple([axis % a.ndim for axis in along])
    wanted = planning._lengths_of(a, lengths, places, value_type)
    if wanted is None:
        raise ValueError("Invalid number of FFT data points specified.")
    if len(places) > 1:
        full = list(a.shape)
        for axis, length in zip(places, wanted, strict=True):
            full[axis] = length
        return planning._plan_nd(tuple(full), fft_type, planning._sorted(places, value_type), order, value_type)[1]()
    [(_, _, length, batch)] = planning._steps(a.shape, places, wanted, value_type)
    return cufft.Plan1d(length, fft_type, batch, devices=config.devices)


def planned(plan: Any) -> Any:
    """Return a scope in which transforms use ``plan``, or the plan in use if ``plan`` is None.

    Raises:
        RuntimeError: There are both.
    """
    planning._plan_in_use(plan)
    return contextlib.nullcontext() if plan is None else plan


def fft(x: Any, n: int | None = None, axis: int = -1, overwrite_x: bool = False, plan: Any = None) -> Any:
    """Return the transform of ``x`` along ``axis``. The contents of ``x`` may be lost if ``overwrite_x`` is true."""
    with planned(plan):
        return FFT["fft"](x, n, axis)


def ifft(x: Any, n: int | None = None, axis: int = -1, overwrite_x: bool = False, plan: Any = None) -> Any:
    """Return the inverse of :func:`fft`."""
    with planned(plan):
        return FFT["ifft"](x, n, axis)


def fft2(x: Any, shape: Any = None, axes: Any = (-2, -1), overwrite_x: bool = False, plan: Any = None) -> Any:
    """Return the transform of ``x`` along two axes."""
    with planned(plan):
        return FFT["fft2"](x, shape, axes)


def ifft2(x: Any, shape: Any = None, axes: Any = (-2, -1), overwrite_x: bool = False, plan: Any = None) -> Any:
    """Return the inverse of :func:`fft2`."""
    with planned(plan):
        return FFT["ifft2"](x, shape, axes)


def fftn(x: Any, shape: Any = None, axes: Any = None, overwrite_x: bool = False, plan: Any = None) -> Any:
    """Return the transform of ``x`` along ``axes``."""
    with planned(plan):
        return FFT["fftn"](x, shape, axes)


def ifftn(x: Any, shape: Any = None, axes: Any = None, overwrite_x: bool = False, plan: Any = None) -> Any:
    """Return the inverse of :func:`fftn`."""
    with planned(plan):
        return FFT["ifftn"](x, shape, axes)
