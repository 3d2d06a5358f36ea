"""The operators of arrays, such as ``+``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.lib.mixins import NDArrayOperatorsMixin

from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.devices.strided import Strided

if TYPE_CHECKING:
    from collections.abc import Callable

_SCALARS = frozenset([bool, int, float, complex])

_BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "lshift": "left_shift",
    "rshift": "right_shift",
    "and": "bitwise_and",
    "xor": "bitwise_xor",
    "or": "bitwise_or",
}
_COMPARISONS = {
    "lt": "less",
    "le": "less_equal",
    "eq": "equal",
    "ne": "not_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
_UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}


class Operators(NDArrayOperatorsMixin):
    """The operators of NumPy's mixin, with CuPy's rules for the operands that NumPy's dispatch does not look at.

    NumPy's dispatch asks all operands for ``__array_ufunc__``. Its answer is known for an array and a Python scalar. As
    in CuPy, operators of two arrays, unary operators and operators in place do not ask a subclass.
    """

    __slots__ = ()


def _gives_way(array: Any, other: Any) -> bool:
    """Return whether the operator of ``other`` computes, an object without NEP 13 and with a higher priority."""
    if hasattr(other, "__array_ufunc__"):
        return False
    mine: float = array.__array_priority__
    return bool(mine < getattr(other, "__array_priority__", 0))


def _applied(name: str, inherited: Callable[..., Any]) -> Callable[..., Any]:
    apply = FUNCTIONS[name].apply

    def operate(self: Any, other: Any) -> Any:
        if isinstance(other, Strided) or (type(self) is Strided.array_type and type(other) in _SCALARS):
            return apply(self, other)
        return NotImplemented if _gives_way(self, other) else inherited(self, other)

    return operate


def _reflected(name: str, inherited: Callable[..., Any]) -> Callable[..., Any]:
    apply = FUNCTIONS[name].apply

    def operate(self: Any, other: Any) -> Any:
        if isinstance(other, Strided) or type(other) in _SCALARS:
            return apply(other, self)
        return inherited(self, other)

    return operate


def _product(name: str, inherited: Callable[..., Any]) -> Callable[..., Any]:
    product = FUNCTIONS[name]

    def operate(self: Any, other: Any) -> Any:
        if isinstance(other, Strided):
            return product(self, other)
        return NotImplemented if _gives_way(self, other) else inherited(self, other)

    return operate


def _in_place(name: str, inherited: Callable[..., Any]) -> Callable[..., Any]:
    apply = FUNCTIONS[name].apply

    def operate(self: Any, other: Any) -> Any:
        return apply(self, other, self)

    return operate


def _unary(name: str, inherited: Callable[..., Any]) -> Callable[..., Any]:
    apply = FUNCTIONS[name].apply

    def operate(self: Any) -> Any:
        return apply(self)

    return operate


def _define(made: Callable[[str, Callable[..., Any]], Callable[..., Any]], operator: str, function: str) -> None:
    name = f"__{operator}__"
    inherited = getattr(NDArrayOperatorsMixin, name)
    operate = made(function, inherited)
    operate.__name__, operate.__qualname__ = name, f"Operators.{name}"
    operate.__doc__ = f"Apply :func:`~tcuda.emulation.xp.{function}`."
    setattr(Operators, name, operate)


for _operator, _function in _BINARY.items():
    _define(_applied, _operator, _function)
    _define(_reflected, f"r{_operator}", _function)
    _define(_in_place, f"i{_operator}", _function)
for _operator, _function in _COMPARISONS.items():
    _define(_applied, _operator, _function)
_define(_product, "matmul", "matmul")
for _operator, _function in _UNARY.items():
    _define(_unary, _operator, _function)
