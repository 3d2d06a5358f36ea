"""Scopes: memory by part of the program."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeVar

from tcuda._base.arguments import text
from tcuda._base.scope import Scope
from tcuda._process import scopes

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


class scope(Scope):
    """Context manager and decorator that gives the memory of a part of the program a name.

    Each array that the part allocates counts for the scope until the array is freed, wherever that happens.
    :func:`memory_stats` has ``scope_bytes.NAME.current`` and ``scope_bytes.NAME.peak``, in bytes. Snapshots, pages of
    snapshots and :func:`memory_summary` have the scopes too.

    Blocks may nest: an array counts for all scopes that are open when the array is allocated. A name that is open
    already is not opened again. The open scopes are a context variable of Python: each asyncio task has its own, and a
    new thread begins without a scope, unless the thread runs in a copy of the context. Page-locked memory of the host
    has no scopes.

    Args:
        name: The name: a text in one line, without dots.

    Raises:
        TypeError: ``name`` is not a text.
        ValueError: ``name`` is empty, or has a dot, a line break or another character that cannot be printed.

    Example:
        >>> with tcuda.memory.scope("fft"):
        ...     spectrum = xp.zeros(1000, dtype="complex64")
        >>> tcuda.memory_stats()["scope_bytes.fft.current"]  # 8000 bytes, rounded up
        8192
        >>> del spectrum
        >>> stats = tcuda.memory_stats()
        >>> stats["scope_bytes.fft.current"], stats["scope_bytes.fft.peak"]
        (0, 8192)
        >>> @tcuda.memory.scope("solver")
        ... def solve(size):
        ...     return xp.zeros(size)
    """

    def __init__(self, name: str) -> None:
        self._name = text(name, "scope(): name")
        if not name or "." in name or not name.isprintable():
            raise ValueError(
                f"scope(): name must be a text in one line, without dots, such as 'fft'; got {name!r}. Dots separate "
                "the parts of the keys of memory_stats(). Choose another name."
            )
        self._part = scopes.Part(name)

    def begin(self) -> None:
        scopes.begin(self._part)

    def undo(self) -> None:
        scopes.end(self._part)

    def again(self) -> scope:
        return scope(self._name)

    def __call__(self, func: F) -> F:
        """Return a function, each call of which is in the scope.

        Raises:
            TypeError: ``func`` is a generator or a coroutine function, whose calls only make an object.
        """
        if inspect.isgeneratorfunction(func) or inspect.iscoroutinefunction(func) or inspect.isasyncgenfunction(func):
            raise TypeError(
                f"scope() decorates functions; got {func.__qualname__}(), whose body runs after the call. Write `with "
                f"tcuda.memory.scope({self._name!r}):` in the body."
            )
        return super().__call__(func)
