"""Functions of ``cupyx`` that SciPy lacks, or that CuPy means otherwise."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage
import scipy.signal
import scipy.spatial

import tcuda
from tcuda.emulation import cupyx, xp
from tcuda.emulation.cupyx.scipy import ndimage, signal, spatial

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]

RNG = np.random.default_rng(0)
IMAGE = RNG.random((6, 7))


@pytest.mark.parametrize("metric", ["cityblock", "cosine", "hamming", "minkowski", "russellrao", "sqe"])
def test_distances_are_those_of_scipy_in_the_type_of_the_rows(metric):
    a, b = (RNG.integers(0, 2, (4, 5)).astype("f4") + 1 for _ in range(2))
    result = spatial.distance.cdist(xp.asarray(a), xp.asarray(b), metric)
    rows = (a != 0, b != 0) if metric == "russellrao" else (a, b)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result.get(), scipy.spatial.distance.cdist(*rows, metric), rtol=1e-6)


def test_distances_that_scipy_lacks_follow_their_definitions():
    p, q = np.array([0.2, 0.8]), np.array([0.5, 0.5])
    given = xp.asarray(p), xp.asarray(q)
    hellinger = np.sqrt(((np.sqrt(p) - np.sqrt(q)) ** 2).sum() / 2)
    np.testing.assert_allclose(spatial.distance.hellinger(*given).get(), hellinger)
    np.testing.assert_allclose(spatial.distance.kl_divergence(*given).get(), (p * np.log(p / q)).sum())
    out = xp.zeros((1, 1))
    assert spatial.distance.cdist(given[0][None], given[1][None], out=out) is out
    assert out.item() > 0
    with pytest.raises(ValueError, match="Unknown Distance Metric"):
        spatial.distance.cdist(xp.ones((2, 2)), xp.ones((2, 2)), "nearest")


def test_filters_go_on_from_the_last_inputs_and_outputs():
    b, a, x = (xp.asarray(each) for each in (RNG.random(3), np.array([1.0, 0.3, 0.2]), RNG.random(20)))
    whole = signal.lfilter(b, a, x)
    first, state = signal.lfilter(b, a, x[:9], zi=xp.zeros(4))
    second, _ = signal.lfilter(b, a, x[9:], zi=state)
    np.testing.assert_allclose(np.concatenate((first.get(), second.get())), whole.get())
    np.testing.assert_array_equal(state.get(), np.concatenate((x[7:9].get(), first[-2:].get())))
    level, _ = signal.lfilter(b, a, xp.ones(5), zi=signal.lfilter_zi(b, a))
    np.testing.assert_allclose(level.get(), b.sum().item() / a.sum().item())
    sections = xp.asarray(scipy.signal.butter(4, 0.3, output="sos"))
    level, state = signal.sosfilt(sections, xp.ones(5), zi=signal.sosfilt_zi(sections))
    assert state.shape == (2, 4)
    np.testing.assert_allclose(level.get(), 1)


RMS = r"""extern "C" __global__ void rms(const double* x, int n, double* y)
{ double sum = 0; for (int i = 0; i < n; i++) sum += x[i] * x[i]; y[0] = sqrt(sum / n); }"""
LINE = r"""extern "C" __global__ void line(const double* x, ptrdiff_t m, double* y, ptrdiff_t n)
{ for (ptrdiff_t i = 0; i < n; i++) y[i] = x[i + m - n] - x[i]; }"""


def test_kernels_filter_images():
    def host(values):
        return np.sqrt((values**2).mean())

    image = xp.asarray(IMAGE)
    expected = scipy.ndimage.generic_filter(IMAGE, host, 3)
    kernels = [
        xp.RawKernel(RMS, "rms"),
        xp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a / _in_ind.size())", "0", "rms_reduction"),
    ]
    for kernel in kernels:
        np.testing.assert_allclose(ndimage.generic_filter(image, kernel, 3).get(), expected)
    lines = ndimage.generic_filter1d(image, xp.RawKernel(LINE, "line"), 3, axis=0)
    padded = np.pad(IMAGE, ((1, 1), (0, 0)), "symmetric")
    np.testing.assert_allclose(lines.get(), padded[2:] - padded[:-2])
    with pytest.raises(TypeError, match="bad function type"):
        ndimage.generic_filter(image, host, 3)


def test_functions_of_the_program_get_arrays_of_the_device():
    image = xp.asarray(IMAGE)
    for name, derivative in (("generic_laplace", "correlate1d"), ("generic_gradient_magnitude", "sobel")):
        kinds = []

        def apply(input, axis, output, mode, cval, derivative=derivative, kinds=kinds):
            kinds.append(type(input))
            weights = (xp.array([1.0, -2.0, 1.0]),) if derivative == "correlate1d" else ()
            return getattr(ndimage, derivative)(input, *weights, axis, output, mode, cval)

        def on_host(input, axis, output, mode, cval, derivative=derivative):
            weights = ([1.0, -2.0, 1.0],) if derivative == "correlate1d" else ()
            return getattr(scipy.ndimage, derivative)(input, *weights, axis, output, mode, cval)

        np.testing.assert_allclose(
            getattr(ndimage, name)(image, apply).get(), getattr(scipy.ndimage, name)(IMAGE, on_host), atol=1e-12
        )
        assert kinds == [xp.ndarray, xp.ndarray]
    labels = xp.asarray((IMAGE > 0.5).astype(int))
    sums = ndimage.labeled_comprehension(image, labels, xp.array([0, 1, 5]), lambda each: each.sum(), float, -1)
    np.testing.assert_allclose(sums.get(), [IMAGE[IMAGE <= 0.5].sum(), IMAGE[IMAGE > 0.5].sum(), -1])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: ndimage.correlate(x + 1j, xp.ones((3, 3)), output=xp.zeros((6, 7))), RuntimeError),
        (lambda x: ndimage.correlate(x + 1j, xp.ones((3, 3)), output="float32"), RuntimeError),
        (lambda x: ndimage.uniform_filter(x, 3, xp.zeros((2, 2))), RuntimeError),
        (lambda x: ndimage.zoom(x, 2, order=7), ValueError),
        (lambda x: ndimage.shift(x, 1, mode="outside"), ValueError),
        (lambda x: ndimage.median_filter(x, 3, mode="constant", cval=float("nan")), NotImplementedError),
        (lambda x: ndimage.distance_transform_edt(x[0]), NotImplementedError),
        (lambda x: ndimage.gaussian_filter(IMAGE.tolist(), 1), TypeError),
        (lambda x: signal.hilbert2(x[None]), ValueError),
    ],
)
def test_what_cupy_refuses_is_refused(call, error):
    with pytest.raises(error):
        call(xp.asarray(IMAGE))


def test_an_output_by_position_is_written_and_the_number_of_labels_is_of_python():
    image, out = xp.asarray(IMAGE), xp.empty(IMAGE.shape, "f4")
    assert ndimage.gaussian_filter(image, 1, 0, out) is out
    np.testing.assert_allclose(out.get(), scipy.ndimage.gaussian_filter(IMAGE, 1), rtol=1e-6)
    labels = xp.zeros(IMAGE.shape, int)
    count = ndimage.label(image > 0.5, np.ones((3, 3), bool), labels)
    assert type(count) is int
    np.testing.assert_array_equal(labels.get(), scipy.ndimage.label(IMAGE > 0.5, np.ones((3, 3)))[0])


def test_equations_are_solved():
    a = RNG.random((2, 4, 4))
    a = a @ np.swapaxes(a, 1, 2) + np.eye(4)
    b = RNG.random((2, 4, 3))
    np.testing.assert_allclose(cupyx.lapack.posv(xp.asarray(a), xp.asarray(b)).get(), np.linalg.solve(a, b))
    np.testing.assert_allclose(cupyx.linalg.invh(xp.asarray(a[0])).get(), np.linalg.inv(a[0]))
    factor = xp.linalg.cholesky(xp.asarray(a))
    np.testing.assert_allclose(cupyx.linalg.cho_solve((factor, True), xp.asarray(b)).get(), np.linalg.solve(a, b))
    right = xp.asarray(b[0], order="F")
    assert cupyx.lapack.gesv(xp.asarray(a[0]), right) is None
    np.testing.assert_allclose(right.get(), np.linalg.solve(a[0], b[0]))
    wide = RNG.random((2, 4))
    nearest = cupyx.lapack.gels(xp.asarray(wide), xp.ones(2))
    np.testing.assert_allclose(nearest.get(), np.linalg.lstsq(wide, np.ones(2), rcond=None)[0])
    with pytest.raises(ValueError, match="F-contiguous"):
        cupyx.lapack.gesv(xp.asarray(a[0]), xp.asarray(b[0]))


def test_signals_of_cupyx_follow_their_definitions():
    x = RNG.random(32)
    given = xp.asarray(x)
    np.testing.assert_allclose(
        cupyx.signal.freq_shift(given, 3.0, 32.0).get(), x * np.exp(-2j * np.pi * 3 / 32 * np.arange(32))
    )
    weights = RNG.random((3, 2))
    expected = [sum(x[i + 2 - p] * x[i + 1 - q] * weights[p, q] for p in range(3) for q in range(2)) for i in range(30)]
    np.testing.assert_allclose(cupyx.signal.convolve1d2o(given, xp.asarray(weights)).get(), expected)
    ceps = cupyx.signal.real_cepstrum(given)
    np.testing.assert_allclose(ceps.get(), np.fft.ifft(np.log(np.abs(np.fft.fft(x)))).real, atol=1e-12)
    phase = cupyx.signal.minimum_phase(given)
    np.testing.assert_allclose(np.abs(np.fft.fft(phase.get())), np.abs(np.fft.fft(x)))
    cells = np.ones(32, "f4")
    cells[15] = 100
    _, found = cupyx.signal.ca_cfar(xp.asarray(cells), 2, 4)
    assert np.nonzero(found.get())[0].tolist() == [*range(6), 15, *range(26, 32)]
    with cupyx.optimizing.optimize(key="sums"):
        assert given.sum() == xp.asarray(x).sum()
    with pytest.raises(TypeError, match="no setting 'trials'"), cupyx.optimizing.optimize(trials=3):
        pass


def test_settings_of_filters_may_be_numpy_arrays_and_their_arrays_may_not():
    image = xp.asarray(IMAGE)
    made = ndimage.gaussian_filter(image, np.array([1.0, 2.0]), mode="nearest")
    np.testing.assert_allclose(made.get(), scipy.ndimage.gaussian_filter(IMAGE, [1.0, 2.0], mode="nearest"))
    made = ndimage.grey_dilation(image, structure=np.ones((3, 1)))
    np.testing.assert_allclose(made.get(), scipy.ndimage.grey_dilation(IMAGE, structure=np.ones((3, 1))))
    with pytest.raises(TypeError, match="Unsupported type"):
        ndimage.convolve(image, np.ones((3, 3)))


@pytest.mark.parametrize("name", ["binary_closing", "binary_dilation", "binary_erosion", "binary_opening"])
def test_operations_of_morphology_are_repeated_by_brute_force_only(name):
    image = xp.asarray(IMAGE > 0.2)
    without_centre = xp.asarray([[1, 1, 1], [1, 0, 1], [1, 1, 1]])
    for arguments in ({"iterations": 2, "brute_force": True}, {"iterations": 2, "structure": without_centre}):
        made = getattr(ndimage, name)(image, **arguments)
        given = {key: value.get() if key == "structure" else value for key, value in arguments.items()}
        np.testing.assert_array_equal(made.get(), getattr(scipy.ndimage, name)(IMAGE > 0.2, **given))
    for structure in (None, (3, 3), xp.ones((3, 3)), xp.asarray([[0, 1, 0], [1, 1, 1], [0, 1, 0]])):
        with pytest.raises(NotImplementedError, match="only brute_force iteration"):
            getattr(ndimage, name)(image, structure=structure, iterations=2)


def test_a_structure_may_be_a_shape():
    made = ndimage.binary_erosion(xp.asarray(IMAGE > 0.2), (3, 1))
    np.testing.assert_array_equal(made.get(), scipy.ndimage.binary_erosion(IMAGE > 0.2, np.ones((3, 1))))


def test_the_values_of_an_image_may_be_the_ends_of_a_type():
    most, least = 2**63 - 1, -(2**63)
    found = ndimage.value_indices(xp.asarray([[most, least], [3, most]]))
    assert {int(key): [place.tolist() for place in places] for key, places in found.items()} == {
        least: [[0], [1]],
        3: [[1], [0]],
        most: [[0, 1], [0, 1]],
    }
    assert {type(key) for key in found} == {np.int64}
    assert list(ndimage.value_indices(xp.asarray([most, least]), ignore_value=most)) == [least]
    host = np.array([[5, 2], [2, 9]], "i2")
    assert list(ndimage.value_indices(xp.asarray(host))) == list(scipy.ndimage.value_indices(host))
    assert ndimage.value_indices(xp.zeros(0, int)) == {}


@pytest.mark.parametrize("name", ["uniform_filter", "minimum_filter1d", "maximum_filter", "median_filter"])
@pytest.mark.parametrize("size", [2**62, 2**63 - 1])
def test_a_filter_has_no_room_for_so_large_a_size(name, size):
    with pytest.raises(tcuda.OutOfMemoryError, match=f"what {name}"):
        getattr(ndimage, name)(xp.ones(3), size)


@pytest.mark.parametrize("shift", [1e300, -1e300, 9.3e18, 2**40])
@pytest.mark.parametrize("mode", ["constant", "wrap", "reflect", "mirror", "nearest", "grid-wrap", "grid-constant"])
@pytest.mark.parametrize("order", [0, 1, 3])
def test_a_large_shift_stays_in_the_image(shift, mode, order):
    for given in (shift, [shift], np.array([shift])):
        assert set(ndimage.shift(xp.ones(5), given, mode=mode, order=order).round(3).tolist()) <= {0.0, 1.0}
