"""Filters, cepstra, beams and radar signals of ``cupyx.signal``, on arrays of emulated devices.

NumPy and SciPy compute, by the definitions. SciPy is needed for ``firfilter``, ``firfilter2`` and named windows.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import numpy.typing as npt

from tcuda.emulation.arrays import fft
from tcuda.emulation.arrays.functions import LINALG, named
from tcuda.emulation.cupyx.scipy.host_modules import scipy_module
from tcuda.emulation.cupyx.scipy.namespaces import of_scipy
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.numbers import linear_algebra

_HERE = "tcuda.emulation.cupyx.signal"
_MOST_TAPS = 32


def _scipys() -> Any:
    return scipy_module("signal")


def real_cepstrum(x: Any, n: int | None = None, axis: int = -1) -> npt.NDArray[Any]:
    """Return the inverse transform of the logarithms of the magnitudes of the spectrum of ``x``."""
    return _real_cepstrum(x, n, axis)


def _real_cepstrum(x: Any, n: int | None, axis: int) -> npt.NDArray[Any]:
    return np.fft.ifft(np.log(np.abs(np.fft.fft(x, n, axis))), n, axis).real


def complex_cepstrum(x: Any, n: int | None = None, axis: int = -1) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the inverse transform of the complex logarithms of the spectrum of ``x``, and the delay in samples.

    The phase of the spectrum loses the delay, so that the phase is 0 at the highest frequency.
    """
    spectrum = np.fft.fft(x, n, axis)
    phase = np.unwrap(np.angle(spectrum))
    center = (spectrum.size + 1) // 2
    delay = np.round(phase.ravel()[min(center, spectrum.size - 1)] / np.pi)
    straight = phase - np.pi * delay * np.arange(spectrum.size).reshape(spectrum.shape) / center
    made = np.fft.ifft(np.log(np.abs(spectrum)) + 1j * straight, n, axis).real
    return made, np.full(spectrum.shape, delay, phase.dtype)


def inverse_complex_cepstrum(ceps: Any, ndelay: Any) -> npt.NDArray[Any]:
    """Return the samples with the complex cepstrum ``ceps`` and the delay ``ndelay``."""
    logarithms = np.fft.fft(ceps)
    places = np.arange(logarithms.size).reshape(logarithms.shape)
    phase = logarithms.imag + np.pi * np.asarray(ndelay).astype(np.int32) * places / (0.5 * (logarithms.size + 1))
    return np.fft.ifft(np.exp(logarithms.real + 1j * phase)).real


def minimum_phase(x: Any, n: int | None = None) -> npt.NDArray[Any]:
    """Return the samples of minimum phase with the magnitudes of the spectrum of ``x``."""
    ceps = _real_cepstrum(x, len(x) if n is None else n, -1)
    odd = ceps.size % 2
    bend = (ceps.size + odd) // 2
    window = np.zeros(ceps.size)
    window[0] = 1
    window[1:bend] = 2
    window[bend : bend + 1] = 1 - odd
    return np.fft.ifft(np.exp(np.fft.fft(ceps * window.reshape(ceps.shape)))).real


def _products(in1: Any, in2: Any, mode: str, method: str, axes: int) -> npt.NDArray[Any]:
    if in1.ndim != 1:
        raise ValueError(f"in1 should have one dimension, not {in1.ndim}")
    if in2.ndim != axes:
        raise ValueError(f"in2 should have {axes} dimensions, not {in2.ndim}")
    if mode != "valid":
        raise NotImplementedError(f"Mode == {mode} not implemented: the mode can be 'valid'")
    if method != "direct":
        raise NotImplementedError("Only Direct method implemented")
    count = len(in1) - max(in2.shape) + 1
    windows = [np.lib.stride_tricks.sliding_window_view(in1, length)[:count, ::-1] for length in in2.shape]
    letters = "xyz"[:axes]
    made = np.einsum(f"{','.join(f'i{letter}' for letter in letters)},{letters}->i", *windows, in2)
    return made.astype(np.result_type(in1, in2))  # type: ignore[no-any-return]


def convolve1d2o(in1: Any, in2: Any, mode: str = "valid", method: str = "direct") -> npt.NDArray[Any]:
    """Return the sums of the products of two samples of ``in1`` near each place, weighted by ``in2``."""
    return _products(in1, in2, mode, method, 2)


def convolve1d3o(in1: Any, in2: Any, mode: str = "valid", method: str = "direct") -> npt.NDArray[Any]:
    """Return the sums of the products of three samples of ``in1`` near each place, weighted by ``in2``."""
    return _products(in1, in2, mode, method, 3)


