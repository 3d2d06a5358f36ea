"""The operators and universal functions in a kernel that is written in Python: the types and the C++ of each."""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tcuda.emulation.cupyx.jit.types import INT64, Pointing, Scalar, dtype_of_number
from tcuda.emulation.cupyx.jit.values import NUMBERS, Code, Constant, Value, code_of, converted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_INTEGERS = "bBhHiIlLqQ"
_ORDER = "?bBhHiIlLqQefdFD"
"""The types in the order in which ``mode="cuda"`` allows casts: from each type to all that follow."""

_HALF = np.dtype(np.float16)
_FLOAT = Scalar(np.float32)


class _Function(NamedTuple):
    """A universal function.

    Attributes:
        loops: The types of the inputs and of the output, in CuPy's order. The first loop that fits is taken. A loop
            without a type of the output is refused.
        code: The expression, with a number in braces for each input, and ``{type}`` for the type of the output.
        of_integers: The expression of the loops with integers or booleans, if they have one of their own.
    """

    loops: tuple[tuple[str, str], ...]
    code: str
    of_integers: str = ""


def _same(kinds: str, inputs: int = 2) -> tuple[tuple[str, str], ...]:
    """Return loops whose inputs and outputs have the same type."""
    return tuple((kind * inputs, kind) for kind in kinds)


def _to(kinds: Sequence[str], output: str) -> tuple[tuple[str, str], ...]:
    """Return loops with one type of the output."""
    return tuple((kind, output) for kind in kinds)


_NUMBERS = f"{_INTEGERS}efdFD"
_REAL = f"{_INTEGERS}efd"
_FLOATS = "efd"
_MIXED = ["??", "qq", "QQ", "qQ", "Qq", "ee", "ff", "dd"]
_COMPARED = _to([*_MIXED, "FF", "DD"], "?")


def _unary(name: str, kinds: str = "efdFD") -> _Function:
    return _Function(_same(kinds, 1), f"{name}({{0}})")


def _rounding(name: str) -> _Function:
    return _Function(_same(f"?{_REAL}", 1), f"{name}({{0}})", "{0}")


