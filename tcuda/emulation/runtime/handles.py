"""Handles: the numbers by which a program names streams, events and graphs."""

from __future__ import annotations

# Handles look like addresses, so that a handle cannot be mistaken for an index.
_FIRST = 0x7C0DA000
_STEP = 0x10


class Handles:
    """The handles of a runtime, each of which is given out once. The caller holds the lock of the runtime."""

    def __init__(self) -> None:
        self._next = _FIRST

    def new(self) -> int:
        """Return a new handle."""
        handle = self._next
        self._next = handle + _STEP
        return handle

    def was_given(self, handle: int) -> bool:
        """Return whether ``handle`` was given out, to an object that may be destroyed by now."""
        return _FIRST <= handle < self._next
