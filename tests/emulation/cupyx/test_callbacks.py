"""Functions of a program that SciPy calls get arrays of the device, and may return such arrays."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage
import scipy.signal

import tcuda
from tcuda.emulation import xp
from tcuda.emulation.cupyx.scipy import ndimage, signal

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]

X = np.arange(64.0) ** 2
SEGMENTS = {"nperseg": 16, "window": "hann"}


class Noted:
    """A function that notes its arguments, and returns what another function returns for them."""

    def __init__(self, function):
        self.function = function
        self.given = []

    def __call__(self, *args):
        self.given += args
        return self.function(*args)


@pytest.mark.parametrize("name", ["welch", "periodogram", "spectrogram", "stft"])
def test_a_detrend_works_on_arrays_of_the_device(name):
    detrend = Noted(lambda segments: segments - segments.mean(axis=-1, keepdims=True))
    options = {} if name == "periodogram" else SEGMENTS
    results = getattr(signal, name)(xp.asarray(X), detrend=detrend, **options)
    expected = getattr(scipy.signal, name)(X, detrend=lambda v: v - v.mean(-1, keepdims=True), **options)
    assert all(type(each) is xp.ndarray for each in detrend.given)
    for result, other in zip(results, expected, strict=True):
        np.testing.assert_allclose(result.get(), other, rtol=1e-6, atol=1e-12)


def test_a_detrend_of_two_signals_works_on_both():
    x = xp.asarray(X)
    for function in (signal.csd, signal.coherence):
        detrend = Noted(lambda segments: segments * 2)
        function(x, x + 1, detrend=detrend, **SEGMENTS)
        assert [type(each) for each in detrend.given[:2]] == [xp.ndarray] * 2


def test_a_plot_gets_the_frequencies_and_the_responses():
    for function, more in ((signal.freqz, ()), (signal.freqs, (xp.asarray([1.0, 3.0]),))):
        plot = Noted(lambda w, h: None)
        results = function(xp.asarray([1.0, 2.0]), *more, worN=8, plot=plot)
        assert [type(each) for each in plot.given] == [xp.ndarray] * 2
        for given, result in zip(plot.given, results, strict=True):
            np.testing.assert_array_equal(given.get(), result.get())


def test_a_window_works_on_frequencies_of_the_device():
    window = Noted(lambda frequencies: xp.exp(-(frequencies**2)))
    result = signal.resample(xp.asarray(X), 32, window=window)
    np.testing.assert_allclose(result.get(), scipy.signal.resample(X, 32, window=lambda f: np.exp(-(f**2))))
    assert [type(each) for each in window.given] == [xp.ndarray]


def test_a_function_that_returns_arrays_of_the_host_is_refused():
    with pytest.raises(TypeError, match="Unsupported type"):
        signal.resample(xp.asarray(X), 32, window=lambda frequencies: np.ones(len(frequencies)))


def test_an_error_of_the_function_reaches_the_program():
    def fail(w, h):
        raise LookupError("no axes to plot on")

    with pytest.raises(LookupError, match="no axes"):
        signal.freqz(xp.asarray([1.0, 2.0]), worN=8, plot=fail)


def test_a_function_of_the_program_is_refused_in_a_capture():
    x = xp.asarray(X)
    graph = tcuda.CUDAGraph()

    def detrend(segments):
        return segments

    with pytest.raises(NotImplementedError, match="'detrend' on the host.*before the capture"), tcuda.graph(graph):
        signal.welch(x, detrend=detrend, **SEGMENTS)


@pytest.mark.parametrize("compare", ["less", "greater", "less_equal", "greater_equal", "equal", "not_equal"])
def test_extrema_are_found_with_the_comparisons_of_the_namespace(compare):
    values = np.array([2.0, 1, 2, 3, 2, 0, 1, 0])
    for data in (values, values.reshape(2, 4), values.reshape(2, 2, 2)):
        result = signal.argrelextrema(xp.asarray(data), getattr(xp, compare))
        expected = scipy.signal.argrelextrema(data, getattr(np, compare))
        assert [each.get().tolist() for each in result] == [each.tolist() for each in expected]


def test_extrema_of_many_axes_are_found_with_any_comparison():
    data = xp.asarray(np.arange(27.0).reshape(3, 3, 3))
    compare = Noted(lambda a, b: a > b)
    signal.argrelextrema(data, compare)
    assert {type(each) for each in compare.given} == {xp.ndarray}
    with pytest.raises(KeyError, match="argrelextrema"):
        signal.argrelextrema(data[0], compare)


def test_a_polynomial_gives_its_coefficients():
    t = np.linspace(0, 10, 50)
    result = signal.sweep_poly(xp.asarray(t), xp.poly1d([0.1, 2.0]))
    np.testing.assert_allclose(result.get(), scipy.signal.sweep_poly(t, np.poly1d([0.1, 2.0])), atol=1e-12)


@pytest.mark.parametrize("name", ["generic_laplace", "generic_gradient_magnitude"])
@pytest.mark.parametrize("output", [None, np.float32, "given"])
def test_a_derivative_is_written_to_the_array_that_the_function_gets(name, output):
    image = np.random.default_rng(0).random((5, 6))

    def derivative(image, axis, output, mode, cval, factor, *, shift=0):
        assert type(output) is xp.ndarray
        ndimage.sobel(image, axis, output, mode, cval)
        output *= factor
        output += shift
        return "not used"

    target = xp.empty(image.shape, np.float32) if output == "given" else output
    result = getattr(ndimage, name)(
        xp.asarray(image),
        derivative,
        target,
        ["wrap", "nearest"],
        extra_arguments=(2,),
        extra_keywords={"shift": 1},
    )
    first, second = (
        scipy.ndimage.sobel(image, axis, None, mode) * 2 + 1 for axis, mode in enumerate(("wrap", "nearest"))
    )
    expected = first + second if name == "generic_laplace" else np.hypot(first, second)
    assert result.dtype == (np.float64 if output is None else np.float32)
    assert output != "given" or result is target
    np.testing.assert_allclose(result.get(), expected, rtol=1e-5)
