"""Linear algebra in the precision of the arrays: ranks, cut-offs and singular matrices."""

from __future__ import annotations

import numpy as np
import pytest

import tcuda
from tcuda.emulation import cupyx

pytestmark = pytest.mark.usefixtures("runtime")

SINGULAR = np.array([[3, 1], [1, np.float32(1) / np.float32(3)]], np.float32)
"""A matrix that is singular in the LU decomposition of single precision, and not in that of double precision."""


def ill_conditioned(dtype, least):
    """Return a matrix whose singular values go from 1 to ``least``, and a right side."""
    generator = np.random.default_rng(0)
    left, right = (np.linalg.qr(generator.standard_normal((rows, 20)))[0] for rows in (60, 20))
    return ((left * np.geomspace(1, least, 20)) @ right.T).astype(dtype), generator.standard_normal(60).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "c8", "f8", "c16"])
@pytest.mark.parametrize("rcond", [None, -1, 0, 1, 1e-3])
def test_lstsq_cuts_off_at_the_precision_of_the_array(dtype, rcond):
    xp = tcuda.xp
    epsilon = np.finfo(dtype).eps
    matrix, right = ill_conditioned(dtype, 1e-9 if epsilon > 1e-10 else 1e-18)
    cut = epsilon * 60 if rcond is None else epsilon if rcond <= 0 or rcond >= 1 else rcond
    singular = xp.linalg.svd(xp.asarray(matrix), full_matrices=False)[1]
    x, rest, rank, values = xp.linalg.lstsq(xp.asarray(matrix), xp.asarray(right), rcond=rcond)
    assert int(rank) == int((singular > cut * singular.max()).sum()) < 20
    assert (x.dtype, rank.dtype, values.dtype, rest.dtype) == (dtype, np.int32, singular.dtype, singular.dtype)
    assert rest.shape == (0,)
    shortest = xp.linalg.pinv(xp.asarray(matrix), cut) @ xp.asarray(right)
    np.testing.assert_allclose(xp.linalg.norm(x).get(), xp.linalg.norm(shortest).get(), rtol=1e-3)


@pytest.mark.parametrize("sides", [(), (1,), (2,)])
def test_lstsq_returns_the_squared_lengths_of_the_differences(sides):
    matrix, right = np.array([[1.0, 0], [1, 1], [0, 1]]), np.arange(1.0, 4)
    right = np.stack([right] * sides[0], axis=1) if sides else right
    expected = np.linalg.lstsq(matrix, right, rcond=None)
    found = tcuda.xp.linalg.lstsq(tcuda.xp.asarray(matrix), tcuda.xp.asarray(right))
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine.get(), theirs, atol=1e-12)


@pytest.mark.parametrize("dtype", ["f4", "c8"])
def test_a_matrix_that_is_singular_in_single_precision_has_no_determinant_and_no_inverse(dtype):
    xp = tcuda.xp
    matrix = xp.asarray(SINGULAR.astype(dtype))
    sign, logarithm = xp.linalg.slogdet(matrix)
    assert (float(sign.real), float(logarithm), float(xp.linalg.det(matrix).real)) == (0, -np.inf, 0)
    assert (sign.dtype, logarithm.dtype) == (dtype, "f4")
    calls = [
        lambda: xp.linalg.inv(matrix),
        lambda: xp.linalg.inv(xp.stack([matrix, matrix])),
        lambda: xp.linalg.solve(matrix, xp.ones(2, dtype)),
        lambda: xp.linalg.tensorinv(matrix, 1),
        lambda: xp.linalg.tensorsolve(matrix, xp.ones(2, dtype)),
        lambda: xp.linalg.matrix_power(matrix, -1),
    ]
    with cupyx.errstate(linalg="raise"):
        for call in calls:
            with pytest.raises(np.linalg.LinAlgError):
                call()
    assert float(xp.linalg.slogdet(matrix.astype("c16" if dtype == "c8" else "f8"))[0].real) == 1


def test_the_noise_of_single_precision_is_that_of_single_precision():
    xp = tcuda.xp
    generator = np.random.default_rng(0)
    given = generator.standard_normal((5, 2)) @ generator.standard_normal((2, 5))
    for dtype, lowest, highest in (("f4", 1e6, 1e11), ("c8", 1e6, 1e11), ("f8", 1e13, np.inf)):
        matrix = xp.asarray(given.astype(dtype))
        assert lowest < float(xp.linalg.cond(matrix)) < highest
        assert lowest < 1 / float(xp.linalg.norm(matrix, -2)) < highest
        assert int(xp.linalg.matrix_rank(matrix)) == 2
        assert xp.linalg.pinv(matrix).dtype == dtype
    nuclear = xp.linalg.norm(xp.asarray(given, dtype="f4"), "nuc", keepdims=True)
    assert float(nuclear[0, 0]) == pytest.approx(np.linalg.norm(given, "nuc"), 1e-4)
    assert xp.linalg.norm(xp.ones((2, 3, 4), "f4"), 2, axis=(0, 2), keepdims=True).shape == (1, 3, 1)


@pytest.mark.parametrize("function", ["inv", "det", "slogdet", "cholesky"])
def test_a_matrix_that_is_not_square_is_refused(function):
    for shape in ((2, 3), (2,)):
        with pytest.raises(np.linalg.LinAlgError, match="must be square|at least two-dimensional"):
            getattr(tcuda.xp.linalg, function)(tcuda.xp.ones(shape))


def test_right_sides_of_other_shapes_are_refused():
    xp = tcuda.xp
    with pytest.raises(ValueError, match="needs 2 elements; b has 3"):
        xp.linalg.solve(xp.eye(2), xp.ones(3))
    with pytest.raises(ValueError, match=r"b \(\.\.\., M, K\)"):
        xp.linalg.solve(xp.eye(2), xp.ones((3, 1)))
    with pytest.raises(ValueError, match="at least one dimension"):
        xp.linalg.solve(xp.eye(2), xp.asarray(1.0))
    for shape, text in (((3,), "Incompatible"), ((2, 1, 1), "at most two-dimensional")):
        with pytest.raises(np.linalg.LinAlgError, match=text):
            xp.linalg.lstsq(xp.eye(2), xp.ones(shape))
    with pytest.raises(np.linalg.LinAlgError, match="must be two-dimensional"):
        xp.linalg.lstsq(xp.ones((1, 2, 2)), xp.ones(2))
    with pytest.raises(ValueError, match="ind"):
        xp.linalg.tensorinv(xp.eye(2), 0)
