"""Accesses: the memory that an operation of a stream reads or writes, in the form that the race detector takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

Access: TypeAlias = (
    tuple[int, int, tuple[int, ...], tuple[int, ...], int, str]
    | tuple[int, int, tuple[int, ...], tuple[int, ...], int, str, str]
)
"""The address of the first element, the bytes of an element, the lengths and the strides in bytes of the axes, the kind
of the access, and the name of the argument. The last item is :data:`POSSIBLE` if the operation perhaps uses only some
of these bytes.
"""

Accesses: TypeAlias = Sequence[Access] | Callable[[], Sequence[Access]]
"""The accesses of an operation, or a function that is called when the work of the operation is done."""

READ = 1
WRITE = 2
READ_AND_WRITE = 3
POSSIBLE = "possible"


def span(address: int, size: int, kind: int, label: str) -> Access:
    """Return the access of ``size`` bytes without gaps."""
    return address, 1, (size,), (1,), kind, label


def rows(address: int, pitch: int, width: int, height: int, kind: int, label: str) -> Access:
    """Return the access of ``height`` rows of ``width`` bytes, each of which begins ``pitch`` bytes after the last."""
    return (address, 1, (height, width), (pitch, 1), kind, label) if height != 1 else span(address, width, kind, label)


def listed(accesses: Accesses) -> Sequence[Access]:
    """Return ``accesses``, which are asked for now if they are a function."""
    return accesses() if callable(accesses) else accesses
