"""Transforms of ``cupyx.scipy.fft`` with plans, and as the backend of SciPy; functions with old names."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import scipy.special

from tcuda.emulation import xp
from tcuda.emulation.cupyx.scipy import fft, linalg, special

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]

SIGNAL = np.random.default_rng(0).random((4, 6)).astype("f4")


@pytest.mark.parametrize("name", ["fft", "ifft", "fft2", "fftn", "ifftn"])
def test_a_plan_gives_the_result_without_a_plan_and_must_fit(name):
    array = xp.asarray(SIGNAL.astype("c8"))
    axes = 1 if name in ("fft", "ifft") else None
    plan = fft.get_fft_plan(array, axes=axes)
    made = getattr(fft, name)(array, plan=plan)
    assert made.dtype == np.complex64
    np.testing.assert_allclose(made.get(), getattr(scipy.fft, name)(SIGNAL), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="plan"):
        getattr(fft, name)(array[:2], plan=plan)
    with plan, pytest.raises(RuntimeError, match="either as a context manager or as an argument"):
        getattr(fft, name)(array, plan=plan)


def test_transforms_without_plans_say_so():
    for name in ("hfft", "ihfft"):
        with pytest.raises(NotImplementedError, match="is not yet supported"):
            getattr(fft, name)(xp.ones(4), plan=object())
    for name in ("dct", "idst"):
        with pytest.raises(NotImplementedError, match="types 2 and 3"):
            getattr(fft, name)(xp.ones(4), type=1)


def test_half_precision_is_transformed_as_single_precision():
    half = SIGNAL.astype("f2")
    for name in ("fft", "irfft", "hfft"):
        made, expected = getattr(fft, name)(xp.asarray(half)), getattr(scipy.fft, name)(half.astype("f4"))
        assert made.dtype == expected.dtype
        np.testing.assert_allclose(made.get(), expected, rtol=1e-5, atol=1e-6)
    assert xp.fft.irfft(xp.asarray(half)).dtype == np.float16  # as on an H200


def test_scipy_calls_the_module_as_its_backend():
    array = xp.asarray(SIGNAL)
    with scipy.fft.set_backend(fft):
        for name in ("fft", "irfft2", "dct", "hfftn"):
            made = getattr(scipy.fft, name)(array)
            assert isinstance(made, xp.ndarray)
            np.testing.assert_allclose(made.get(), getattr(scipy.fft, name)(SIGNAL), rtol=1e-5, atol=1e-5)
    with scipy.fft.set_backend(fft, coerce=True):
        assert isinstance(scipy.fft.fft(SIGNAL), xp.ndarray)


def test_triangular_systems_come_in_stacks():
    rng = np.random.default_rng(1)
    a, b = rng.random((3, 4, 4)) + 4 * np.eye(4), rng.random((3, 4))
    expected = [scipy.linalg.solve_triangular(*pair, lower=True) for pair in zip(a, b, strict=True)]
    made = linalg.solve_triangular(xp.asarray(a), xp.asarray(b), lower=True)
    np.testing.assert_allclose(made.get(), expected)


def test_matrices_of_the_host_are_taken_where_cupy_takes_them():
    a = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(linalg.khatri_rao(a, a).get(), scipy.linalg.khatri_rao(a, a))
    assert linalg.bandwidth(np.tri(4, 5, 1)) == linalg.bandwidth(np.tri(4, 5, 1).tolist()) == (3, 1)
    assert linalg.expm(np.zeros((0, 0))).shape == (0, 0)
    np.testing.assert_array_equal(linalg.lu(np.eye(2))[2].get(), np.eye(2))
    with pytest.raises(TypeError):
        linalg.expm(np.eye(2))


@pytest.mark.parametrize("dtype", ["?", "i1", "f2", "f4"])
def test_the_bandwidth_of_a_matrix_of_any_type(dtype):
    for a, expected in ((np.tri(4, 5, 1), (3, 1)), (np.eye(3), (0, 0)), (np.zeros((2, 2)), (0, 0)), ([], (0, 0))):
        assert linalg.bandwidth(xp.asarray(np.asarray(a, dtype))) == expected
        assert linalg.bandwidth(xp.asarray(np.asarray(a, dtype).T)) == expected[::-1]


def test_matrices_with_another_number_of_axes_are_refused():
    a = xp.arange(3.0)
    for call in (lambda: linalg.bandwidth(a), lambda: linalg.khatri_rao(a, a)):
        with pytest.raises(np.linalg.LinAlgError, match="1-dimensional array given"):
            call()


def test_fast_lengths_are_products_of_the_small_primes_of_cufft():
    expected = [0, 1, 12, 14, 24, 125, 1024]
    assert [fft.next_fast_len(length) for length in (0, 1, 11, 13, 22, 121, 1009)] == expected
    assert fft.next_fast_len(11, real=True) == fft.next_fast_len(np.int64(11)) == 12
    with pytest.raises(ValueError, match="0 or more"):
        fft.next_fast_len(-1)


def test_old_names_warn_of_the_new_ones():
    x, n = xp.asarray([0.25, 0.5]), xp.asarray([1, 2])
    with pytest.warns(DeprecationWarning, match=r"cupy\.kron"):
        made = linalg.kron(xp.eye(2), x[None])
    np.testing.assert_array_equal(made.get(), np.kron(np.eye(2), [[0.25, 0.5]]))
    with pytest.warns(DeprecationWarning, match=r"special\.betainc`"):
        np.testing.assert_allclose(special.btdtr(2.0, 3.0, x).get(), scipy.special.betainc(2.0, 3.0, [0.25, 0.5]))
    with pytest.warns(DeprecationWarning, match=r"special\.betaincinv`"):
        np.testing.assert_allclose(special.btdtri(2.0, 3.0, x).get(), scipy.special.betaincinv(2, 3, [0.25, 0.5]))
    out = xp.empty(2, "c16")
    with pytest.warns(DeprecationWarning, match=r"special\.sph_harm_y`"):
        assert special.sph_harm(1, n, x, 0.5, out) is out
    np.testing.assert_allclose(out.get(), scipy.special.sph_harm_y([1, 2], 1, 0.5, [0.25, 0.5]))
