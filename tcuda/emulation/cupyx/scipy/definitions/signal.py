"""Wavelets, which newer versions of SciPy do not have, and filters with the states that CuPy has."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.cupyx.scipy.host_modules import scipy_module
from tcuda.emulation.work import creation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

signal = scipy_module("signal")

OF_ARRAYS = ("cwt",)
_COMPARISONS = [FUNCTIONS[name] for name in ("equal", "greater", "greater_equal", "less", "less_equal", "not_equal")]


def check(name: str, arguments: Mapping[str, Any]) -> None:
    """Refuse what CuPy refuses: in ``hilbert2`` other arrays than those of two axes, and comparisons without a kernel.

    Args:
        name: The name of a function.
        arguments: The arguments of a call, by the names of the parameters.

    Raises:
        KeyError: ``argrelextrema`` has no kernel for the comparison.
        ValueError: The array has another number of axes.
    """
    if name == "argrelextrema" and arguments["data"].ndim < 3 and arguments["comparator"] not in _COMPARISONS:
        raise KeyError(
            f"argrelextrema() has no kernel for {arguments['comparator']!r}: the comparison of an array of one or two "
            "axes can be equal, greater, greater_equal, less, less_equal or not_equal."
        )
    if name == "hilbert2" and arguments["x"].ndim != 2:
        raise ValueError(f"x must be 2-D: the array has {arguments['x'].ndim} axes")


def qmf(hk: Any) -> npt.NDArray[Any]:
    """Return the high-pass filter that mirrors the low-pass filter ``hk``."""
    coefficients = np.asarray(hk)[::-1]
    return np.where(np.arange(len(coefficients)) % 2, -coefficients, coefficients)


def morlet(M: int, w: float = 5.0, s: float = 1.0, complete: bool = True) -> npt.NDArray[Any]:  # noqa: N803  # SciPy's name
    """Return ``M`` values of the complex Morlet wavelet between ``-2 * pi * s`` and ``2 * pi * s``.

    Args:
        M: The number of values.
        w: The angular frequency.
        s: The scale.
        complete: Whether to subtract the mean, which is not negligible for a ``w`` below 5.
    """
    x = np.linspace(-s * 2 * np.pi, s * 2 * np.pi, M)
    wave = np.exp(1j * w * x)
    if complete:
        wave -= np.exp(-0.5 * w**2)
    return wave * np.exp(-0.5 * x**2) * np.pi**-0.25  # type: ignore[no-any-return]


def morlet2(M: int, s: float, w: float = 5) -> npt.NDArray[Any]:  # noqa: N803  # SciPy's name
    """Return ``M`` values of the complex Morlet wavelet of width ``s`` and angular frequency ``w``, for :func:`cwt`."""
    x = _centered(M) / s
    return math.sqrt(1 / s) * np.exp(1j * w * x) * np.exp(-0.5 * x**2) * np.pi**-0.25  # type: ignore[no-any-return]


def ricker(points: int, a: float) -> npt.NDArray[Any]:
    """Return ``points`` values of the Ricker wavelet of width ``a``."""
    squared = (_centered(points) / a) ** 2
    return 2 / (math.sqrt(3 * a) * np.pi**0.25) * (1 - squared) * np.exp(-squared / 2)  # type: ignore[no-any-return]


def _centered(count: int) -> npt.NDArray[Any]:
    return np.arange(int(count)) - (int(count) - 1) / 2


def cwt(data: Any, wavelet: Callable[[int, int], Any], widths: Any) -> Any:
    """Return the wavelet transform of ``data``, one row for each width.

    Args:
        data: The samples, an array of a device with one axis.
        wavelet: Called with a number of values and a width; returns an array of a device.
        widths: The widths.
    """
    from tcuda.emulation.cupyx import scipy as of_device

    dtype = np.complex128 if creation.asarray(wavelet(1, 1)).dtype.kind == "c" else np.float64
    made: Any = creation.empty((len(widths), len(data)), dtype)
    for row, width in enumerate(widths):
        wave = wavelet(min(10 * int(width), len(data)), int(width))
        made[row] = of_device.signal.convolve(data, wave.conj()[::-1], mode="same")
    return made


# CuPy's filters keep the last inputs and outputs as their state, and SciPy's filters keep sums of them.


def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Filter ``x`` along an axis.

    Args:
        b: The coefficients of the inputs.
        a: The coefficients of the outputs.
        x: The samples.
        axis: The axis.
        zi: The last ``len(b) - 1`` inputs and the last ``len(a) - 1`` outputs before ``x``, along the axis.

    Returns:
        The outputs; with ``zi``, also the last inputs and outputs.
    """
    if zi is None:
        return signal.lfilter(b, a, x, axis)
    taken, given = len(b) - 1, len(a) - 1
    samples, past = np.moveaxis(x, axis, -1), np.moveaxis(np.atleast_1d(zi), axis, -1)
    past = np.broadcast_to(past, (*samples.shape[:-1], past.shape[-1]))
    inputs, outputs = past[..., :taken], past[..., past.shape[-1] - given :]
    dtype = np.result_type(b, a, past, np.float32)
    state = np.zeros((*samples.shape[:-1], max(taken, given)), dtype)
    for coefficients, values in ((b.astype(dtype), inputs), (-a.astype(dtype), outputs)):
        for place in range(len(coefficients) - 1):
            for back in range(len(coefficients) - 1 - place):
                state[..., place] += coefficients[place + 1 + back] / a[0] * values[..., -1 - back]
    made = signal.lfilter(b, a, samples, zi=state)[0] if state.shape[-1] else signal.lfilter(b, a, samples)
    exact = np.result_type(b, a, x)
    made = made.astype(exact if exact.kind in "fc" else made.dtype)
    ends = np.zeros(past.shape, made.dtype)
    ends[..., :taken] = np.concatenate((inputs, samples), -1)[..., -taken:] if taken else 0
    ends[..., past.shape[-1] - given :] = np.concatenate((outputs, made), -1)[..., -given:] if given else 0
    return np.moveaxis(made, -1, axis), np.moveaxis(ends, -1, axis)


