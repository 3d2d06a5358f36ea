"""How CuPy transforms: with a plan for each axis, or with one plan for several axes.

NumPy computes the numbers. The plans decide about the layout of the result, and a plan of the caller refuses the arrays
that do not fit.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.arrays.fourier import cufft
from tcuda.emulation.arrays.fourier.plan_cache import get_plan_cache
from tcuda.emulation.arrays.fourier.settings import config
from tcuda.emulation.numbers.bfloat16 import is_bfloat16
from tcuda.emulation.work import creation, numpy_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Function = Callable[..., Any]

_TYPES = {
    ("C2C", "F"): cufft.CUFFT_C2C,
    ("R2C", "f"): cufft.CUFFT_R2C,
    ("C2R", "F"): cufft.CUFFT_C2R,
    ("C2C", "D"): cufft.CUFFT_Z2Z,
    ("R2C", "d"): cufft.CUFFT_D2Z,
    ("C2R", "D"): cufft.CUFFT_Z2D,
}
_REAL = {"irfft": "C2R", "hfft": "C2R", "rfft": "R2C", "ihfft": "R2C"}


def transforming(function: Function) -> Callable[[Sequence[Any], Mapping[str, Any]], Any]:
    """Return the work of ``function``, a function of ``numpy.fft`` that transforms."""
    name = function.__name__
    value_type = _REAL.get(name.rstrip("2n"), "C2C")
    one_axis = name[-1] not in "2n"
    default: Any = {"t": -1, "2": (-2, -1), "n": None}[name[-1]]
    parameters = list(inspect.signature(function).parameters)

    def transform(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        given = {**dict(zip(parameters, args, strict=False)), **kwargs}
        a, length, axes = given["a"], given.get(parameters[1]), given.get(parameters[2], default)
        if one_axis:
            plan: Any = _fft(a, (length,), (axes,), value_type)
        else:
            plan = _default_fft_func(a, length, axes, value_type=value_type)(a, length, axes, value_type)
        if plan is None:  # NumPy raises the error, or returns the array itself if there are no axes.
            return numpy_work.call(function, args, kwargs)
        made = plan.execute(function, one_axis, a, given.get("norm"))
        # CuPy casts real numbers to the type of the array after a transform of one axis, as NumPy does.
        half = value_type == "C2R" and a.dtype == np.float16 and len(plan.axes) == 1
        return creation.astype(made, np.float16) if half else made

    return transform


class _Transform:
    """A transform that is possible: the axes, the lengths, and the layout of the result.

    Args:
        axes: The axes, from 0 on.
        lengths: The lengths along the axes: of the input, or of the output for the last axis of a ``C2R`` transform.
        kind: The type of the elements that NumPy must be given; that of the input if None.
        order: ``"F"``, or ``"C"`` with ``last`` as the axis whose elements are neighbours in memory.
        last: The axis.
    """

    def __init__(
        self, axes: tuple[int, ...], lengths: tuple[int, ...], kind: Any, order: str, last: int | None = None
    ) -> None:
        self.axes = axes
        self._lengths = lengths
        self._kind = kind
        self._order = order
        self._last = last

    def execute(self, function: Function, one_axis: bool, a: Any, norm: str | None) -> Any:
        """Return the result for ``a``."""
        if self._kind is not None:
            a = creation.array(a, self._kind)
        along = (self._lengths[0], self.axes[0]) if one_axis else (self._lengths, self.axes)
        last = a.ndim - 1 if self._last is None else self._last
        made = numpy_work.call(_host(function), (a, *along, norm, self._order, last))
        return made if last == a.ndim - 1 else numpy_work.view(np.swapaxes, (made, last, -1))


_hosts: dict[Function, Function] = {}


def _host(function: Function) -> Function:
    """Return the function of the host that transforms and lays out the result, for ``function`` of ``numpy.fft``."""
    if function not in _hosts:

        def run(a: Any, lengths: Any, axes: Any, norm: str | None, order: str, last: int) -> Any:
            result = function(a, lengths, axes, norm=norm)
            return np.asfortranarray(result) if order == "F" else np.ascontiguousarray(result.swapaxes(last, -1))

        run.__name__ = function.__name__
        _hosts[function] = run
    return _hosts[function]


def _default_fft_func(a: Any, s: Any = None, axes: Any = None, plan: Any = None, value_type: str = "C2C") -> Function:
    """Return :func:`_fftn` if one plan transforms all axes, and :func:`_fft` otherwise.

    Raises:
        RuntimeError: ``plan`` is given within the scope of another plan.
    """
    plan = _plan_in_use(plan)
    if isinstance(plan, cufft.PlanNd):
        return _fftn
    if isinstance(plan, cufft.Plan1d) or a.ndim == 1 or not config._enable_nd_planning.get():
        return _fft
    if a.flags.f_contiguous and value_type != "C2C":
        return _fft
    along = _axes_of(a.ndim, s, axes)
    if along is None or len(along) < 2 or not _fits_one_plan(_sorted(along, value_type), a.ndim):
        return _fft
    return _fftn


def _plan_in_use(plan: Any) -> Any:
    """Return ``plan``, or the plan of the scope that the thread has entered.

    Raises:
        RuntimeError: There are both.
    """
    current = cufft.get_current_plan()
    if current is not None and plan is not None:
        raise RuntimeError("Use the cuFFT plan either as a context manager or as an argument.")
    return current if plan is None else plan


def _axes_of(ndim: int, s: Any, axes: Any) -> tuple[int, ...] | None:
    """Return the axes of a transform from 0 on, in their order; None if NumPy is to raise an error."""
    if axes is None:
        count = ndim if s is None else len(s)
        axes = range(ndim - count, ndim)
    elif s is not None and len(s) != len(axes):
        return None
    if not len(axes) or any(not isinstance(axis, (int, np.integer)) or not -ndim <= axis < ndim for axis in axes):
        return None
    return tuple([int(axis) % ndim for axis in axes])


def _sorted(axes: tuple[int, ...], value_type: str) -> tuple[int, ...]:
    """Return ``axes`` in ascending order; the last axis of a transform from or to real numbers stays the last."""
    return tuple(sorted(axes)) if value_type == "C2C" else (*sorted(axes[:-1]), axes[-1])


def _fits_one_plan(axes: tuple[int, ...], ndim: int) -> bool:
    """Return whether one plan can transform ``axes``: up to three neighbours with the first or the last axis."""
    neighbours = all(after - before == 1 for before, after in itertools.pairwise(axes))
    return len(axes) <= 3 and neighbours and (0 in axes or ndim - 1 in axes)


def _lengths_of(a: Any, s: Any, axes: tuple[int, ...], value_type: str) -> tuple[int, ...] | None:
    """Return the lengths of a transform along ``axes``; None if NumPy is to raise an error."""
    lengths = [a.shape[axis] for axis in axes]
    if value_type == "C2R":
        lengths[-1] = 2 * (lengths[-1] - 1)
    if s is not None:
        lengths = [length if wanted is None else wanted for length, wanted in zip(lengths, s, strict=True)]
    if any(not isinstance(length, (int, np.integer)) or length < 1 for length in lengths):
        return None
    return tuple(map(int, lengths))


def _type_of(dtype: np.dtype[Any], value_type: str) -> np.dtype[Any]:
    """Return the type of the elements that cuFFT is given for an array of ``dtype``."""
    single = dtype.char in "efF"
    if value_type == "R2C":
        return np.dtype(np.float32 if single else np.float64)
    return np.dtype(np.complex64 if single else np.complex128)


def _fft_type(dtype: np.dtype[Any], value_type: str) -> int:
    """Return cuFFT's name for a transform.

    Raises:
        ValueError: There is no such transform.
    """
    if (value_type, dtype.char) not in _TYPES:
        raise ValueError(f"cuFFT has no {value_type} transform of {dtype}")
    return _TYPES[value_type, dtype.char]


def _steps(
    shape: tuple[int, ...], axes: tuple[int, ...], lengths: tuple[int, ...], value_type: str
) -> Iterator[tuple[int, str, int, int]]:
    """Yield the transforms of one axis that make up a transform: the axis, the type, the length and the number."""
    current = list(shape)
    for axis, length in zip(axes, lengths, strict=True):
        current[axis] = length
    if value_type == "C2R":
        current[axes[-1]] = lengths[-1] // 2 + 1
    order = [(axis, "C2C") for axis in axes]
    if value_type == "R2C":
        order = [(axes[-1], "R2C"), *order[:-1]]
    elif value_type == "C2R":
        order[-1] = (axes[-1], "C2R")
    for axis, kind in order:
        yield axis, kind, lengths[-1] if kind == "C2R" else current[axis], math.prod(current) // current[axis]
        if kind == "R2C":
            current[axis] = current[axis] // 2 + 1


def _fft(a: Any, s: Any, axes: Any, value_type: str = "C2C", plan: Any = None) -> _Transform | None:
    """Return the transform of ``a`` with a plan for each axis; None if NumPy is to raise an error.

    Raises:
        ValueError: The plan in use does not fit the array.
    """
    along = _axes_of(a.ndim, s, axes)
    lengths = None if along is None else _lengths_of(a, s, along, value_type)
    if along is None or lengths is None:
        return None
    plan = _plan_in_use(plan)
    dtype = _type_of(a.dtype, value_type)
    last = along[-1]
    for axis, kind, length, batch in _steps(a.shape, along, lengths, value_type):
        key = (length, _fft_type(_type_of(dtype, kind), kind), batch, config.devices)
        if plan is None:
            _cached(key, functools.partial(cufft.Plan1d, *key[:3], devices=key[3]))
        else:
            _require_plan_1d(plan, key)
        last = axis
    return _Transform(along, lengths, _cast(a, dtype), "C", last)


def _cast(a: Any, dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the type that NumPy must be given for ``a``; None for that of ``a``.

    CuPy computes with float32 where NumPy computes some transforms with float16, and drops the imaginary parts of ``a``
    with a warning where NumPy refuses them.
    """
    if a.dtype == np.float16:
        return np.dtype(np.float32)
    if is_bfloat16(a.dtype):
        return np.dtype(np.float64)
    return dtype if a.dtype.kind == "c" and dtype.kind != "c" else None


