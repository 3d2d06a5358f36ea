"""The state of a generator in a captured graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tcuda._base.statuses import Status
from tcuda._process.lazy import cuda
from tcuda.random._philox import WORD

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda._core import PhiloxState
    from tcuda.emulation.runtime import EmulatedRuntime


class CapturedState:
    """The state of a generator for the kernels of one graph.

    Args:
        state: The state of the generator.

    Attributes:
        position: How far the next draw of the graph is from the offset at the launch.
    """

    def __init__(self, state: PhiloxState) -> None:
        self._state = state
        self.position = 0
        self._begin = 0, 0
        """The seed and the offset at the start of the latest launch."""

    def prepare(self, exec: int) -> int:
        """Move the generator past the draws of the graph, for the next launch of ``exec``; return a status."""
        begin = self._state.advance(self.position)

        def begin_there() -> None:
            self._begin = begin

        cast("EmulatedRuntime", cuda).prepareLaunch(exec, self, begin_there)
        return Status.SUCCESS

    def prepare_node(self) -> int:
        """Move the generator past the draws of the graph, for nodes that are launched one by one; return a status."""
        self._begin = self._state.advance(self.position)
        return Status.SUCCESS

    def follow(self, before: CapturedState | None) -> None:
        """Take the place of ``before`` in an executable graph, which asks each state at a launch."""

    def place(self, increment: int) -> Callable[[], tuple[int, int]]:
        """Return a function that returns the seed and the offset of a draw at every launch.

        Args:
            increment: The increment of the offset by the draw.
        """
        before = self.position
        self.position += increment
        return lambda: (self._begin[0], self._begin[1] + before & WORD)
