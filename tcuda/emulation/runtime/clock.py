"""The time of emulated devices, which passes only when the program does something."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Callable

CALL = 1_000
"""Nanoseconds of host time that one call to the runtime takes. So a program that polls does not wait for ever."""


class Clock(_core.EmulatedClock):
    """A clock in nanoseconds that counts from 0 and is the same at every run of the same program.

    Example:
        >>> import tcuda.emulation
        >>> clock = tcuda.emulation.clock()
        >>> before = clock.now()
        >>> clock.advance(1_000) - before  # nanoseconds
        1000
    """

    __slots__ = ("_waited",)

    def __init__(self) -> None:
        # The runtime uses the same lock, and moves the time while it holds the lock. The lock is reentrant because a
        # garbage collection may begin while the lock is held, and finalizers may wait for streams.
        super().__init__(threading.RLock())
        self._waited: Callable[[int, int], None] | None = None
        """Hears of the beginning and the end of each wait, while a trace is made."""

    def __repr__(self) -> str:
        return f"<tcuda.emulation.Clock: {self.now()} ns>"

    def now(self) -> int:
        """Return the time in nanoseconds.

        Example:
            >>> clock = tcuda.emulation.clock()
            >>> clock.now() >= 0  # nanoseconds
            True
        """
        return self._now

    def advance(self, nanoseconds: int) -> int:
        """Let ``nanoseconds`` pass, as if the host were busy with something else, and return the new time.

        Args:
            nanoseconds: The time that passes.

        Raises:
            ValueError: ``nanoseconds`` is negative.

        Example:
            >>> clock = tcuda.emulation.clock()
            >>> before = clock.now()
            >>> clock.advance(1000) - before
            1000
        """
        if nanoseconds < 0:
            raise ValueError(f"The clock cannot go back by {-nanoseconds} ns; advance() takes 0 or more.")
        with self._lock:
            self._now += nanoseconds
            return self._now

    def _tick(self) -> int:
        """Let the time of one call pass, and return the new time. The caller holds the lock."""
        self._now += CALL
        return self._now

    def wait_until(self, time: int) -> int:
        """Let time pass until ``time``, and return the new time in nanoseconds. Nothing happens if ``time`` is past.

        Args:
            time: The time in nanoseconds.

        Example:
            >>> clock = tcuda.emulation.clock()
            >>> later = clock.now() + 1_000
            >>> clock.wait_until(later) == later
            True
            >>> clock.wait_until(0) == later  # is past
            True
        """
        with self._lock:
            began = self._now
            if time > began:  # no call may come between, because a garbage collection might move the clock
                self._now = time
                if self._waited is not None:
                    self._waited(began, time)
            return self._now
