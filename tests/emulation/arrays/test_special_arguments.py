"""Arguments with which CuPy's functions do something else than NumPy's, or for which emulated devices need care."""

from __future__ import annotations

import numpy as np
import pytest

import tcuda

pytestmark = pytest.mark.usefixtures("runtime")


@pytest.mark.parametrize("shape", [(2, 3), (0, 3)])
def test_einsum_of_one_array_returns_a_view_if_axes_are_reordered_only(shape):
    array = tcuda.xp.ones(shape)
    assert tcuda.xp.einsum("ij->ji", array).base is array
    assert not tcuda.xp.may_share_memory(tcuda.xp.einsum("ij->i", array), array)


def test_einsum_stretches_axes_in_any_order():
    hosts = [np.full((1, 1), 2), np.ones((3, 4), int), np.ones((4, 5), int)]
    arrays = [tcuda.xp.asarray(host) for host in hosts]
    expected = np.einsum("ij,jk,kl", *hosts)
    for optimize in (False, True, "optimal"):
        assert tcuda.xp.einsum("ij,jk,kl", *arrays, optimize=optimize).tolist() == expected.tolist()


def test_einsum_computes_in_the_common_type_of_all_operands():
    hosts = [np.full((2, 3), 4.1).astype("f2"), np.full((3, 2), 2.3).astype("f2"), np.full((2, 2), 3.7, "f4")]
    expected = np.einsum("ij,jk,kl", *[host.astype("f4") for host in hosts])
    arrays = [tcuda.xp.asarray(host) for host in hosts]
    for optimize in (False, True):
        for found in (
            tcuda.xp.einsum("ij,jk,kl", *arrays, optimize=optimize),
            tcuda.xp.einsum(arrays[0], [0, 1], arrays[1], [1, 2], arrays[2], [2, 3], optimize=optimize),
        ):
            np.testing.assert_allclose(found.get(), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["mgrid", "ogrid"])
def test_grids_go_from_arrays_to_arrays(name):
    ends = np.zeros(3)[:, None], np.arange(3.0)[:, None]
    expected = getattr(np, name)[ends[0] : ends[1] : 3j]
    start, stop = map(tcuda.xp.asarray, ends)
    assert getattr(tcuda.xp, name)[start:stop:3j].tolist() == expected.tolist()


def test_other_types_of_arguments_are_refused_as_by_cupy():
    xp = tcuda.xp
    bits = xp.asarray([1, 2], dtype=np.uint8)
    for function in (xp.packbits, xp.unpackbits):
        for order in ("up", 10):
            with pytest.raises(ValueError, match="bitorder must be either 'big' or 'little'"):
                function(bits, bitorder=order)
    with pytest.raises(TypeError):
        xp.unravel_index(xp.ones(2), (2, 2))
    with pytest.raises(ValueError, match="bins"):
        xp.histogramdd(xp.ones((4, 2)), bins=[[0, 1, 2], [0, 1, 2]])
    assert xp.compress(xp.asarray([1.5, 0.0]), xp.asarray([3, 4])).tolist() == [3]
    assert xp.compress(xp.asarray([]), xp.ones((3, 4))).size == 0


def test_a_reshaped_copy_in_column_major_order_has_the_strides_of_columns():
    array = tcuda.xp.arange(6.0).reshape(2, 3)
    assert array.reshape(1, 6, 1, order="F").strides == (8, 8, 48)
    assert (
        array.reshape((3, -1), order="f").tolist() == np.arange(6.0).reshape(2, 3).reshape((3, -1), order="F").tolist()
    )
    assert array.T.reshape(-1, order="A").tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="strings are not allowed for 'copy'"):
        array.reshape(6, copy="False")


def test_numbers_of_repeats_that_do_not_fit_are_refused():
    for repeats, message in (([1, 2], "same length"), ([[1, 2, 3]], "too deep")):
        with pytest.raises(ValueError, match=message):
            tcuda.xp.repeat(tcuda.xp.arange(3), repeats)
    assert tcuda.xp.repeat(tcuda.xp.ones((2, 3)), [1, 2, 0], axis=-1).shape == (2, 3)


def test_symmetric_matrices_of_half_precision_have_eigenvalues_of_half_precision():
    matrix = tcuda.xp.asarray([[2.0, 1], [1, 2]], "float16")
    values, vectors = tcuda.xp.linalg.eigh(matrix)
    assert (values.dtype, vectors.dtype) == ("float16", "float16")
    np.testing.assert_allclose(values.get(), [1, 3], rtol=1e-3)
    np.testing.assert_allclose(tcuda.xp.linalg.eigvalsh(matrix).get(), [1, 3], rtol=1e-3)


@pytest.mark.emulated
def test_the_functions_of_cusolver_are_available():
    from tcuda.emulation.cupyx import cusolver

    assert cusolver.check_availability("geev")
    with pytest.raises(ValueError, match="No available version information"):
        cusolver.check_availability("sort")


@pytest.mark.parametrize("name", ["irfft", "hfft", "irfft2", "irfftn"])
def test_real_results_of_half_precision_have_the_types_of_an_h200(name):
    xp = tcuda.xp
    array = xp.ones((4, 4), "f2")
    found = getattr(xp.fft, name)(array)
    assert found.dtype == (np.float16 if name in ("irfft", "hfft") else np.float32)
    assert getattr(xp.fft, name)(array.astype("f4")).dtype == np.float32
    if name == "irfftn":
        assert xp.fft.irfftn(array, axes=(1,)).dtype == np.float16


def test_an_array_without_elements_has_the_strides_of_its_copies():
    for shape in ((0,), (0, 0, 2)):
        array = tcuda.xp.empty(shape)
        assert array.copy().strides == tcuda.xp.empty_like(array).strides == array.strides


def test_new_arrays_are_filled_with_arrays_that_fit():
    row = tcuda.xp.asarray([1.5, 2.5])
    assert tcuda.xp.full((2, 2), row).tolist() == [[1.5, 2.5]] * 2
    assert tcuda.xp.full_like(tcuda.xp.zeros((2, 2), int), row).tolist() == [[1, 2]] * 2
    with pytest.raises(ValueError, match="broadcast"):
        tcuda.xp.full(3, row)


def test_functions_that_numpy_composes_take_the_options_of_universal_functions():
    x, out = tcuda.xp.asarray([0, 1]), tcuda.xp.zeros(2, "f4")
    for name in ("i0", "sinc"):
        function = getattr(tcuda.xp, name)
        assert function(x, out) is out
        np.testing.assert_allclose(out.get(), getattr(np, name)([0.0, 1.0]), atol=1e-6)
        assert function(x, dtype="f4").dtype == np.float32


def test_diagonals_need_two_axes_and_complex_numbers_a_bound():
    a = tcuda.xp.zeros(3, complex)
    for call in (a.diagonal, a.trace, lambda: tcuda.xp.trace(a)):
        with pytest.raises(np.exceptions.AxisError):
            call()
    with pytest.raises(TypeError, match="bound|limit|Unsupported type"):
        a.clip()
