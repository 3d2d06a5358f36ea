"""Context managers whose blocks leave nothing behind, even where a signal handler raises in the middle."""

from __future__ import annotations

import abc
import contextlib
from typing import TYPE_CHECKING, Any, TypeVar

from tcuda._core import mended

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self


F = TypeVar("F", bound="Callable[..., Any]")


def undone_by(undo: Callable[[Any], object]) -> Callable[[F], F]:
    """Return a decorator of methods: after an exception in the method, ``undo(self)`` is called until it returns.

    ``undo`` must do nothing where nothing is left to undo.
    """
    return lambda method: mended(method, undo)


class Scope(contextlib.ContextDecorator, abc.ABC):
    """A context manager for one block, and a decorator of functions, each call of which is a block of its own.

    A subclass has ``begin()`` and ``undo()``. ``begin()`` notes what it is about to change before it changes that.
    ``undo()`` changes it back, in whichever thread, and does nothing to what was not changed, so that it can be called
    again after an exception in the middle of either.
    """

    _stage = "new"

    @abc.abstractmethod
    def begin(self) -> None:
        """Do what the block is for."""

    @abc.abstractmethod
    def undo(self) -> None:
        """Put back what :meth:`begin` may have changed."""

    @abc.abstractmethod
    def again(self) -> Self:
        """Return another context manager for the same."""

    def _recreate_cm(self) -> Self:
        return self.again()

    def _undo_begin(self) -> None:
        if self._stage == "beginning":
            self.undo()
            self._stage = "ended"

    def _enter(self) -> None:
        if self._stage != "new":
            raise RuntimeError("This context manager was entered before; make one for every block.")
        self._stage = "beginning"
        self.begin()
        self._stage = "inside"

    def _end(self, *exception: Any) -> None:
        if self._stage == "inside":
            self.undo()
            self._stage = "ended"

    __enter__ = mended(_enter, _undo_begin)
    __exit__ = mended(_end, _end)