FUNCTIONS: dict[str, _Function] = {
    "absolute": _Function((*_same(f"?{_REAL}", 1), ("F", "f"), ("D", "d")), "tcuda::jit::absolute({0})"),
    "add": _Function(_same(f"?{_NUMBERS}"), "{0} + {1}"),
    "arccos": _unary("acos"),
    "arccosh": _unary("acosh"),
    "arcsin": _unary("asin"),
    "arcsinh": _unary("asinh"),
    "arctan": _unary("atan"),
    "arctan2": _Function(_same(_FLOATS), "atan2({0}, {1})"),
    "arctanh": _unary("atanh"),
    "bitwise_and": _Function(_same(f"?{_INTEGERS}"), "{0} & {1}"),
    "bitwise_or": _Function(_same(f"?{_INTEGERS}"), "{0} | {1}"),
    "bitwise_xor": _Function(_same(f"?{_INTEGERS}"), "{0} ^ {1}"),
    "cbrt": _unary("cbrt", _FLOATS),
    "ceil": _rounding("ceil"),
    "conjugate": _Function((*_same(_REAL, 1), *_same("FD", 1)), "tcuda::jit::conjugate({0})"),
    "copysign": _Function(_same(_FLOATS), "copysign({0}, {1})"),
    "cos": _unary("cos"),
    "cosh": _unary("cosh"),
    "deg2rad": _Function(_same(_FLOATS, 1), "{0} * {type}(3.14159265358979323846 / 180)"),
    "divide": _Function(
        (*_to(["qq", "qQ", "Qq", "QQ"], "d"), *_same("efdFD")), "static_cast<{type}>({0}) / static_cast<{type}>({1})"
    ),
    "equal": _Function(_COMPARED, "{0} == {1}"),
    "exp": _unary("exp"),
    "exp2": _unary("exp2", _FLOATS),
    "expm1": _unary("expm1", _FLOATS),
    "fabs": _unary("fabs", _FLOATS),
    "floor": _rounding("floor"),
    "floor_divide": _Function(_same(_REAL), "_floor_divide({0}, {1})"),
    "fmax": _Function(_same(f"?{_REAL}"), "tcuda::jit::greater({0}, {1}, false)"),
    "fmin": _Function(_same(f"?{_REAL}"), "tcuda::jit::smaller({0}, {1}, false)"),
    "fmod": _Function(_same(_REAL), "fmod({0}, {1})", "tcuda::jit::fmod_of_integers({0}, {1})"),
    "greater": _Function(_COMPARED, "{0} > {1}"),
    "greater_equal": _Function(_COMPARED, "{0} >= {1}"),
    "hypot": _Function(_same(_FLOATS), "hypot({0}, {1})"),
    "invert": _Function(_same(f"?{_INTEGERS}", 1), "~{0}"),
    "isfinite": _Function(_to(_FLOATS, "?"), "isfinite({0})"),
    "isinf": _Function(_to(_FLOATS, "?"), "isinf({0})"),
    "isnan": _Function(_to(_FLOATS, "?"), "isnan({0})"),
    "left_shift": _Function(_same(_INTEGERS), "{0} << {1}"),
    "less": _Function(_COMPARED, "{0} < {1}"),
    "less_equal": _Function(_COMPARED, "{0} <= {1}"),
    "log": _unary("log"),
    "log10": _unary("log10"),
    "log1p": _unary("log1p", _FLOATS),
    "log2": _unary("log2", _FLOATS),
    "logaddexp": _Function(_same(_FLOATS), "tcuda::jit::log_of_sum({0}, {1})"),
    "logical_and": _Function(_to(_MIXED, "?"), "{0} && {1}"),
    "logical_not": _Function(_to(f"?{_NUMBERS}", "?"), "!tcuda::jit::truth({0})"),
    "logical_or": _Function(_to(_MIXED, "?"), "{0} || {1}"),
    "logical_xor": _Function(_to([kind * 2 for kind in f"?{_REAL}"], "?"), "!{0} != !{1}"),
    "maximum": _Function(_same(f"?{_REAL}"), "tcuda::jit::greater({0}, {1}, true)"),
    "minimum": _Function(_same(f"?{_REAL}"), "tcuda::jit::smaller({0}, {1}, true)"),
    "multiply": _Function(_same(f"?{_NUMBERS}"), "{0} * {1}"),
    "negative": _Function((("?", ""), *_same(_NUMBERS, 1)), "-{0}"),
    "nextafter": _Function(_same("fd"), "nextafter({0}, {1})"),
    "not_equal": _Function(_COMPARED, "{0} != {1}"),
    "positive": _Function((("?", ""), *_same(_NUMBERS, 1)), "+{0}"),
    "power": _Function((("??", "b"), *_same(_NUMBERS)), "tcuda::jit::power({0}, {1})"),
    "rad2deg": _Function(_same(_FLOATS, 1), "{0} * {type}(180 / 3.14159265358979323846)"),
    "reciprocal": _Function(_same(_NUMBERS, 1), "tcuda::jit::reciprocal({0})"),
    "remainder": _Function(_same(_REAL), "tcuda::jit::remainder_of({0}, {1})"),
    "right_shift": _Function(_same(_INTEGERS), "{0} >> {1}"),
    "rint": _unary("rint", _FLOATS),
    "sign": _Function(_same(_REAL, 1), "tcuda::jit::sign({0})"),
    "signbit": _Function(_to(_FLOATS, "?"), "signbit({0})"),
    "sin": _unary("sin"),
    "sinh": _unary("sinh"),
    "sqrt": _unary("sqrt"),
    "square": _Function(_same(_NUMBERS, 1), "tcuda::jit::square({0})"),
    "subtract": _Function((("??", ""), *_same(_NUMBERS)), "{0} - {1}"),
    "tan": _unary("tan"),
    "tanh": _unary("tanh"),
    "trunc": _rounding("trunc"),
}
"""The universal functions by NumPy's name, with CuPy's loops."""

