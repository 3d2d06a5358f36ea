"""Plans of Fourier transforms: the layout of results, the plans of the caller, and the cache of plans."""

from __future__ import annotations

import numpy as np
import pytest

import tcuda
from tcuda.emulation import xp
from tcuda.emulation.arrays.fourier import cufft, fftpack

pytestmark = pytest.mark.usefixtures("memory_comes_back")


def numbers(shape, dtype="D"):
    random = np.random.default_rng(0)
    return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("function", ["fftn", "ifft2"])
@pytest.mark.usefixtures("runtime")
def test_one_plan_for_several_axes_keeps_the_layout(function, order):
    host = np.asarray(numbers((3, 4, 5)), order=order)
    result = getattr(tcuda.xp.fft, function)(tcuda.xp.asarray(host))
    np.testing.assert_allclose(result.get(), getattr(np.fft, function)(host))
    assert (result.flags.c_contiguous, result.flags.f_contiguous) == (order == "C", order == "F")


@pytest.mark.usefixtures("runtime")
def test_a_plan_for_each_axis_makes_the_elements_of_the_last_axis_neighbours():
    host = numbers((3, 4, 5))
    for function, options, strides in (
        ("fft", {"axis": 0}, (16, 48, 192)),
        ("fft", {"axis": 1}, (320, 16, 64)),
        ("fftn", {"axes": (0, 2)}, (320, 80, 16)),
    ):
        array = tcuda.xp.asarray(host)
        result = getattr(tcuda.xp.fft, function)(array, **options)
        np.testing.assert_allclose(result.get(), getattr(np.fft, function)(host, **options))

        assert result.strides == strides


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize("dtype", ["e", "f", "d", "F", "D", "i"])
def test_results_have_half_or_double_the_precision_as_with_cupy(dtype):
    array = tcuda.xp.ones((4, 4), dtype)
    single = dtype in "efF"
    assert tcuda.xp.fft.fft2(array).dtype == ("complex64" if single else "complex128")
    assert tcuda.xp.fft.irfftn(array).dtype == ("float32" if single else "float64")


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("shape", "axes", "function", "value_type", "plan_class"),
    [
        ((8,), None, "fft", "C2C", cufft.Plan1d),
        ((3, 4), (0,), "fftn", "C2C", cufft.Plan1d),
        ((3, 4, 5), (1, 2), "fftn", "C2C", cufft.PlanNd),
        ((3, 4, 5), None, "rfftn", "R2C", cufft.PlanNd),
        ((3, 4, 5), None, "irfftn", "C2R", cufft.PlanNd),
    ],
)
def test_a_plan_that_fits_is_used_in_its_scope(shape, axes, function, value_type, plan_class):
    host = numbers(shape) if value_type != "R2C" else numbers(shape).real
    array = xp.asarray(host)
    plan = fftpack.get_fft_plan(array, axes=axes, value_type=value_type)
    assert isinstance(plan, plan_class)
    assert cufft.get_current_plan() is None
    options = {} if axes is None else {"axes": axes}
    with plan:
        assert cufft.get_current_plan() is plan
        result = getattr(xp.fft, function)(array, **options)
    assert cufft.get_current_plan() is None
    np.testing.assert_allclose(result.get(), getattr(np.fft, function)(host, **options))


@pytest.mark.emulated
def test_a_plan_that_does_not_fit_is_refused():
    line, square = xp.asarray(numbers(8)), xp.asarray(numbers((4, 4)))
    with fftpack.get_fft_plan(line):
        for array, message in (
            (line[:4], "Target array size does not match the plan"),
            (line.astype("F"), "cuFFT plan dtype mismatch"),
            (xp.ones((3, 8), "D"), "Batch size does not match the plan"),
        ):
            with pytest.raises(ValueError, match=message):
                xp.fft.fft(array)
    plan = fftpack.get_fft_plan(square)
    with plan, pytest.raises(ValueError, match=r"The cuFFT plan and a\.shape do not match"):
        xp.fft.fftn(xp.ones((4, 8), "D"))
    with plan, pytest.raises(ValueError, match="expected plan to have type"):
        xp.fft.fft(line)
    with plan, pytest.raises(ValueError, match="array orders mismatch"):
        xp.fft.fftn(xp.asfortranarray(square))
    with plan, pytest.raises(RuntimeError, match="either as a context manager or as an argument"):
        fftpack.fftn(square, plan=plan)
    np.testing.assert_allclose(fftpack.fftn(square, plan=plan).get(), np.fft.fftn(square.get()))
    for options, message in (
        ({"axes": (0, 2)}, "exceeds the number of dimensions"),
        ({"axes": (0, 1), "shape": 4}, "different lengths"),
        ({"shape": (0, 4)}, "Invalid number of FFT data points"),
        ({"value_type": "R2R"}, "value_type is one of"),
        ({"value_type": "R2C", "a": xp.asfortranarray(square)}, "F-order arrays is not supported"),
        ({"a": xp.ones((4, 4, 4))[:, ::2]}, "must be contiguous"),
    ):
        with pytest.raises(ValueError, match=message):
            fftpack.get_fft_plan(**{"a": square, **options})


@pytest.mark.emulated
def test_scipys_older_module_makes_plans_and_takes_them():
    pytest.importorskip("scipy")
    from tcuda.emulation.cupyx.scipy import fftpack as module

    array = xp.asarray(numbers(8))
    plan = module.get_fft_plan(array)
    np.testing.assert_allclose(module.ifft(module.fft(array, plan=plan), plan=plan).get(), array.get())
    assert "rfft" in dir(module)


@pytest.mark.emulated
def test_the_cache_keeps_the_plans_that_were_used_last():
    config = xp.fft.config
    cache = config.get_plan_cache()
    size = config.get_plan_cache_size()
    try:
        config.clear_plan_cache()
        config.set_plan_cache_size(2)
        for length in (4, 5, 4, 6):
            xp.fft.fft(xp.ones(length, "D"))
        assert cache.get_curr_size() == 2
        assert [node.plan.nx for _, node in cache] == [6, 4]
        config.set_plan_cache_size(0)
        assert cache.get_curr_size() == 0
    finally:
        config.set_plan_cache_size(size)


@pytest.mark.emulated
def test_settings_are_those_of_cupy():
    config = xp.fft.config
    with pytest.warns(DeprecationWarning, match="enable_nd_planning is deprecated"):
        assert config.enable_nd_planning is True
    assert config.devices is None
    with pytest.raises(ValueError, match="at least 2 GPUs"):
        config.set_cufft_gpus([0])
    with pytest.raises(RuntimeError, match="no callbacks of cuFFT"):
        config.set_cufft_callbacks("")
