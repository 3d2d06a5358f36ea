"""Checks of arguments, which refuse a wrong argument before the call changes any state.

A function on a fast path tests the type and the range itself, and calls these checks only if its test fails.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MOST_BYTES = (1 << 63) - 1
"""The largest size of memory that C can name, and the largest handle or address that CuPy takes."""


MOST_DEVICES = (1 << 31) - 1
"""The largest index that CUDA's functions take for a device."""


def integer(value: Any, name: str, least: int, most: int) -> int:
    """Return an integer argument as an ``int``.

    Args:
        value: The argument.
        name: The name of the argument in the error, such as ``"size"``.
        least: The least value that is allowed.
        most: The greatest value that is allowed.

    Raises:
        TypeError: ``value`` is not an integer.
        ValueError: ``value`` is less than ``least`` or greater than ``most``.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer; got {a_kind(value)}.") from None
    if not least <= number <= most:
        raise ValueError(f"{name} must be from {_power(least)} to {_power(most)}; got {number}.")
    return number


def handle(value: Any, name: str) -> int:
    """Return an argument that is a handle or an address of CUDA, such as a ``cudaStream_t``.

    Args:
        value: The argument.
        name: The name of the argument in the error.

    Raises:
        TypeError: ``value`` is not an integer.
        ValueError: ``value`` is negative, or greater than any address.
    """
    return integer(value, name, 0, MOST_BYTES)


def flag(value: Any, name: str) -> bool:
    """Return an argument that is true or false; an integer is also allowed, as in torch.

    Args:
        value: The argument.
        name: The name of the argument in the error.

    Raises:
        TypeError: ``value`` is neither a ``bool`` nor an integer.
    """
    if value is True or value is False:
        return value
    try:
        return operator.index(value) != 0
    except TypeError:
        raise TypeError(f"{name} must be True or False; got {a_kind(value)}.") from None


def text(value: Any, name: str) -> str:
    """Return an argument that is a ``str``.

    Args:
        value: The argument.
        name: The name of the argument in the error.

    Raises:
        TypeError: ``value`` is not a ``str``.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str; got {a_kind(value)}.")
    return value


def several(value: Any, name: str, what: str) -> Iterable[Any]:
    """Return an iterator over an argument that is iterable.

    Args:
        value: The argument.
        name: The name of the argument in the error.
        what: The items that the error asks for, such as ``"indices of devices"``.

    Raises:
        TypeError: ``value`` is not iterable.
    """
    try:
        items: Iterable[Any] = iter(value)
    except TypeError:
        raise TypeError(f"{name} must be {what}; got {a_kind(value)}.") from None
    return items


def a_kind(value: object) -> str:
    """Return the type of ``value`` with an article, such as ``"a list"``, for a message."""
    name = kind_of(value)
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def kind_of(value: object) -> str:
    """Return the type of ``value`` for a message, with the module unless the type is built in."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _power(number: int) -> str:
    """Return ``number`` for a message; a large power of two, or one less, is written as ``2**63`` or ``2**63 - 1``."""
    if abs(number) < 1 << 15:
        return str(number)
    size = abs(number)
    sign = "-" if number < 0 else ""
    if size & (size - 1) == 0:
        return f"{sign}2**{size.bit_length() - 1}"
    return f"{sign}2**{size.bit_length()} - 1" if size & (size + 1) == 0 else str(number)


def pool_id(value: Any, name: str) -> tuple[int, int]:
    """Return an argument that is the identifier of a pool of memory.

    Args:
        value: The argument.
        name: The name of the argument in the error.

    Raises:
        TypeError: ``value`` is not a pair of integers from 0 to 2**64 - 1.
    """
    if isinstance(value, tuple) and len(value) == 2:
        first, second = value
        if isinstance(first, int) and isinstance(second, int) and 0 <= first < 1 << 64 and 0 <= second < 1 << 64:
            return value
    raise TypeError(
        f"{name} must be what graph_pool_handle(), MemPool.id or the pool() of a CUDAGraph returned, or None; got "
        f"{value!r}"
    )


def function(value: Any, name: str) -> Callable[..., Any]:
    """Return an argument that is callable.

    Args:
        value: The argument.
        name: The name of the argument in the error.

    Raises:
        TypeError: ``value`` is not callable.
    """
    if not callable(value):
        raise TypeError(f"{name} must be callable; got {a_kind(value)}.")
    return value  # type: ignore[no-any-return]
