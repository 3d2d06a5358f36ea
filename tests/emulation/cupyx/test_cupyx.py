"""``cupyx``: page-locked arrays, changes in place, and SciPy on arrays of emulated devices."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.special

import tcuda
from tcuda.emulation import cupyx, xp
from tcuda.emulation.cupyx.scipy import catalogue, fft, linalg, ndimage, signal, special, stats

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]


def test_page_locked_arrays_are_arrays_of_numpy():
    made = cupyx.zeros_pinned((2, 3), np.float32, "F")
    assert (made.shape, made.dtype, made.flags.f_contiguous, made.sum()) == ((2, 3), np.float32, True, 0)
    assert xp.cuda.pinned_memory.is_memory_pinned(made.ctypes.data)
    like = cupyx.empty_like_pinned(xp.zeros((4, 5), order="F"), np.int32)
    assert (like.shape, like.dtype, like.flags.f_contiguous) == ((4, 5), np.int32, True)
    assert cupyx.zeros_like_pinned(made, shape=(3,)).tolist() == [0, 0, 0]
    assert cupyx.empty_pinned(0).size == 0
    with pytest.raises(TypeError, match="subok"):
        cupyx.empty_like_pinned(made, subok=True)
    made[...] = 7
    assert xp.asarray(made).sum() == 42
    xp.get_default_pinned_memory_pool().free_all_blocks()


def test_elements_are_changed_once_for_each_index():
    a = xp.zeros(4)
    cupyx.scatter_add(a, xp.array([1, 1, 3]), xp.array([1.0, 2.0, 4.0]))
    assert a.tolist() == [0, 3, 0, 4]
    cupyx.scatter_max(a, xp.array([0, 1]), 2)
    assert a.tolist() == [2, 3, 0, 4]
    cupyx.scatter_min(a, (slice(None),), 2.5)
    assert a.tolist() == [2, 2.5, 0, 2.5]


def test_rsqrt_has_an_output():
    x = xp.array([1.0, 4.0, 0.0], "f4")
    assert cupyx.rsqrt(x).tolist() == [1, 0.5, np.inf]
    assert cupyx.rsqrt(x).dtype == np.float32
    out = xp.empty(3, "f4")
    assert cupyx.rsqrt(x, out) is out
    assert out.tolist() == [1, 0.5, np.inf]
    with pytest.raises(TypeError, match="Unsupported type"):
        cupyx.rsqrt(np.ones(3))
    fused = xp.fuse(kernel_name="roots")(lambda x: cupyx.rsqrt(x + 3))
    assert fused(xp.array([1.0, 13.0])).tolist() == [0.5, 0.25]


def test_the_error_state_is_that_of_linear_algebra():
    assert cupyx.geterr()["linalg"] == "ignore"
    with cupyx.errstate(linalg="raise"):
        assert cupyx.geterr()["linalg"] == "raise"
    assert cupyx.geterr()["linalg"] == "ignore"
    with pytest.raises(NotImplementedError):
        cupyx.seterr(divide="raise")


SINGULAR = [[1.0, 2.0], [2.0, 4.0]]


@pytest.mark.parametrize(
    "solve",
    [
        lambda a: xp.linalg.inv(a),
        lambda a: xp.linalg.solve(a, xp.ones(2)),
        lambda a: xp.linalg.cholesky(-a),
        lambda a: xp.linalg.tensorinv(a, 1),
        lambda a: xp.linalg.matrix_power(a, -2),
    ],
    ids=["inv", "solve", "cholesky", "tensorinv", "matrix_power"],
)
def test_matrices_without_a_solution_give_no_numbers_unless_the_program_asks_for_errors(solve):
    a = xp.array(SINGULAR)
    assert not np.isfinite(solve(a).get()).any()
    with cupyx.errstate(linalg="raise"), pytest.raises(np.linalg.LinAlgError):
        solve(a)


def test_shapes_that_have_no_solution_are_refused_with_every_setting():
    for setting in ("ignore", "raise"):
        with cupyx.errstate(linalg=setting):
            for call in (lambda: xp.linalg.inv(xp.ones((2, 3))), lambda: xp.linalg.eigh(xp.ones(3))):
                with pytest.raises(np.linalg.LinAlgError):
                    call()


def test_the_result_of_a_matrix_with_nan_is_nan():
    values, vectors = xp.linalg.eigh(xp.full((2, 2), xp.nan))
    assert np.isnan(values.get()).all()
    assert np.isnan(vectors.get()).all()
    assert vectors.shape == (2, 2)


def test_the_host_waits_for_the_status_of_the_solver_only_if_errors_are_asked_for():
    a = xp.eye(3)
    clock = tcuda.emulation.clock()
    stream = tcuda.current_stream()
    tcuda._sleep(10_000_000)
    xp.linalg.inv(a)
    assert not stream.query()
    before = clock.now()
    with cupyx.errstate(linalg="raise"):
        xp.linalg.inv(a)
    assert clock.now() - before > 9_000_000
    assert stream.query()


@pytest.mark.filterwarnings("ignore:cupyx.allow_synchronize")
def test_waits_for_a_device_can_be_forbidden():
    x = xp.arange(3)
    with cupyx.allow_synchronize(False):
        (x + 1).sum()
        tcuda.current_stream().synchronize()
        for wait in (x.get, x[1].item, lambda: bool(x[0]), lambda: xp.nonzero(x), xp.cuda.Device().synchronize):
            with pytest.raises(cupyx.DeviceSynchronized, match="detected while disallowed"):
                wait()
        with cupyx.allow_synchronize(True):
            assert x.tolist() == [0, 1, 2]
        with pytest.raises(RuntimeError):
            x.get()
    assert x.tolist() == [0, 1, 2]


def test_the_scope_that_forbids_waits_warns_at_the_line_of_the_program():
    with pytest.warns(UserWarning, match="allow_synchronize will be removed") as caught:
        cupyx.allow_synchronize(True).__enter__()
    assert caught[0].filename == __file__


def test_ranges_of_the_profiler_are_named():
    @cupyx.profiler.time_range()
    def compute():
        return 3

    assert compute() == 3
    with cupyx.profiler.profile(), cupyx.profiler.time_range("named", sync=True):
        pass
    with pytest.raises(ValueError, match="cannot be None"), cupyx.profiler.time_range():
        pass


def test_a_benchmark_has_times_of_the_host_and_of_devices():
    calls = []
    x = xp.ones(1 << 20)
    times = cupyx.profiler.benchmark(lambda n: calls.append(x * n), (2,), n_repeat=3, n_warmup=2, name="double")
    assert len(calls) == 5
    assert (times.name, times.cpu_times.shape, times.gpu_times.shape) == ("double", (3,), (1, 3))
    assert (times.gpu_times > 5e-6).all()  # 16 MiB at 2 TB/s take 8 us
    assert "double" in str(times)
    assert "GPU-0" in str(times)
    assert "GPU-0" not in times.to_str()
    with pytest.raises(ValueError, match="`args` should be of tuple type"):
        cupyx.profiler.benchmark(len, [1])
    with pytest.raises(ValueError, match="callable"):
        cupyx.profiler.benchmark(3)


def test_the_older_name_of_the_benchmark_gives_a_warning():
    calls = []
    with pytest.warns(UserWarning, match="moved to cupyx.profiler.benchmark") as caught:
        times = cupyx.time.repeat(calls.append, (1,), n_repeat=2, n_warmup=1, name="append")
    assert caught[0].filename == __file__
    assert calls == [1, 1, 1]
    assert (times.name, times.gpu_times.shape) == ("append", (1, 2))


HOST = np.random.default_rng(0).random((6, 6)).astype(np.float32) + 0.5


@pytest.mark.parametrize(
    ("function", "expected", "arguments"),
    [
        (special.gamma, scipy.special.gamma, ()),
        (special.softmax, scipy.special.softmax, (1,)),
        (ndimage.gaussian_filter, scipy.ndimage.gaussian_filter, (1.5,)),
        (ndimage.label, scipy.ndimage.label, ()),
        (linalg.lu_factor, scipy.linalg.lu_factor, ()),
        (signal.medfilt2d, scipy.signal.medfilt2d, (3,)),
        (signal.windows.hann, lambda x, n: scipy.signal.windows.hann(n), (5,)),
        (fft.dctn, scipy.fft.dctn, ()),
        (stats.zscore, scipy.stats.zscore, ()),
    ],
)
def test_functions_are_those_of_scipy_on_the_device(function, expected, arguments):
    given = (xp.asarray(HOST), *arguments) if function is not signal.windows.hann else arguments
    results, wanted = function(*given), expected(HOST, *arguments)
    results, wanted = (each if isinstance(each, tuple) else (each,) for each in (results, wanted))
    for result, want in zip(results, wanted, strict=True):
        if isinstance(want, int):  # such as the number of labels
            assert result == want
            continue
        assert isinstance(result, xp.ndarray)
        # The factors have the rounding of a GPU.
        np.testing.assert_allclose(result.get(), want, rtol=1e-4 if function is linalg.lu_factor else 0)
        assert result.dtype == np.asarray(want).dtype


def test_an_output_is_written_on_the_device():
    x, out = xp.asarray(HOST), xp.empty((6, 6), "f4")
    assert ndimage.uniform_filter(x, 3, output=out) is out
    np.testing.assert_array_equal(out.get(), scipy.ndimage.uniform_filter(HOST, 3))
    doubled = xp.empty((6, 6), "f4")
    assert special.erf(x, doubled) is doubled
    np.testing.assert_array_equal(doubled.get(), scipy.special.erf(HOST))


def test_universal_functions_of_scipy_take_arrays_of_the_device():
    result = scipy.special.erf(xp.asarray(HOST))
    assert isinstance(result, xp.ndarray)
    np.testing.assert_array_equal(result.get(), scipy.special.erf(HOST))
    assert pickle.loads(pickle.dumps(special.erf)) is special.erf
    assert special.psi is special.digamma


@pytest.mark.parametrize("function", [special.gamma, special.softmax, ndimage.gaussian_filter])
def test_arrays_of_the_host_are_refused(function):
    with pytest.raises(TypeError, match="Unsupported type"):
        function(HOST, *([1.0] if function is ndimage.gaussian_filter else []))


def test_every_listed_name_of_scipy_exists():
    for module in catalogue.NAMES:
        namespace = cupyx.scipy
        for part in module.split("."):
            namespace = getattr(namespace, part)
        assert set(catalogue.NAMES[module]) & set(dir(namespace))
        for name in dir(namespace):
            getattr(namespace, name)
    assert cupyx.scipy.get_array_module(xp.ones(1)) is cupyx.scipy
    assert cupyx.scipy.get_array_module(HOST) is scipy
    with pytest.raises(AttributeError, match="no attribute 'optimize'"):
        cupyx.scipy.optimize  # noqa: B018


def test_work_of_scipy_is_work_of_the_current_stream(captured):
    x = xp.ones((6, 6))
    result, replay = captured(lambda: ndimage.gaussian_filter(x, 1.0) + special.erf(x))
    x[...] = 2
    replay()
    tcuda.synchronize()
    np.testing.assert_allclose(result.get(), np.full((6, 6), 2 + scipy.special.erf(2)))


def test_import_cupy_needs_no_scipy(output_of):
    code = (
        "import sys; sys.modules['scipy'] = None\n"
        "import tcuda.emulation; tcuda.emulation.install_as_cupy()\n"
        "import cupy, cupyx, cupyx.scipy; print(cupy.arange(3).sum(), cupy._core.core.ndarray is cupy.ndarray)"
    )
    assert output_of(code, TCUDA_RUNTIME="emulated").split() == ["3", "True"]


def test_the_late_schedule_runs_functions_of_scipy(output_of):
    code = (
        "import numpy as np, scipy.linalg; from tcuda.emulation import xp, cupyx\n"
        "from tcuda.emulation.cupyx.scipy import linalg, special, ndimage\n"
        "a = xp.asarray(np.eye(3) * 4); b = linalg.solve_triangular(a, xp.ones(3)); print(b, special.erf(b * 0))\n"
        "out = xp.zeros(3); ndimage.uniform_filter1d(b, 3, output=out); print(out)"
    )
    printed = output_of(code, TCUDA_RUNTIME="emulated", TCUDA_EMULATED_SCHEDULE="late")
    assert printed.splitlines() == ["[0.25 0.25 0.25] [0. 0. 0.]", "[0.25 0.25 0.25]"]