def lfiltic(b: Any, a: Any, y: Any, x: Any = None) -> Any:
    """Return the state of a filter after the outputs ``y`` and the inputs ``x``, of which the latest are first."""
    if y is None and x is None:
        return None
    given = [(x, len(b) - 1), (y, len(a) - 1)]
    parts = [
        np.resize(np.append(values, np.zeros(count)), count)[::-1] for values, count in given if values is not None
    ]
    return np.concatenate(parts)


def lfilter_zi(b: Any, a: Any) -> npt.NDArray[Any]:
    """Return the state of a filter to which every input so far was 1."""
    level = np.sum(b) / np.sum(a)
    return np.concatenate((np.ones(len(b) - 1), np.full(len(a) - 1, level)))


def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Filter ``x`` along an axis by one section after the other.

    Args:
        sos: The coefficients, one row of three for the inputs and three for the outputs for each section.
        x: The samples.
        axis: The axis.
        zi: The last two inputs and the last two outputs of each section before ``x``.

    Returns:
        The outputs; with ``zi``, also the last inputs and outputs of each section.
    """
    if zi is None:
        return signal.sosfilt(sos, x, axis)
    made, ends = x, []
    for section, past in zip(sos, zi, strict=True):
        made, end = lfilter(section[:3], section[3:], made, axis, past)
        ends.append(end)
    return made, np.stack(ends)


def sosfilt_zi(sos: Any) -> npt.NDArray[Any]:
    """Return the state of the sections to the first of which every input so far was 1."""
    levels = np.cumprod([1, *(section[:3].sum() / section[3:].sum() for section in sos)])
    return np.stack([levels[:-1], levels[:-1], levels[1:], levels[1:]], axis=1).astype(sos.dtype)