def firfilter(b: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Filter ``x`` along an axis by the coefficients ``b``; with ``zi``, the last inputs, also return the new ones."""
    filters = importlib.import_module("tcuda.emulation.cupyx.scipy.definitions.signal")
    return filters.lfilter(b, np.ones(1), x, axis, zi)


def firfilter_zi(b: Any) -> npt.NDArray[Any]:
    """Return the state of SciPy's filter with the coefficients ``b`` to which every input so far was 1."""
    return np.cumsum(b[:0:-1])[::-1].astype(np.result_type(b, np.float32))


def firfilter2(
    b: Any,
    x: Any,
    axis: int = -1,
    padtype: str | None = "odd",
    padlen: int | None = None,
    method: str = "pad",
    irlen: int | None = None,
) -> npt.NDArray[Any]:
    """Filter ``x`` forwards and backwards along an axis by the coefficients ``b``.

    Raises:
        NotImplementedError: The method is ``"gust"``.
        ValueError: The method or the padding is unknown, or ``x`` is too short.
    """
    if method not in ("pad", "gust"):
        raise ValueError("method must be 'pad' or 'gust'.")
    if method == "gust":
        raise NotImplementedError("gust method not supported yet")
    return _scipys().filtfilt(np.atleast_1d(b), 1, x, axis, padtype, padlen)  # type: ignore[no-any-return]


def freq_shift(x: Any, freq: float, fs: float) -> npt.NDArray[Any]:
    """Return the samples ``x``, taken with the rate ``fs``, with all frequencies lower by ``freq``."""
    samples = np.asarray(x)
    angles = -2 * np.pi * freq / fs * np.arange(samples.size).reshape(samples.shape)
    return (samples * np.exp(1j * angles)).astype(np.complex128)  # type: ignore[no-any-return]


def channelize_poly(x: Any, h: Any, n_chans: int) -> npt.NDArray[Any]:
    """Divide samples into channels by a polyphase filter.

    Args:
        x: The samples.
        h: The coefficients of the filter.
        n_chans: The number of channels.

    Raises:
        NotImplementedError: There are more than 32 coefficients for a channel, or the type is not supported.
    """
    dtype = np.promote_types(x.dtype, h.dtype)
    taps, count = len(h) // n_chans, len(x) // n_chans
    if taps > _MOST_TAPS:
        raise NotImplementedError(
            f"The number of calculated taps ({taps}) in each filter is currently capped at {_MOST_TAPS}. "
            "Please reduce filter length or number of channels"
        )
    if dtype.char not in "fdFD":
        raise NotImplementedError(f"Data type ({dtype}) not allowed.")
    filters = np.conj(h.astype(dtype)[: taps * n_chans].reshape(taps, n_chans))
    samples = np.conj(x.astype(dtype)[: count * n_chans].reshape(count, n_chans)[:, ::-1])
    made = np.zeros((count, n_chans), np.result_type(dtype, np.complex64))
    for back in range(min(taps, count)):
        made[back:] += filters[back] * samples[: count - back]
    return np.conj(np.fft.fft(made)).T.astype(made.dtype)  # type: ignore[no-any-return]


def mvdr(x: Any, sv: Any, calc_cov: bool = True) -> npt.NDArray[Any]:
    """Return the weights of the sensors that let signals from a direction pass and have the least variance.

    Args:
        x: The samples of each sensor, or their covariances.
        sv: The steering vector of the direction.
        calc_cov: Whether ``x`` has samples.

    Raises:
        ValueError: There are more sensors than samples, or ``sv`` has another length.
    """
    if x.shape[0] > x.shape[1]:
        raise ValueError("Matrix has more sensors than samples. Transpose it: each row is a sensor")
    if x.shape[0] != sv.shape[0]:
        raise ValueError("Steering Vector and input data do not align")
    weights = linear_algebra.inv(np.cov(x, dtype=x.dtype) if calc_cov else x).dot(sv)
    return weights / sv.conj().dot(weights)  # type: ignore[no-any-return]


def cfar_alpha(pfa: float, N: int) -> float:  # noqa: N803  # CuPy's name
    """Return the factor of the threshold for the probability ``pfa`` of a false alarm with ``N`` reference cells."""
    return float(N * (pfa ** (-1.0 / N) - 1))


def ca_cfar(array: Any, guard_cells: Any, reference_cells: Any, pfa: float = 1e-3) -> tuple[Any, Any]:
    """Return the threshold at each cell by the mean of the cells around, and which cells are above their threshold.

    Args:
        array: The cells, with one or two axes.
        guard_cells: The number of cells on each side that do not count; one number for each axis.
        reference_cells: The number of cells beyond these that count; one number for each axis.
        pfa: The probability of a false alarm.

    Raises:
        TypeError: ``array`` has more axes, or there is not one number for each axis.
        ValueError: ``array`` is too small.
    """
    if array.ndim > 2:
        raise TypeError("Only 1D and 2D arrays are currently supported.")
    guards, references = ([each] if array.ndim == 1 else list(each) for each in (guard_cells, reference_cells))
    if len(guards) != array.ndim or len(references) != array.ndim:
        raise TypeError("Guard and reference cells must be two dimensional.")
    inner = [2 * guard + 1 for guard in guards]
    outer = [2 * (guard + reference) + 1 for guard, reference in zip(guards, references, strict=True)]
    if any(length < width for length, width in zip(array.shape, outer, strict=True)):
        raise ValueError(f"Array too small for given parameters: the shape is {array.shape}, and needs {tuple(outer)}")
    count = int(np.prod(outer)) - int(np.prod(inner))
    place = tuple([slice(width // 2, length - width // 2) for width, length in zip(outer, array.shape, strict=True)])
    around = (
        _sums(array, outer)
        - _sums(array, inner)[
            tuple(
                [
                    slice(reference, length - 2 * guard - reference)
                    for reference, guard, length in zip(references, guards, array.shape, strict=True)
                ]
            )
        ]
    )
    threshold = np.zeros(array.shape, np.float32)
    threshold[place] = np.float32(cfar_alpha(pfa, count)) / count * around
    return threshold, array - threshold > 0


def _sums(array: Any, lengths: list[int]) -> Any:
    """Return the sums of the cells in windows of some lengths."""
    sums = array.astype(np.float64)
    for axis, length in enumerate(lengths):
        padded = np.cumsum(np.insert(sums, 0, 0, axis), axis)
        sums = np.take(padded, range(length, padded.shape[axis]), axis)
        sums -= np.take(padded, range(padded.shape[axis] - length), axis)
    return sums


def pulse_compression(
    x: Any, template: Any, normalize: bool = False, window: Any = None, nfft: int | None = None
) -> Any:
    """Return the correlation of each received pulse with the transmitted pulse.

    Args:
        x: The received signal, one row for each pulse.
        template: The transmitted signal.
        normalize: Whether to divide the transmitted signal by its norm.
        window: The window of the transmitted signal: an array, a name, or a function of the frequencies.
        nfft: The length of the transforms; the number of samples of a pulse if None.
    """
    length = x.shape[1] if nfft is None else nfft
    weighted = _weighted(template, normalize, window)
    made = fft.ifft(fft.fft(x, length) * fft.fft(weighted, length).conj(), length)
    return made if np.result_type(x.dtype, template.dtype).kind == "c" else made.real


def pulse_doppler(x: Any, window: Any = None, nfft: int | None = None) -> Any:
    """Return the transform along the pulses, the rows of ``x``; see :func:`pulse_compression`."""
    return fft.fft(_weighted(x.T, False, window), x.shape[0] if nfft is None else nfft).T


def _weighted(x: Any, normalize: bool, window: Any) -> Any:
    if window is not None:
        count = x.shape[-1]
        if callable(window):
            x = x * window(fft.fftfreq(count).astype(x.dtype))
        elif isinstance(window, Strided):
            if window.shape != (count,):
                raise ValueError(f"window must have the same length as data: {window.shape[0]} is not {count}")
            x = x * window
        else:
            windows = importlib.import_module("tcuda.emulation.cupyx.scipy").signal.windows
            x = x * windows.get_window(window, count, False).astype(x.dtype)
    return x / LINALG["norm"](x) if normalize else x


_COMPUTED = (
    real_cepstrum,
    complex_cepstrum,
    inverse_complex_cepstrum,
    minimum_phase,
    convolve1d2o,
    convolve1d3o,
    firfilter,
    firfilter_zi,
    firfilter2,
    freq_shift,
    channelize_poly,
    mvdr,
    ca_cfar,
)
__all__ = ["cfar_alpha", "pulse_compression", "pulse_doppler", *(function.__name__ for function in _COMPUTED)]


def __dir__() -> list[str]:
    return sorted(__all__)


globals().update({each.__name__: named(of_scipy(each), _HERE, each.__name__, each.__doc__) for each in _COMPUTED})
