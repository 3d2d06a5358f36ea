"""Linear algebra in the precision of the arrays: ranks, cut-offs and singular matrices."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tcuda
from tcuda.emulation import cupyx

pytestmark = [
    pytest.mark.usefixtures("runtime"),
    pytest.mark.emulated,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

MEASURED = json.loads((Path(__file__).parents[2] / "data" / "linear_algebra_on_h200.json").read_text("utf-8"))
MATRICES = {name: np.array(rows, float).astype("f4") for name, rows in MEASURED["matrices"].items()}

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


# Against an H200


def on_device(case):
    """Return the matrix of a case, which is a name and a dtype."""
    name, dtype = case.split()
    return tcuda.xp.asarray(MATRICES[name].astype(dtype))


@pytest.mark.parametrize("case", MEASURED["slogdet"])
def test_determinants_are_those_of_a_gpu(case):
    matrix = on_device(case)
    sign, logarithm = map(float, MEASURED["slogdet"][case])
    for given in (matrix, tcuda.xp.stack([matrix, matrix])):
        found = tcuda.xp.linalg.slogdet(given)
        np.testing.assert_allclose(found[0].get(), sign, rtol=1e-6)
        np.testing.assert_allclose(found[1].get(), logarithm, rtol=1e-6 if case[-2:] != "f8" else 1e-14)
        assert np.all((tcuda.xp.linalg.det(given).get() == 0) == (sign == 0))


@pytest.mark.parametrize("case", MEASURED["rank_1"])
def test_matrices_of_rank_1_are_as_often_singular_as_on_a_gpu(case):
    generator = np.random.default_rng(1)
    for rows in (2, 3, 4, 8, 33):
        stack = generator.standard_normal((500, rows, 1)) @ generator.standard_normal((500, 1, rows))
        if case.startswith(f"{rows} "):
            sign, _ = tcuda.xp.linalg.slogdet(tcuda.xp.asarray(stack.astype(case[-2:])))
            assert int((sign == 0).sum()) == MEASURED["rank_1"][case]


def calls_of(function, matrix):
    xp = tcuda.xp
    side = xp.ones(len(matrix), matrix.dtype)
    return {
        "inv": lambda: xp.linalg.inv(matrix),
        "inv_stacked": lambda: xp.linalg.inv(xp.stack([matrix, matrix])),
        "solve": lambda: xp.linalg.solve(matrix, side),
        "solve_stacked": lambda: xp.linalg.solve(xp.stack([matrix, matrix]), xp.stack([side, side])[..., None]),
    }[function]


@pytest.mark.parametrize("function", ["inv", "solve"])
def test_results_for_singular_matrices_are_those_of_a_gpu(function):
    for case, expected in MEASURED[function].items():
        found = calls_of(function, on_device(case))().get().ravel()
        np.testing.assert_allclose(found, np.array(expected, float), rtol=1e-4, err_msg=case)


@pytest.mark.parametrize("case", [*MEASURED["singular"], *MEASURED["regular"]])
def test_the_matrices_that_a_gpu_cannot_solve_are_refused_if_the_program_asks_for_errors(case):
    function, _, rest = case.partition(" ")
    call = calls_of(function, on_device(rest))
    with cupyx.errstate(linalg="raise"):
        if case in MEASURED["regular"]:
            call()
        else:
            with pytest.raises(np.linalg.LinAlgError, match=r"Error reported by [sdc]getrf(Batched)? in cu"):
                call()


def test_factors_are_those_of_a_gpu():
    pytest.importorskip("scipy")
    linalg = cupyx.scipy.linalg
    for case, (factors, pivots) in MEASURED["lu_factor"].items():
        found = linalg.lu_factor(on_device(case))
        np.testing.assert_allclose(found[0].get().ravel(), np.array(factors, float), rtol=1e-5, atol=1e-9, err_msg=case)
        assert found[1].tolist() == [int(pivot) for pivot in pivots]


@pytest.mark.parametrize("case", MEASURED["lstsq"])
def test_ranks_of_least_squares_are_those_of_a_gpu(case):
    dtype, rcond = case.split()
    matrix, right = map(tcuda.xp.asarray, ill_conditioned(dtype, 1e-9 if dtype in ("f4", "c8") else 1e-18))
    assert (
        int(tcuda.xp.linalg.lstsq(matrix, right, None if rcond == "None" else float(rcond))[2])
        == (MEASURED["lstsq"][case])
    )


def functions_of_one(dtype):
    """Return the calls, by their names in the table of dtypes, with an array of ``dtype``."""
    xp, linalg = tcuda.xp, tcuda.xp.linalg
    a, p, x = (xp.asarray(np.array(v).astype(dtype)) for v in ([[2, 1], [1, 3]], [1, 3, 2], [0, 1, 2, 3]))
    scipy_linalg = cupyx.scipy.linalg
    return {
        "svd": lambda: linalg.svd(a),
        "svd_s": lambda: linalg.svd(a, compute_uv=False),
        "qr_r": lambda: linalg.qr(a, "r"),
        "inv_stacked": lambda: linalg.inv(a[None]),
        "cond1": lambda: linalg.cond(a, 1),
        "condfro": lambda: linalg.cond(a, "fro"),
        "cond-2": lambda: linalg.cond(a, -2),
        "condinf": lambda: linalg.cond(a, np.inf),
        "norm1": lambda: linalg.norm(a, 1),
        "norm2": lambda: linalg.norm(a, 2),
        "normnuc": lambda: linalg.norm(a, "nuc"),
        "norm_axis": lambda: linalg.norm(a, axis=0),
        "norm0": lambda: linalg.norm(x, 0),
        "norm3": lambda: linalg.norm(x, 3),
        "norminf": lambda: linalg.norm(x, np.inf),
        "tensorinv": lambda: linalg.tensorinv(a, 1),
        "matrix_power2": lambda: linalg.matrix_power(a, 2),
        "matrix_power-2": lambda: linalg.matrix_power(a, -2),
        "matrix_power0": lambda: linalg.matrix_power(a, 0),
        "polyfit": lambda: xp.polyfit(x, x, 1),
        "polyfit_full": lambda: xp.polyfit(x, x, 1, full=True),
        "polyfit_cov": lambda: xp.polyfit(x, x * x, 1, cov=True),
        "roots": lambda: xp.roots(p),
        "poly": lambda: xp.poly(a),
        "S.lu": lambda: scipy_linalg.lu(a),
        "S.lu_factor": lambda: scipy_linalg.lu_factor(a),
        "S.expm": lambda: scipy_linalg.expm(a),
    }


def functions_of_two(first, second):
    """Return the calls, by their names in the table of dtypes, with a matrix and a right side."""
    linalg, scipy_linalg = tcuda.xp.linalg, cupyx.scipy.linalg
    tall, square = (tcuda.xp.asarray(np.array(v).astype(first)) for v in ([[1, 0], [1, 1], [0, 1]], [[1, 0], [1, 1]]))
    b = tcuda.xp.asarray(np.array([1, 2, 3]).astype(second))
    return {
        "lstsq": lambda: linalg.lstsq(tall, b),
        "solve": lambda: linalg.solve(square, b[:2]),
        "tensorsolve": lambda: linalg.tensorsolve(square, b[:2]),
        "solve_triangular": lambda: scipy_linalg.solve_triangular(square, b[:2], lower=True),
        "lu_solve": lambda: scipy_linalg.lu_solve(scipy_linalg.lu_factor(square), b[:2]),
    }


def dtypes_of(call):
    """Return the dtypes of the results of ``call``, or the name of the error."""
    try:
        result = call()
    except Exception as error:
        return type(error).__name__
    return [str(part.dtype) for part in result] if isinstance(result, tuple) else str(result.dtype)


def test_dtypes_of_results_are_those_of_a_gpu():
    pytest.importorskip("scipy")
    wrong = {}
    for case, expected in MEASURED["dtypes"].items():
        name, dtype, *second = case.split()
        calls = functions_of_two(dtype, second[0]) if second else functions_of_one(dtype)
        matrix = tcuda.xp.asarray(np.array([[2, 1], [1, 3]]).astype(dtype))
        found = dtypes_of(calls.get(name, lambda name=name, a=matrix: getattr(tcuda.xp.linalg, name)(a)))
        if found != expected:
            wrong[case] = found, expected
    assert not wrong


def test_solvers_of_lapack_compute_in_the_precision_of_the_array():
    matrix, right = map(tcuda.xp.asarray, ill_conditioned("f4", 1e-9))
    found = cupyx.lapack.gels(matrix, right)
    np.testing.assert_array_equal(found.get(), tcuda.xp.linalg.lstsq(matrix, right)[0].get())
    factor = tcuda.xp.asarray([[1, 0], [1, 0]], dtype="f4")  # a pivot is zero
    with cupyx.errstate(linalg="raise"):
        assert not np.isfinite(cupyx.lapack.potrs(factor, tcuda.xp.ones(2, "f4"), True).get()).any()
