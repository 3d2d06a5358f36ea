"""Reductions of warps and blocks for kernels in Python (``cupyx.jit.cub``)."""

from __future__ import annotations

from typing import Any

from tcuda.emulation.cupyx.jit.types import Scalar, Structure, Type, type_from
from tcuda.emulation.cupyx.jit.values import Code, Intrinsic, Scope, Value, cast

_OPERATIONS = ("Max", "Min", "Sum")


class _Reduction(Type):
    """A class that reduces the values of several threads to one.

    Args:
        name: The class in C++.
        element: The type of the values.

    Attributes:
        TempStorage: The type of the shared memory that the reduction needs.
    """

    def __init__(self, name: str, element: Type) -> None:
        self.name = f"tcuda::jit::{name}"
        self._element = element
        self.TempStorage = Structure(f"{self.name}::TempStorage", {})

    def instantiate(self, scope: Scope, temp_storage: Value) -> Value:
        """Return an object of the class, with its shared memory.

        Raises:
            TypeError: ``temp_storage`` is not of the type ``TempStorage``.
        """
        if not isinstance(temp_storage, Code) or temp_storage.type != self.TempStorage:
            raise TypeError(f"A reduction takes an element of shared_memory({self.name}.TempStorage, 1).")
        return Code(f"{self.name}(&{temp_storage.text})", self)

    def method(self, value: Code, name: str) -> Intrinsic | None:
        """Return the method ``name``; None if the class has no such method."""
        if name == "Sum":
            return Intrinsic(name, lambda scope, x: self._reduced(scope, value, x, "Sum"), "Return the sum.")
        if name == "Reduce":
            return Intrinsic(name, lambda scope, x, op: self._reduced(scope, value, x, _operation(op)), "Reduce.")
        return None

    def _reduced(self, scope: Scope, value: Code, x: Value, operation: str) -> Value:
        assert isinstance(self._element, Scalar)
        given = cast(x, self._element, "same_kind", scope.mode)
        return Code(f"{value.text}.Reduce({given.text}, tcuda::jit::{operation}())", self._element)


def _operation(value: Value) -> str:
    found = value.text if isinstance(value, Code) else ""
    if found not in _OPERATIONS:
        raise TypeError(f"The operation of a reduction is one of the calls jit.cub.{', jit.cub.'.join(_OPERATIONS)}.")
    return found


class _Template:
    """A class template, whose arguments stand in brackets.

    Args:
        name: The name of the template.
        arguments: The number of its arguments.
    """

    def __init__(self, name: str, arguments: int) -> None:
        self.__name__ = name
        self._arguments = arguments

    def __getitem__(self, arguments: Any) -> _Reduction:
        given = arguments if isinstance(arguments, tuple) else (arguments,)
        if len(given) != self._arguments:
            raise TypeError(f"cub.{self.__name__} takes {self._arguments} arguments in brackets, not {len(given)}.")
        element = type_from(given[0])
        rest = "".join(f", {int(each)}" for each in given[1:])
        return _Reduction(f"{self.__name__}<{element}{rest}>", element)


def _functor(name: str) -> Intrinsic:
    return Intrinsic(f"cub.{name}", lambda scope: Code(name, Structure(name, {})), f"Return the operation {name}.")


WarpReduce = _Template("WarpReduce", 1)
BlockReduce = _Template("BlockReduce", 2)
Sum, Max, Min = map(_functor, ("Sum", "Max", "Min"))

__all__ = ["BlockReduce", "Max", "Min", "Sum", "WarpReduce"]


def __dir__() -> list[str]:
    return sorted(__all__)
