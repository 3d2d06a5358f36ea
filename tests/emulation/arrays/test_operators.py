"""The operators of emulated arrays, and the operands that they refuse."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import tcuda
from support.emulated_arrays import assert_same, assert_same_array, numbers
from tcuda.emulation import xp

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]

DTYPES = ["?", "b", "B", "h", "i", "q", "Q", "e", "f", "d", "F", "D"]


BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.rshift,
    operator.lt,
    operator.le,
    operator.eq,
    operator.ne,
    operator.gt,
    operator.ge,
]
UNARY = [operator.neg, operator.pos, operator.abs, operator.invert]


def either(function, *operands):
    """Return the result of ``function``, or the type of the exception that ``function`` raises.

    NumPy refuses negative powers of integers, which a GPU has: see test_gpu_numbers.py.
    """
    with np.errstate(all="ignore"):
        try:
            result = function(*operands)
            tcuda.synchronize()
            return result
        except (TypeError, ValueError) as error:
            if function is operator.pow and "negative integer powers" in str(error):
                kind = np.result_type(*operands)
                base, exponent = (np.asarray(operand).astype(np.int64) for operand in operands)
                inverse = np.where(np.abs(base) == 1, base**2 * base ** (exponent & 1), 0)
                return np.where(exponent < 0, inverse, base ** np.abs(exponent)).astype(kind)
            return TypeError if isinstance(error, TypeError) else ValueError


def require_same(actual, expected):
    """Require an equal result of the same type, or the same type of error."""
    if isinstance(expected, type):
        assert actual is expected
    else:
        assert_same(actual, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", [*BINARY, divmod], ids=lambda function: function.__name__)
def test_binary_operators_give_the_results_of_numpy(function, dtype):
    left, right = numbers(dtype), numbers(dtype, (4,))[::-1].copy()
    expected = either(function, left, right)
    actual = either(function, xp.asarray(left), xp.asarray(right))
    require_same(actual, expected)


@pytest.mark.parametrize("scalar", [2, 2.5, True, 1 + 2j, np.float32(3), np.int8(-3), np.float64(1.5)], ids=repr)
@pytest.mark.parametrize("function", [*BINARY, divmod], ids=lambda function: function.__name__)
@pytest.mark.parametrize("dtype", ["i", "f"])
def test_scalars_on_either_side_give_the_results_of_numpy(function, scalar, dtype):
    host = np.abs(numbers(dtype))
    array = xp.asarray(host)
    for actual, expected in (
        (either(function, array, scalar), either(function, host, scalar)),
        (either(function, scalar, array), either(function, scalar, host)),
    ):
        require_same(actual, expected)


@pytest.mark.parametrize("function", UNARY, ids=lambda function: function.__name__)
@pytest.mark.parametrize("dtype", ["b", "i", "f", "D"])
def test_unary_operators_give_the_results_of_numpy(function, dtype):
    host = numbers(dtype)
    expected = either(function, host)
    actual = either(function, xp.asarray(host))
    if isinstance(expected, type):
        assert actual is expected
    else:
        assert_same_array(actual, expected)


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"])
def test_in_place_operators_write_to_the_same_memory(name):
    host = numbers("d")
    array = xp.asarray(host)
    alias, address = array, array.data.ptr
    array = getattr(operator, name)(array, 3)
    assert array is alias
    assert array.data.ptr == address
    assert_same_array(array, getattr(operator, name)(host, 3))


@pytest.mark.parametrize("name", ["iand", "ior", "ixor", "ilshift", "irshift"])
def test_in_place_operators_on_bits_write_to_the_same_memory(name):
    host = numbers("q")
    array = alias = xp.asarray(host)
    array = getattr(operator, name)(array, xp.asarray(3))
    assert array is alias
    assert_same_array(array, getattr(operator, name)(host, 3))


def test_in_place_operators_refuse_results_that_the_dtype_cannot_hold():
    array = xp.arange(3)
    with pytest.raises(TypeError, match="Cannot cast ufunc 'add' output"):
        array += 0.5
    with pytest.raises(ValueError, match="broadcast"):
        array += xp.ones((2, 3), int)
    assert array.tolist() == [0, 1, 2]


def test_matmul_gives_the_results_of_numpy():
    left, right = numbers("f", (2, 3, 4)), numbers("f", (4, 5))
    assert_same_array(xp.asarray(left) @ xp.asarray(right), left @ right)
    square = numbers("d", (3, 3))
    array = xp.asarray(square)
    before = array
    array @= xp.eye(3) * 2
    assert_same_array(array, square @ (np.eye(3) * 2))
    assert array is not before  # CuPy has no matrix product in place
    with pytest.raises(ValueError, match="matmul"):
        xp.ones((2, 3)) @ xp.ones((2, 3))


def test_none_equals_no_element():
    array = xp.arange(3)
    assert_same_array(array == None, [False] * 3)  # noqa: E711
    assert_same_array(array != None, [True] * 3)  # noqa: E711


@pytest.mark.parametrize("operand", [np.ones(3), np.ones((2, 3))], ids=["1-d", "2-d"])
@pytest.mark.parametrize("function", [operator.add, operator.mul, operator.lt, operator.matmul, np.maximum, xp.hypot])
def test_arrays_of_numpy_are_refused_on_either_side(function, operand):
    array = xp.ones(3)
    for operands in ((array, operand), (operand, array)):
        with pytest.raises(TypeError, match="Unsupported type <class 'numpy.ndarray'>"):
            function(*operands)


def test_in_place_operators_refuse_arrays_of_numpy_and_the_other_way_round():
    array, host = xp.ones(3), np.ones(3)
    with pytest.raises(TypeError, match="Unsupported type <class 'numpy.ndarray'>"):
        array += host
    with pytest.raises(TypeError, match="Unsupported type <class 'numpy.ndarray'>"):
        host += array
    with pytest.raises(TypeError, match="must be an array of the device"):
        np.add(array, array, out=host)
    assert array.tolist() == host.tolist() == [1, 1, 1]


@pytest.mark.parametrize("operand", [[1, 2, 3], "x", object()], ids=["list", "str", "object"])
def test_other_operands_are_refused(operand):
    with pytest.raises(TypeError):
        xp.ones(3) + operand
    with pytest.raises(TypeError):
        operand - xp.ones(3)


def test_a_reflected_operator_of_an_operand_is_called():
    class Knowing:
        __array_ufunc__ = None

        def __radd__(self, other):
            return "mine"

    assert xp.ones(3) + Knowing() == "mine"


def test_division_by_zero_gives_no_warning():
    assert_same_array(xp.ones(2) / xp.zeros(2), [np.inf, np.inf])
    assert np.isnan(float(xp.log(xp.asarray(-1.0))))
