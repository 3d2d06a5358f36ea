"""The functions of ``cupy.cublas`` on emulated devices, compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcuda.emulation.arrays import cublas

pytestmark = pytest.mark.emulated

TYPES = ["f", "d", "F", "D"]


def numbers(*shape: int, dtype: str, seed: int = 0) -> Any:
    """Return random numbers of a type."""
    random = np.random.default_rng(seed)
    made = random.uniform(-1, 1, shape)
    return (made + 1j * random.uniform(-1, 1, shape)).astype(dtype) if dtype in "FD" else made.astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_vectors(xp: Any, dtype: str) -> None:
    x, y = numbers(5, dtype=dtype), numbers(5, dtype=dtype, seed=1)
    a, b = xp.asarray(x), xp.asarray(y)
    sizes = abs(x.real) + abs(x.imag)
    np.testing.assert_allclose(cublas.asum(a).get(), sizes.sum(), rtol=1e-5)
    np.testing.assert_allclose(cublas.nrm2(a).get(), np.linalg.norm(x), rtol=1e-5)
    assert (int(cublas.iamax(a)), int(cublas.iamin(a))) == (sizes.argmax() + 1, sizes.argmin() + 1)
    np.testing.assert_allclose(cublas.dotu(a, b).get(), x @ y, rtol=1e-4)
    np.testing.assert_allclose(cublas.dotc(a, b).get(), x.conj() @ y, rtol=1e-4)
    cublas.axpy(2, a, b)
    np.testing.assert_allclose(b.get(), 2 * x + y, rtol=1e-5)
    cublas.scal(3, a)
    np.testing.assert_allclose(a.get(), 3 * x, rtol=1e-5)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("trans", ["N", "T", "H"])
def test_matrices(xp: Any, dtype: str, trans: str) -> None:
    operations: dict[str, Any] = {"N": lambda m: m, "T": lambda m: m.T, "H": lambda m: m.T.conj()}
    operation = operations[trans]
    a, b, c = (numbers(3, 3, dtype=dtype, seed=seed) for seed in range(3))
    ours = [xp.asarray(matrix) for matrix in (a, b, c)]
    product = cublas.gemm(trans, "N", ours[0], ours[1], ours[2], alpha=2, beta=xp.asarray(3.0))
    assert product is ours[2]
    np.testing.assert_allclose(product.get(), 2 * operation(a) @ b + 3 * c, rtol=1e-4, atol=1e-5)
    total = cublas.geam(trans, "N", 2, ours[0], 3, ours[1])
    np.testing.assert_allclose(total.get(), 2 * operation(a) + 3 * b, rtol=1e-4, atol=1e-5)
    y = xp.asarray(b[0])
    cublas.gemv(trans, 2, ours[0], ours[1][1], 0, y)
    np.testing.assert_allclose(y.get(), 2 * operation(a) @ b[1], rtol=1e-4, atol=1e-5)


def test_products_of_vectors_and_diagonals(xp: Any) -> None:
    a, x = xp.arange(6.0).reshape(2, 3), xp.asarray([1.0, 2.0, 3.0])
    assert cublas.dgmm("R", a, x).tolist() == (a.get() * [1, 2, 3]).tolist()
    assert cublas.dgmm("L", a, x[:2]).tolist() == (a.get() * [[1], [2]]).tolist()
    assert cublas.dgmm("R", a, x, incx=-1).tolist() == (a.get() * [3, 2, 1]).tolist()
    expected = a.get() + 2 * np.outer([1, 2], [1, 2, 3])
    cublas.ger(2, x[:2], x, a)
    assert a.tolist() == expected.tolist()
    lower = cublas.syrk("N", a, lower=True)
    assert lower.tolist() == np.tril(expected @ expected.T).tolist()


def test_wrong_arguments(xp: Any) -> None:
    with pytest.raises(TypeError, match="invalid dtype"):
        cublas.asum(xp.ones(3, "i"))
    with pytest.raises(ValueError, match="1D array"):
        cublas.nrm2(xp.ones((2, 2)))
    with pytest.raises(ValueError, match="same size"):
        cublas.axpy(1, xp.ones(2), xp.ones(3))
    with pytest.raises(TypeError, match="invalid trans"):
        cublas.gemm("X", "N", xp.ones((2, 2)), xp.ones((2, 2)))
    with pytest.raises(TypeError, match="dotu"):
        cublas.dot(xp.ones(2, "D"), xp.ones(2, "D"))