def _cached(key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """Return the plan for ``key`` of the cache, where the plan is added if it is missing."""
    cache = get_plan_cache()
    plan = cache.get(key)
    if plan is None:
        plan = cache[key] = make()
    return plan


def _require_plan_1d(plan: Any, key: tuple[int, int, int, Any]) -> None:
    """Refuse a plan that does not fit a transform of one axis.

    Raises:
        ValueError: The plan has another class, type, length, number of transforms, or other devices.
    """
    length, fft_type, batch, devices = key
    if not isinstance(plan, cufft.Plan1d):
        raise ValueError("expected plan to have type cufft.Plan1d")
    if plan.fft_type != fft_type:
        raise ValueError("cuFFT plan dtype mismatch.")
    if plan.nx != length:
        raise ValueError("Target array size does not match the plan.", length, plan.nx)
    if plan.batch != batch:
        raise ValueError("Batch size does not match the plan.")
    if (devices is None) != (plan.gpus is None):
        raise ValueError("Unclear if multiple GPUs are to be used or not.")


def _fftn(a: Any, s: Any, axes: Any, value_type: str = "C2C", plan: Any = None) -> _Transform | None:
    """Return the transform of ``a`` with one plan for all axes; None if NumPy is to raise an error.

    Raises:
        ValueError: The plan in use does not fit the array.
    """
    along = _axes_of(a.ndim, s, axes)
    lengths = None if along is None else _lengths_of(a, s, along, value_type)
    if along is None or lengths is None:
        return None
    plan = _plan_in_use(plan)
    dtype = _type_of(a.dtype, value_type)
    order = "F" if a.flags.f_contiguous else "C"
    shape = list(a.shape)
    for axis, length in zip(along, lengths, strict=True):
        shape[axis] = length
    if 0 in shape:
        return None
    in_order = _sorted(along, value_type)
    fft_type = _fft_type(dtype, value_type)
    if plan is None:
        _cached(*_plan_nd(tuple(shape), fft_type, in_order, order, value_type))
    else:
        _require_plan_nd(plan, a.shape, tuple(shape), in_order, order, fft_type, value_type)
    return _Transform(along, lengths, _cast(a, dtype), order)


def _plan_nd(
    shape: tuple[int, ...], fft_type: int, axes: tuple[int, ...], order: str, value_type: str
) -> tuple[tuple[Any, ...], Callable[[], cufft.PlanNd]]:
    """Return the arguments of the plan for ``axes`` of an array of ``shape``, and a function that makes the plan.

    Args:
        shape: The shape of the larger of input and output.
        fft_type: cuFFT's name for the transform.
        axes: The axes in ascending order.
        order: The layout of the array.
        value_type: ``"C2C"``, ``"R2C"`` or ``"C2R"``.

    Raises:
        ValueError: One plan cannot transform these axes.
    """
    if not _fits_one_plan(axes, len(shape)):
        raise ValueError(
            "An n-dimensional cuFFT plan could not be created. The axes must be contiguous and non-repeating. Between "
            "one and three axes can be transformed and either the first or last axis must be included in axes."
        )
    lengths = tuple([shape[axis] for axis in (axes[::-1] if order == "F" else axes)])
    if any(length < 1 for length in lengths):
        raise ValueError("Invalid number of FFT data points specified.")
    half = (*lengths[:-1], lengths[-1] // 2 + 1)
    inputs = half if value_type == "C2R" else lengths
    outputs = half if value_type == "R2C" else lengths
    batch = math.prod(shape) // math.prod(lengths)
    together = (0 not in axes) == (order == "C")
    istride, idist = (1, math.prod(inputs)) if together else (batch, 1)
    ostride, odist = (1, math.prod(outputs)) if together else (batch, 1)
    last_size = None if value_type == "C2C" else outputs[-1]
    key = (lengths, inputs, istride, idist, outputs, ostride, odist, fft_type, batch, order, axes[-1], last_size)
    return key, lambda: cufft.PlanNd(*key)


def _require_plan_nd(
    plan: Any,
    given: tuple[int, ...],
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    order: str,
    fft_type: int,
    value_type: str,
) -> None:
    """Refuse a plan that does not fit a transform of several axes.

    Raises:
        ValueError: The plan has another class, layout, shape or type.
    """
    if not isinstance(plan, cufft.PlanNd):
        raise ValueError("expected plan to have type cufft.PlanNd")
    if plan.order != order:
        raise ValueError(f"array orders mismatch (plan: {plan.order}, input: {order})")
    expected = tuple([shape[axis] for axis in (axes[::-1] if order == "F" else axes)])
    if plan.shape != expected:
        raise ValueError(
            f"The cuFFT plan and a.shape do not match: plan.shape = {plan.shape}, expected_shape={expected}, "
            f"a.shape = {given}"
        )
    if plan.fft_type != fft_type:
        raise ValueError("cuFFT plan dtype mismatch.")
    if value_type != "C2C":
        if plan.last_axis != axes[-1]:
            raise ValueError("The last axis for R2C/C2R mismatch")
        if plan.last_size != (expected[-1] // 2 + 1 if value_type == "R2C" else expected[-1]):
            raise ValueError("The size along the last R2C/C2R axis mismatch")
