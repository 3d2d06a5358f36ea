"""The subject of a measurement: a call on one side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loop import inlined

if TYPE_CHECKING:
    from calls import Call
    from sides import Side


class Subject:
    """A call on one side. Call :meth:`begin` before every round of :attr:`loop`, and :meth:`end` after the round.

    Args:
        call: The call.
        side: The side.

    Attributes:
        loop: The measured function, which executes the call repeatedly.
    """

    def __init__(self, call: Call, side: Side) -> None:
        self.loop = inlined(side.statement(call), side.names)
        self._side = side
        self._state = side.state(call)
        self._scope = dict(side.names)  # A copy, because the names that the state defines belong to this call alone.
        self._begun = False

    def begin(self) -> None:
        """Prepare a round."""
        self._side.begin()
        exec(self._state.begin, self._scope)
        self._begun = True

    def end(self) -> None:
        """Undo :meth:`begin`, if it was called, and wait for the device."""
        try:
            if self._begun:
                self._begun = False
                exec(self._state.end, self._scope)
        finally:
            self._side.rest()

    def round(self) -> None:
        """Execute one round, with :meth:`begin` and :meth:`end`."""
        self.begin()
        try:
            self.loop()
        finally:
            self.end()
