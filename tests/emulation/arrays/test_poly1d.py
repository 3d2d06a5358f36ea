"""Polynomials of the array namespace, and the functions that take them."""

from __future__ import annotations

import numpy as np
import pytest

import tcuda

pytestmark = pytest.mark.usefixtures("runtime")


def polynomial(*coefficients, **options):
    return tcuda.xp.poly1d(tcuda.xp.asarray(coefficients), **options)


def test_a_polynomial_has_the_attributes_of_numpys():
    made, expected = polynomial(0, 1.0, -3, 2), np.poly1d([0, 1.0, -3, 2])
    assert made.order == made.o == len(made) == 2
    for name in ("c", "coef", "coefficients", "coeffs"):
        assert getattr(made, name).tolist() == expected.coeffs.tolist()
    assert made[0] == 2
    assert made[7] == made[-1] == 0
    assert made(tcuda.xp.arange(4.0)).tolist() == pytest.approx(expected(np.arange(4.0)).tolist(), abs=1e-12)
    assert repr(made) == repr(expected)
    assert str(polynomial(1, 2, variable="t")) == str(np.poly1d([1, 2], variable="t"))
    assert made.get() == expected
    assert tcuda.xp.poly1d(expected) == made
    assert made != polynomial(1.0, 0)


def test_coefficients_can_be_set():
    made = polynomial(1, 2)
    made[3] = 5
    assert made.coeffs.tolist() == [5, 0, 1, 2]
    with pytest.raises(ValueError, match="Negative powers are not supported"):
        made[-1] = 1
    with pytest.raises(AttributeError, match="Cannot set attribute"):
        made.coeffs = tcuda.xp.zeros(4)
    made.set(np.poly1d([4, 3, 2, 1], variable="z"))
    assert made.variable == "z"
    assert made.coeffs.tolist() == [4, 3, 2, 1]
    with pytest.raises(TypeError, match="Only numpy.poly1d can be set"):
        made.set([1, 2])


@pytest.mark.parametrize(
    "combine",
    [
        lambda p, a: p + a, lambda p, a: a * 2 - p, lambda p, a: p * p - 1, lambda p, a: 3 * p, lambda p, a: p / 2,
        lambda p, a: -p, lambda p, a: p**3, lambda p, a: p**0, lambda p, a: p(p),
    ],
)  # fmt: skip
def test_arithmetic_gives_numpys_results(combine):
    host = np.array([2.0, 0, -1])
    result = combine(tcuda.xp.poly1d(tcuda.xp.asarray(host)), tcuda.xp.asarray([1.0, 2, 3]))
    expected = combine(np.poly1d(host), np.array([1.0, 2, 3]))
    array = result.coeffs if isinstance(result, tcuda.xp.poly1d) else result
    np.testing.assert_allclose(array.get(), getattr(expected, "coeffs", expected), atol=1e-12)


def test_functions_take_polynomials():
    xp = tcuda.xp
    made = polynomial(1.0, 2, 3)
    assert isinstance(xp.polymul(made, xp.asarray([1.0, 1])), xp.poly1d)
    assert xp.polyadd(made, made) == polynomial(2.0, 4, 6)
    assert xp.polyval(made, 2.0).item() == 11
    assert xp.polyval(made, polynomial(1.0, 0)) == made
    assert xp.roots(polynomial(2.0, 4)).tolist() == [-2]
    assert xp.add(made, xp.ones(3)).tolist() == [2, 3, 4]
    assert xp.asarray(made).tolist() == [1, 2, 3]


def test_the_polynomial_of_roots_has_the_type_of_cupy():
    xp = tcuda.xp
    assert xp.poly(xp.arange(3, dtype=np.float16)).dtype == np.float64
    assert xp.poly(xp.eye(2, dtype=np.float16)).dtype == np.float16
    for dtype in (np.float16, np.float32, bool):
        none = xp.poly(xp.zeros(0, dtype))
        assert (none, type(none)) == (1.0, float)


def test_polynomials_that_cupy_refuses_are_refused():
    xp = tcuda.xp
    made = polynomial(1.0, 2)
    with pytest.raises(ValueError, match="Polynomial must be 1d only"):
        xp.poly1d(xp.ones((2, 2)))
    for power in (-1, 1.5, [2]):
        with pytest.raises(ValueError, match="Power to non-negative integers only"):
            made**power
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        made**2.0
    for call in (made.integ, made.deriv, lambda: made == 1, lambda: made / made):
        with pytest.raises(NotImplementedError):
            call()
    with pytest.raises(NotImplementedError, match="Only complex Hermitian and real symmetric"):
        xp.poly(xp.arange(4.0).reshape(2, 2))
    with pytest.raises(TypeError):
        np.asarray(made)


def test_series_give_numpys_values():
    xp = tcuda.xp
    module, expected = xp.polynomial.polynomial, np.polynomial.polynomial
    points, coefficients = np.array([[0.5, 2], [1, -1]]), np.array([3.0, 0, 2, 0])
    x, c = xp.asarray(points), xp.asarray(coefficients)
    np.testing.assert_allclose(module.polyvander(x, 3).get(), expected.polyvander(points, 3))
    np.testing.assert_allclose(module.polyval(x, c).get(), expected.polyval(points, coefficients))
    np.testing.assert_allclose(module.polyval(2, c).get(), expected.polyval(2, coefficients))
    np.testing.assert_allclose(module.polyvalfromroots(x, c).get(), expected.polyvalfromroots(points, coefficients))
    np.testing.assert_allclose(module.polycompanion(c).get(), expected.polycompanion(coefficients))
    with pytest.raises(TypeError, match="must be an integer"):
        module.polyvander(x, 2.0)
    with pytest.raises(ValueError, match="non-negative"):
        module.polyvander(x, -1)


@pytest.mark.emulated
def test_the_late_schedule_gives_the_matrix_of_a_polynomial(output_of):
    code = """
import tcuda.emulation
tcuda.emulation.enable(1, schedule="late")
xp = tcuda.emulation.xp
made = xp.polynomial.polynomial.polycompanion
print(made(xp.asarray([3.0, 0, 2, 0])).tolist(), made(xp.asarray([3, 1])).tolist())
try:
    made(xp.asarray([3.0, 0]))
except ValueError as error:
    print(error)
"""
    assert output_of(code, TCUDA_RUNTIME=None).splitlines() == [
        "[[0.0, -1.5], [1.0, 0.0]] [[-3.0]]",
        "Series must have maximum degree of at least 1.",
    ]


def test_coefficients_are_trimmed_and_get_one_type():
    xp = tcuda.xp
    utils = xp.polynomial.polyutils
    assert utils.trimseq(xp.asarray([1, 2, 0, 0])).tolist() == [1, 2]
    assert utils.trimseq(xp.asarray([0, 0])).tolist() == [0]
    first, second = utils.as_series([xp.asarray([1, 0]), xp.asarray([1j])])
    assert (first.tolist(), first.dtype, second.dtype) == ([1], "complex128", "complex128")
    assert utils.trimcoef(xp.asarray([1.0, 3, 1e-9]), 1e-6).tolist() == [1, 3]
    assert utils.trimcoef(xp.asarray([0.0, 0])).tolist() == [0]
    for call in (
        lambda: utils.as_series([xp.ones((2, 2))]),
        lambda: utils.as_series([xp.ones(2, bool)]),
        lambda: utils.as_series([xp.ones(0)]),
        lambda: utils.trimcoef(xp.ones(2), -1),
        lambda: utils.trimseq(xp.ones((2, 2))),
    ):
        with pytest.raises(ValueError, match=r"1-d|common type|empty|non-negative"):
            call()
