"""Fourier transforms with plans of the caller, and the functions by which SciPy finds those of the device."""

from __future__ import annotations

import functools
import itertools
import operator
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.arrays.fft import FFT
from tcuda.emulation.arrays.fourier.fftpack import get_fft_plan as get_fft_plan
from tcuda.emulation.arrays.fourier.fftpack import planned
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.work import creation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_ALONG_AN_AXIS = ("fft", "hfft", "ifft", "ihfft", "irfft", "rfft")
_ALONG_TWO_AXES = ("fft2", "ifft2", "irfft2", "rfft2")
_ALONG_AXES = ("fftn", "ifftn", "irfftn", "rfftn")
_WITHOUT_BACKEND = ("fftfreq", "fftshift", "get_fft_plan", "ifftshift", "next_fast_len", "rfftfreq")

OF_ARRAYS = (
    "__ua_convert__",
    "__ua_domain__",
    "__ua_function__",
    "get_fft_plan",
    "next_fast_len",
    *_ALONG_AN_AXIS,
    *_ALONG_TWO_AXES,
    *_ALONG_AXES,
)

__ua_domain__ = "numpy.scipy.fft"
"""The functions of SciPy that take the module as their backend: ``scipy.fft.set_backend(cupyx.scipy.fft)``."""


def check(name: str, arguments: Mapping[str, Any]) -> None:
    """Refuse what CuPy does not have, and SciPy does.

    Args:
        name: The name of the function.
        arguments: The arguments of a call, by the names of the parameters.

    Raises:
        NotImplementedError: The cosine or sine transform is of the first or the fourth type.
    """
    kind = arguments.get("type", 2)
    if name.lstrip("i")[:3] in ("dct", "dst") and kind in (1, 4):
        raise NotImplementedError(f"{name}() has the types 2 and 3 in CuPy; got {kind}.")


def __ua_convert__(dispatchables: Sequence[Any], coerce: bool) -> Any:  # noqa: N807  # SciPy's name
    """Return the arrays of a call of SciPy as arrays of the device, or NotImplemented."""
    values = [each.value for each in dispatchables]
    for place, each in enumerate(dispatchables):
        if each.type is np.ndarray and not isinstance(each.value, Strided):
            if not (coerce and each.coercible):
                return NotImplemented
            values[place] = creation.asarray(each.value)
    return values


def __ua_function__(method: Callable[..., Any], args: Any, kwargs: Any) -> Any:  # noqa: N807  # SciPy's name
    """Call the function of the device with the name of a function of SciPy."""
    module = sys.modules["tcuda.emulation.cupyx.scipy.fft"]
    name = method.__name__
    found = None if name in _WITHOUT_BACKEND else getattr(module, name, None)
    return NotImplemented if found is None else found(*args, **kwargs)


def next_fast_len(target: int, real: bool = False) -> int:
    """Return the least length from ``target`` on that cuFFT transforms fast: a product of 2, 3, 5 and 7.

    Args:
        target: The length of the data.
        real: Whether the data are real. The result is the same.

    Raises:
        ValueError: ``target`` is negative.
    """
    least = operator.index(target)
    if least < 0:
        raise ValueError(f"next_fast_len() takes a length of 0 or more; got {least}")
    return least and next(length for length in itertools.count(least) if _has_fast_factors_only(length))


def _has_fast_factors_only(length: int) -> bool:
    for factor in (2, 3, 5, 7):
        while length % factor == 0:
            length //= factor
    return length == 1


def _transform(name: str, x: Any, lengths: Any, axes: Any, norm: str | None, plan: Any) -> Any:
    if lengths is not None and axes is None:
        axes = tuple(range(-len(lengths), 0))
    if isinstance(x, Strided) and x.dtype == np.float16:
        x = creation.astype(x, np.float32)  # so that no result has half precision, unlike those of cupy.fft
    with planned(plan):
        return FFT[name](x, lengths, axes, norm)


def _sequence(value: Any) -> Any:
    return (value,) if np.isscalar(value) else value


def _along_an_axis(name: str) -> Callable[..., Any]:
    def transform(
        x: Any, n: Any = None, axis: int = -1, norm: str | None = None, overwrite_x: bool = False, *, plan: Any = None
    ) -> Any:
        if plan is not None and name in ("hfft", "ihfft"):
            raise NotImplementedError(f"A plan for {name}() is not yet supported in CuPy.")
        return _transform(name, x, n, axis, norm, plan)

    return transform


def _along_axes(name: str, default: Any) -> Callable[..., Any]:
    def transform(
        x: Any,
        s: Any = None,
        axes: Any = default,
        norm: str | None = None,
        overwrite_x: bool = False,
        *,
        plan: Any = None,
    ) -> Any:
        return _transform(name, x, _sequence(s), _sequence(axes), norm, plan)

    return transform


def _define() -> None:
    """Make the transforms that take plans."""
    makers: dict[str, Callable[[str], Callable[..., Any]]] = {
        **dict.fromkeys(_ALONG_AN_AXIS, _along_an_axis),
        **dict.fromkeys(_ALONG_TWO_AXES, functools.partial(_along_axes, default=(-2, -1))),
        **dict.fromkeys(_ALONG_AXES, functools.partial(_along_axes, default=None)),
    }
    for name, make in makers.items():
        made = globals()[name] = make(name)
        made.__name__ = made.__qualname__ = name
        made.__module__ = "tcuda.emulation.cupyx.scipy.fft"
        made.__doc__ = f"As ``cupy.fft.{name}``. ``plan`` is a plan of ``get_fft_plan``, or None."


next_fast_len.__module__ = "tcuda.emulation.cupyx.scipy.fft"
_define()
