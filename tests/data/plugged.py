"""The library of ``pluggable_allocator.c``, for tests and for the programs that tests start."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import tcuda

_ROOM = 4096


class Call(NamedTuple):
    freed: int
    size: int
    device: int
    stream: int
    address: int


class _Entry(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int64) for name in Call._fields)


class Plugged:
    """The library at ``path`` and the log of its calls; all objects of one process share the library and the log."""

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)
        self._calls = (_Entry * _ROOM).in_dll(self._library, "calls")
        self._number = ctypes.c_int.in_dll(self._library, "number_of_calls")
        self._most = ctypes.c_int64.in_dll(self._library, "most")
        self._repeated = ctypes.c_void_p.in_dll(self._library, "repeated")
        self.allocator = tcuda.CUDAPluggableAllocator(path, "logged_alloc", "logged_free")

    def calls(self) -> list[Call]:
        """Return all calls so far."""
        count = self._number.value
        assert count <= _ROOM, "the log is full"
        return [Call(*(getattr(entry, name) for name in Call._fields)) for entry in self._calls[:count]]

    def allocations(self) -> list[Call]:
        """Return the calls that allocated memory."""
        return [call for call in self.calls() if not call.freed and call.address]

    def frees(self) -> list[Call]:
        """Return the calls that freed memory."""
        return [call for call in self.calls() if call.freed]

    def live(self) -> list[Call]:
        """Return the allocations without a free; raise AssertionError for a free that does not match its allocation."""
        live: dict[int, Call] = {}
        for call in self.calls():
            if call.freed:
                assert live.pop(call.address) == call._replace(freed=0), call
            elif call.address:
                assert call.address not in live, call
                live[call.address] = call
        return list(live.values())

    def refuse_above(self, size: int | None) -> None:
        """Let the library refuse requests above ``size`` bytes, or no request if None."""
        self._most.value = (1 << 63) - 1 if size is None else size

    def repeat(self, address: int | None) -> None:
        """Let the library return ``address`` for every request, or new memory again if None."""
        self._repeated.value = address

    def forget(self) -> None:
        """Clear the log."""
        self._number.value = 0