_ALSO_COMPLEX = frozenset(
    [
        "arctan2",
        "copysign",
        "exp2",
        "expm1",
        "fmax",
        "fmin",
        "hypot",
        "isfinite",
        "isinf",
        "isnan",
        "log1p",
        "log2",
        "maximum",
        "minimum",
        "nextafter",
        "rint",
        "sign",
    ]
)
"""The functions that CuPy has for complex numbers too, and kernels of emulated devices have not."""

FUNCTIONS |= {"radians": FUNCTIONS["deg2rad"], "degrees": FUNCTIONS["rad2deg"]}

OPERATORS: dict[type[ast.AST], tuple[Callable[..., Any], str]] = {
    ast.Add: (operator.add, "add"),
    ast.And: (lambda x, y: x and y, "logical_and"),
    ast.BitAnd: (operator.and_, "bitwise_and"),
    ast.BitOr: (operator.or_, "bitwise_or"),
    ast.BitXor: (operator.xor, "bitwise_xor"),
    ast.Div: (operator.truediv, "divide"),
    ast.Eq: (operator.eq, "equal"),
    ast.FloorDiv: (operator.floordiv, "floor_divide"),
    ast.Gt: (operator.gt, "greater"),
    ast.GtE: (operator.ge, "greater_equal"),
    ast.Invert: (operator.invert, "invert"),
    ast.LShift: (operator.lshift, "left_shift"),
    ast.Lt: (operator.lt, "less"),
    ast.LtE: (operator.le, "less_equal"),
    ast.Mod: (operator.mod, "remainder"),
    ast.Mult: (operator.mul, "multiply"),
    ast.Not: (operator.not_, "logical_not"),
    ast.NotEq: (operator.ne, "not_equal"),
    ast.Or: (lambda x, y: x or y, "logical_or"),
    ast.Pow: (operator.pow, "power"),
    ast.RShift: (operator.rshift, "right_shift"),
    ast.Sub: (operator.sub, "subtract"),
    ast.UAdd: (operator.pos, "positive"),
    ast.USub: (operator.neg, "negative"),
}
"""For each operator of Python, the function on constants and the name of the universal function."""


def call(name: str, args: Sequence[Value], mode: str, dtype: Any = None) -> Code:
    """Return the result of a universal function.

    Args:
        name: NumPy's name of the function.
        args: The arguments.
        mode: The rules for the types of numbers.
        dtype: The type of the result; None for the first loop into whose types the arguments can be cast.

    Raises:
        NotImplementedError: The function is not in the table, or not for complex numbers.
        TypeError: The function has no loop for the types, or an argument is no number.
        ValueError: The number of arguments is wrong.
    """
    function = FUNCTIONS.get(name)
    if function is None:
        raise NotImplementedError(
            f"A kernel in Python cannot call {name!r} on an emulated device. The functions are: "
            f"{', '.join(sorted(FUNCTIONS))}."
        )
    if len(args) != len(function.loops[0][0]):
        raise ValueError(f"{name}() takes {len(function.loops[0][0])} arguments, not {len(args)}.")
    types = [_dtype(name, arg, mode) for arg in args]
    loop = _loop(function, types, mode, dtype)
    if loop is None and name in _ALSO_COMPLEX and any(kind.kind == "c" for kind in types):
        raise NotImplementedError(f"A kernel in Python has no {name}() of complex numbers on an emulated device.")
    if loop is None or not loop[1]:
        raise TypeError(f"{name}() does not support the types {', '.join(map(str, types))}.")
    inputs = [_typed(arg, np.dtype(kind), mode) for arg, kind in zip(args, loop[0], strict=True)]
    output = Scalar(np.dtype(loop[1]))
    code = function.of_integers if function.of_integers and output.dtype.kind in "biu" else function.code
    text = code.format(*(f"{each.text}" for each in inputs), type=output)
    return Code(f"static_cast<{output}>({text})", output)


