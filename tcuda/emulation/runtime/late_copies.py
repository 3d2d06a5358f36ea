"""Copies from pageable memory of the host, which the late schedule must read before the call returns."""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING

from tcuda import _core
from tcuda.emulation.runtime.memory import Copy, Memory, Rows
from tcuda.emulation.runtime.moves import Movable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda.emulation.runtime.calls import Call


class PageableCopy(Movable):
    """A copy from pageable memory of the host. A call makes the copy at once, as a node of a graph does.

    Args:
        copy: Copies from the address that is its argument.
        src: The address of the source.
        size: The bytes from the beginning of the source to its end.

    Attributes:
        size: The bytes from the beginning of the source to its end.
    """

    def __init__(self, copy: Callable[[int], object], src: int, size: int) -> None:
        self._copy = copy
        self._src = src
        self.size = size

    def __call__(self) -> None:
        """Make the copy."""
        self._copy(self._src)

    def staged(self) -> Callable[[], object]:
        """Read the source now, and return a function that writes what was read to the destination."""
        stage = (ctypes.c_char * self.size)()
        ctypes.memmove(stage, self._src, self.size)
        return lambda: self._copy(ctypes.addressof(stage))


class AwaitedCopy(Movable):
    """A copy to pageable memory of the host. Such a copy is never pending.

    The host waits for the copy. If the exception of a signal handler ends the wait, the host may free the memory.

    Args:
        copy: Makes the copy.
    """

    def __init__(self, copy: Callable[[], object]) -> None:
        self._copy = copy

    def __call__(self) -> None:
        """Make the copy."""
        self._copy()


class LateMemory(Memory):
    """The memory of all devices for the late schedule; the arguments are those of :class:`Memory`."""

    def plan_copy(self, dst: int, src: int, size: int, kind: int, call: Call) -> Copy:
        """Return a copy as :meth:`Memory.plan_copy`, which reads pageable memory before the call returns."""
        planned = _awaited(super().plan_copy(dst, src, size, kind, call))
        if planned.host_waits or not size or not self._is_pageable(src, size):
            return planned
        copy = self._noted(functools.partial(_copy_bytes, dst, size), Rows(dst, size, src, size, size, 1))
        return planned._replace(make=PageableCopy(copy, src, size))

    def plan_rows(
        self, dst: int, dpitch: int, src: int, spitch: int, width: int, height: int, kind: int, call: Call
    ) -> Copy:
        """Return a copy as :meth:`Memory.plan_rows`, which reads pageable memory before the call returns."""
        planned = _awaited(super().plan_rows(dst, dpitch, src, spitch, width, height, kind, call))
        size = (height - 1) * spitch + width
        if planned.host_waits or not planned.size or not self._is_pageable(src, size):
            return planned
        make = functools.partial(_copy_rows, dst, dpitch, spitch, width, height)
        copy = self._noted(make, Rows(dst, dpitch, src, spitch, width, height))
        return planned._replace(make=PageableCopy(copy, src, size))

    def _is_pageable(self, ptr: int, size: int) -> bool:
        return self.owner(ptr) is None and not self.is_registered(ptr, size)


def _awaited(planned: Copy) -> Copy:
    return planned._replace(make=AwaitedCopy(planned.make)) if planned.host_waits else planned


def _copy_bytes(dst: int, size: int, src: int) -> None:
    ctypes.memmove(dst, src, size)


def _copy_rows(dst: int, dpitch: int, spitch: int, width: int, height: int, src: int) -> None:
    _core.copy_rows(dst, dpitch, src, spitch, width, height)
