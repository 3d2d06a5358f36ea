"""A call on one side, ready to be measured in rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loop import inlined

if TYPE_CHECKING:
    from calls import Call
    from sides import Side


class Subject:
    """A call on one side. Every round of :attr:`loop` stands between :meth:`begin` and :meth:`end`.

    Args:
        call: The call.
        side: The side.

    Attributes:
        loop: What is measured.
    """

    def __init__(self, call: Call, side: Side) -> None:
        self.loop = inlined(side.statement(call), side.names)
        self._side = side
        self._state = side.state(call)
        self._scope = dict(side.names)  # what the state puts there is of this call alone
        self._begun = False

    def begin(self) -> None:
        """Make ready for a round."""
        self._side.begin()
        exec(self._state.begin, self._scope)
        self._begun = True

    def end(self) -> None:
        """Leave everything as it was before :meth:`begin`, also if that was never called."""
        try:
            if self._begun:
                self._begun = False
                exec(self._state.end, self._scope)
        finally:
            self._side.rest()

    def round(self) -> None:
        """Go through one round."""
        self.begin()
        try:
            self.loop()
        finally:
            self.end()
