"""The types of values in a kernel that is written in Python, and their names in C++."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.kernels.parts.type_names import type_name

if TYPE_CHECKING:
    from tcuda.emulation.kernels.parts.generated_source import Form

_LEAST, _BEYOND = -(2**31), 2**31


class Type:
    """A type in C++. Equal types have equal names.

    Attributes:
        name: The name in C++.
    """

    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


class Scalar(Type):
    """A number.

    Args:
        dtype: The NumPy type of the number.

    Attributes:
        dtype: The NumPy type.

    Raises:
        ValueError: The type is that of a structure, or CUDA C++ has no such type.
    """

    def __init__(self, dtype: Any) -> None:
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        if self.dtype.fields:
            raise ValueError(f"Unsupported dtype {self.dtype}; a kernel in Python has no structures.")
        self.name = type_name(self.dtype)


class Pointing(Type):
    """A pointer or an iterator, with the operators of pointers.

    Attributes:
        element: The type of the elements.
    """

    element: Type


class Pointer(Pointing):
    """A pointer to elements that lie side by side.

    Args:
        element: The type of the elements.
    """

    def __init__(self, element: Type) -> None:
        self.element = element
        self.name = f"{element} *"


class Steps(Pointing):
    """An iterator over elements with equal distances.

    Args:
        element: The type of the elements.
    """

    def __init__(self, element: Type) -> None:
        self.element = element
        self.name = f"tcuda::jit::Steps<{element}>"


class Generated(Pointing):
    """An iterator whose elements are computed.

    Args:
        kind: The name of the class in C++.
        element: The type of the elements.
    """

    def __init__(self, kind: str, element: Type) -> None:
        self.element = element
        self.name = f"tcuda::jit::{kind}<{element}>"


class Array(Type):
    """An array of a device.

    Args:
        element: The type of the elements.
        ndim: The number of axes.
        contiguous: Whether the elements lie in row-major order without gaps.
        short: Whether 32 bits hold the place of each element.

    Attributes:
        element: The type of the elements.
        ndim: The number of axes.
        contiguous: Whether the elements lie in row-major order without gaps.
    """

    def __init__(self, element: Type, ndim: int, contiguous: bool, short: bool) -> None:
        self.element = element
        self.ndim = ndim
        self.contiguous = contiguous or ndim == 0
        self._short = short
        self.name = f"CArray<{element}, {ndim}, {self.contiguous:d}, {short:d}>"

    def part(self, indices: int) -> Array:
        """Return the type of the part of an array at the given number of indices."""
        return Array(self.element, self.ndim - indices, self.contiguous, self._short)


class Tuple(Type):
    """A tuple.

    Args:
        types: The types of the items.

    Attributes:
        types: The types of the items.
    """

    def __init__(self, types: tuple[Type, ...]) -> None:
        self.types = types
        self.name = f"tcuda::jit::Tuple<{', '.join(map(str, types))}>"


@dataclass(frozen=True, eq=False, repr=False)
class Structure(Type):
    """A structure with members that a kernel reads.

    Attributes:
        name: The name in C++.
        members: The types of the members by name.
    """

    name: str
    members: dict[str, Type]


VOID = Structure("void", {})
BOOL = Scalar(np.bool_)
INT32 = Scalar(np.int32)
INT64 = Scalar(np.int64)
UINT32 = Scalar(np.uint32)
UINT64 = Scalar(np.uint64)
DIM3 = Structure("dim3", dict.fromkeys("xyz", UINT32))


def type_of_form(form: Form) -> Type:
    """Return the type of an argument."""
    element = Scalar(form.dtype)
    return element if form.ndim is None else Array(element, form.ndim, form.c_contiguous, form.short_index)


def dtype_of_number(value: Any, mode: str) -> np.dtype[Any]:
    """Return the type of a number in a kernel.

    Args:
        value: A number of Python or a scalar of NumPy.
        mode: ``"cuda"``, where numbers have 32 bits if they fit, or ``"numpy"``.

    Raises:
        NotImplementedError: ``value`` is no number.
    """
    if isinstance(value, np.generic):
        return value.dtype
    short = mode == "cuda"
    if isinstance(value, bool):
        return np.dtype(np.bool_)
    if isinstance(value, int):
        return np.dtype(np.int32 if short and _LEAST <= value < _BEYOND else np.int64)
    if isinstance(value, float):
        return np.dtype(np.float32 if short else np.float64)
    if isinstance(value, complex):
        return np.dtype(np.complex64 if short else np.complex128)
    raise NotImplementedError(f"{value!r} is not a number. A kernel in Python computes with numbers and arrays.")


def type_from(given: Any) -> Type:
    """Return the type that a program names by a dtype or by a type of this module."""
    return given if isinstance(given, Type) else Scalar(given)
