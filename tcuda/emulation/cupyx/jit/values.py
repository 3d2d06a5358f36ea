"""The values that the translation of a kernel in Python computes with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tcuda.emulation.cupyx.jit.types import BOOL, Scalar, Tuple, Type, dtype_of_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NUMBERS = (bool, int, float, complex, np.generic)
_SUFFIXES = {"float32": "f", "int64": "ll", "uint64": "ull", "uint32": "u", "float64": "", "int32": ""}


@dataclass(frozen=True)
class Constant:
    """A value that is known before the kernel runs: a number, a module, a function of Python, ...

    Attributes:
        value: The value.
    """

    value: Any


@dataclass(frozen=True)
class Code:
    """An expression of C++.

    Attributes:
        text: The expression.
        type: The type of the expression.
    """

    text: str
    type: Type


@dataclass(frozen=True)
class Items:
    """A tuple whose items are expressions.

    Attributes:
        values: The items.
    """

    values: tuple[Value, ...]


Value = Constant | Code | Items
"""A value of an expression of Python in a kernel."""


class Scope(Protocol):
    """The function that is being translated, as the functions of ``cupyx.jit`` see the function."""

    @property
    def mode(self) -> str:
        """The rules for the types of numbers, ``"cuda"`` or ``"numpy"``."""

    def include(self, header: str) -> None:
        """Let the source include ``header``."""

    def launch_cooperatively(self) -> None:
        """Let the blocks of a launch run at the same time."""

    def declare_shared(self, element: Type, size: int | None, alignment: int | None) -> str:
        """Declare an array in shared memory, and return its name."""

    def add_function(self, function: Callable[..., Any], types: tuple[Type, ...]) -> tuple[str, Type]:
        """Translate a function for the device, and return its name and the type of its result."""


class Intrinsic:
    """A function that only kernels in Python can call.

    Args:
        name: The name below ``cupyx.jit``.
        translate: Returns the value of a call, from the scope and the arguments.
        doc: The docstring.
    """

    def __init__(self, name: str, translate: Callable[..., Value], doc: str | None = None) -> None:
        self.__name__ = name
        self.__doc__ = doc or translate.__doc__
        self.translate = translate

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise an error, because Python runs on no device.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError(
            f"Cannot call cupyx.jit.{self.__name__} from Python. Write the call in a function with the decorator "
            "cupyx.jit.rawkernel()."
        )


def code_of(value: Value, mode: str) -> Code:
    """Return the expression of ``value``.

    Args:
        value: The value.
        mode: The rules for the types of numbers.

    Raises:
        NotImplementedError: A constant is not a number.
    """
    if isinstance(value, Code):
        return value
    if isinstance(value, Items):
        items = [code_of(item, mode) for item in value.values]
        kind = Tuple(tuple(item.type for item in items))
        return Code(f"{kind}({', '.join(item.text for item in items)})", kind)
    if isinstance(value.value, tuple):
        return code_of(Items(tuple(map(Constant, value.value))), mode)
    dtype = dtype_of_number(value.value, mode)
    return Code(_literal(value.value, dtype), Scalar(dtype))


def _literal(number: Any, dtype: np.dtype[Any]) -> str:
    name = Scalar(dtype).name
    if dtype.kind == "c":
        part = np.dtype(dtype.char.lower())
        return f"{name}({_literal(number.real, part)}, {_literal(number.imag, part)})"
    if dtype.kind == "b":
        return "true" if number else "false"
    if dtype.kind == "f":
        number = float(number)
        if math.isnan(number):
            return f'{name}(__builtin_nan(""))'
        if math.isinf(number):
            return f"{name}({'-' if number < 0 else ''}__builtin_inf())"
    else:
        number = int(number)
        if number == -(2**63):
            return "(-9223372036854775807ll - 1)"
    suffix = _SUFFIXES.get(dtype.name)
    text = repr(number)
    return f"({name})({text})" if suffix is None else f"({text}{suffix})" if number < 0 else f"{text}{suffix}"


def cast(value: Value, to: Scalar, casting: Any, mode: str) -> Code:
    """Return ``value`` with another type.

    Args:
        value: The value.
        to: The type.
        casting: NumPy's name for the casts that are allowed.
        mode: The rules for the types of numbers.

    Raises:
        TypeError: ``value`` is no number, or the cast is not allowed.
    """
    if isinstance(value, Constant) and isinstance(value.value, NUMBERS):
        return code_of(Constant(_constant_as(value.value, to.dtype)), mode)
    code = code_of(value, mode)
    if not isinstance(code.type, Scalar):
        raise TypeError(f"{code.text} is not a number, but a {code.type}.")
    old = code.type.dtype
    if old == to.dtype:
        return code
    if not np.can_cast(old, to.dtype, casting):
        raise TypeError(f"Cannot cast from '{old}' to '{to.dtype}' with casting rule {casting}.")
    return converted(code, to)


def _constant_as(number: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(number, int) and not isinstance(number, bool) and dtype.kind in "iu":
        return dtype.type(np.array(number % 2 ** (8 * dtype.itemsize), np.uint64).astype(dtype))
    if dtype.kind not in "cb" and isinstance(number, (complex, np.complexfloating)):
        number = number.real
    return dtype.type(number)


def converted(code: Code, to: Scalar) -> Code:
    """Return the number ``code`` with the type ``to``, whatever the number loses."""
    assert isinstance(code.type, Scalar)
    if code.type.dtype == to.dtype:
        return code
    if to == BOOL:
        return Code(f"tcuda::jit::truth({code.text})", to)
    if code.type.dtype.kind == "c" and to.dtype.kind != "c":
        return Code(f"static_cast<{to}>(({code.text}).real())", to)
    return Code(f"static_cast<{to}>({code.text})", to)


def truth(value: Value, mode: str) -> Code:
    """Return ``value`` as a condition.

    Raises:
        TypeError: ``value`` is no number.
    """
    return cast(value, BOOL, "unsafe", mode)


def require_arguments(name: str, args: Sequence[Any], least: int, most: int) -> None:
    """Refuse another number of arguments.

    Raises:
        TypeError: The number of arguments is wrong.
    """
    if not least <= len(args) <= most:
        allowed = str(least) if least == most else f"{least} to {most}"
        raise TypeError(f"{name}() takes {allowed} positional arguments but {len(args)} were given.")