def _dtype(name: str, arg: Value, mode: str) -> np.dtype[Any]:
    if isinstance(arg, Constant):
        return dtype_of_number(arg.value, mode)
    if isinstance(arg, Code) and isinstance(arg.type, Scalar):
        return arg.type.dtype
    raise TypeError(f"{name}() takes numbers, not {arg.type if isinstance(arg, Code) else 'a tuple'}.")


def _loop(function: _Function, types: Sequence[np.dtype[Any]], mode: str, dtype: Any) -> tuple[str, str] | None:
    if dtype is not None:
        wanted = np.dtype(dtype)
        return next((loop for loop in function.loops if loop[1] and np.dtype(loop[1]) == wanted), None)
    fits = np.can_cast if mode == "numpy" else _fits
    return next(
        (
            loop
            for loop in function.loops
            if all(fits(old, np.dtype(new)) for old, new in zip(types, loop[0], strict=True))
        ),
        None,
    )


def _fits(old: np.dtype[Any], new: np.dtype[Any]) -> bool:
    return old.char in _ORDER and _ORDER.index(old.char) <= _ORDER.index(new.char)


def _typed(arg: Value, dtype: np.dtype[Any], mode: str) -> Code:
    """Return an argument with the type of the loop. Half precision is computed in single precision and then rounded."""
    to = Scalar(dtype)
    if isinstance(arg, Constant) and isinstance(arg.value, NUMBERS):
        number = arg.value
        if dtype.kind == "f" and isinstance(number, (bool, int, float)):
            code = code_of(Constant(dtype.type(number)), mode)
        else:
            code = converted(code_of(arg, mode), to)
    else:
        code = converted(code_of(arg, mode), to)
    code = converted(code, _FLOAT) if dtype == _HALF else code
    return Code(code.text if code.text.isidentifier() else f"({code.text})", code.type)


def operate(kind: type[ast.AST], args: Sequence[Value], mode: str) -> Value:
    """Return the result of an operator of Python.

    Args:
        kind: The class of the operator in :mod:`ast`.
        args: The operands.
        mode: The rules for the types of numbers.

    Raises:
        NotImplementedError: Kernels do not have the operator.
        TypeError: The operator does not support the types.
    """
    found = OPERATORS.get(kind)
    if found is None:
        raise NotImplementedError(f"The operator {kind.__name__} is not supported in a kernel.")
    if all(isinstance(arg, Constant) for arg in args):
        return Constant(found[0](*(arg.value for arg in args if isinstance(arg, Constant))))
    return _moved(kind, args, mode) or call(found[1], args, mode)


def _moved(kind: type[ast.AST], args: Sequence[Value], mode: str) -> Code | None:
    """Return the sum or the difference of pointers and integers; None for other operands."""
    if kind not in (ast.Add, ast.Sub) or not any(
        isinstance(arg, Code) and isinstance(arg.type, Pointing) for arg in args
    ):
        return None
    x, y = (code_of(arg, mode) for arg in args)
    if isinstance(x.type, Pointing) and _is_integer(y):
        return Code(f"({x.text} {'+' if kind is ast.Add else '-'} ({y.text}))", x.type)
    if kind is ast.Add and isinstance(y.type, Pointing) and _is_integer(x):
        return Code(f"({y.text} + ({x.text}))", y.type)
    if kind is ast.Sub and x.type == y.type:
        return Code(f"static_cast<long long>({x.text} - {y.text})", INT64)
    return None


def _is_integer(code: Code) -> bool:
    return isinstance(code.type, Scalar) and code.type.dtype.kind in "iu"
