"""Context managers that undo their changes, also after an exception of a signal handler at any point."""

from __future__ import annotations

import abc
import contextlib
from typing import TYPE_CHECKING, Any, TypeVar

from tcuda._core import cleanup_on_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self


F = TypeVar("F", bound="Callable[..., Any]")


def undone_by(undo: Callable[[Any], object]) -> Callable[[F], F]:
    """Return a decorator of methods that calls ``undo(self)`` after an exception in the method.

    ``undo(self)`` is called again until a call returns. So ``undo`` must do nothing if nothing is left to undo.
    """
    return lambda method: cleanup_on_error(method, undo)


def require_depth(calls: int = 20) -> None:
    """Raise a ``RecursionError`` if so many nested calls are impossible here, which an undo may need.

    An undo that is called a few calls below the limit could fail like the change before.
    """
    if calls:
        require_depth(calls - 1)


class Scope(contextlib.ContextDecorator, abc.ABC):
    """A context manager for one scope, and a decorator of functions, each call of which is a scope of its own.

    A subclass has ``begin()`` and ``undo()``. ``begin()`` must note every change before it makes the change. ``undo()``
    must undo the noted changes, in any thread. ``undo()`` is called again after an exception in the middle of either
    method, so it must leave alone everything that is not changed.
    """

    _stage = "new"

    @abc.abstractmethod
    def begin(self) -> None:
        """Make the changes of the scope."""

    @abc.abstractmethod
    def undo(self) -> None:
        """Undo the changes that :meth:`begin` has made."""

    @abc.abstractmethod
    def again(self) -> Self:
        """Return a new context manager with the same arguments."""

    def _recreate_cm(self) -> Self:
        return self.again()

    def _undo_begin(self) -> None:
        if self._stage == "beginning":
            self.undo()
            self._stage = "ended"

    def _enter(self) -> None:
        if self._stage != "new":
            raise RuntimeError("This context manager was entered before; make a new one for every `with` statement.")
        self._stage = "beginning"
        self.begin()
        self._stage = "inside"

    def _end(self, *exception: Any) -> None:
        if self._stage == "inside":
            self.undo()
            self._stage = "ended"

    __enter__ = cleanup_on_error(_enter, _undo_begin)
    __exit__ = cleanup_on_error(_end, _end)
