"""Ranges and marks for profilers such as Nsight Systems (``torch.cuda.nvtx``), over the ``nvtx`` package.

The first call finds out whether a profiler is attached. Without a profiler, a call does nothing and takes almost no
time.
"""

from __future__ import annotations

import builtins
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from tcuda._base.public_names import public_names
from tcuda._process import scopes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]
__dir__ = public_names(__name__)

_NO_TRACKING = -2  # nvtxRangePush returns this value without a profiler (NVTX_NO_PUSH_POP_TRACKING)


class Listener(Protocol):
    """Hears of ranges and marks: a profiler, nobody, or a trace."""

    def push(self, msg: str) -> int: ...
    def pop(self) -> int: ...
    def start(self, msg: str) -> int: ...
    def end(self, range_id: int) -> None: ...
    def mark(self, msg: str) -> None: ...


class _NoProfiler:
    """The answers of NVTX without a profiler."""

    def push(self, msg: str) -> int:
        return _NO_TRACKING

    def pop(self) -> int:
        return _NO_TRACKING

    def start(self, msg: str) -> int:
        return 0

    def end(self, range_id: int) -> None:
        pass

    def mark(self, msg: str) -> None:
        pass


class _Profiler(threading.local):
    """An NVTX domain with the depth of ranges, which the ``nvtx`` package does not return."""

    def __init__(self, domain: Any) -> None:
        self._domain = domain
        self._depth = 0

    def push(self, msg: str) -> int:
        self._domain.push_range(self._domain.get_event_attributes(message=msg))
        self._depth += 1
        return self._depth - 1

    def pop(self) -> int:
        if self._depth == 0:
            return _NO_TRACKING
        self._domain.pop_range()
        self._depth -= 1
        return self._depth

    def start(self, msg: str) -> int:
        return int(self._domain.start_range(self._domain.get_event_attributes(message=msg)))

    def end(self, range_id: int) -> None:
        self._domain.end_range(range_id)

    def mark(self, msg: str) -> None:
        self._domain.mark(self._domain.get_event_attributes(message=msg))


class _Scopes:
    """Lets the ranges of a thread be scopes of memory, and passes everything on to a profiler."""

    def __init__(self, profiler: Listener) -> None:
        self._profiler = profiler

    def push(self, msg: str) -> int:
        # A range may have any name; a scope has a name in one line, without dots.
        name = "".join(each if each.isprintable() and each != "." else "_" for each in msg)
        scopes.begin(scopes.Part(name, is_range=True))
        return self._profiler.push(msg)

    def pop(self) -> int:
        scopes.end_range()
        return self._profiler.pop()

    def start(self, msg: str) -> int:
        return self._profiler.start(msg)

    def end(self, range_id: int) -> None:
        self._profiler.end(range_id)

    def mark(self, msg: str) -> None:
        self._profiler.mark(msg)


_listener: Listener | None = None


def change_listener(change: Callable[[Listener], Listener]) -> None:
    """Let the result of ``change`` hear of ranges and marks from now on, in place of the listener that it is given."""
    global _listener
    _listener = change(_listener or _listen())


def _listen() -> Listener:
    """Find out whether a profiler is attached, and whether ranges are scopes of memory.

    Raises:
        ValueError: ``TCUDA_MEMORY_SCOPES`` has a value that the variable cannot have.
    """
    global _listener
    import nvtx

    are_scopes = scopes.ranges_are_scopes()
    domain = nvtx.get_domain()
    attached = builtins.type(domain).__name__ != "DummyDomain"
    profiler: Listener = _Profiler(domain) if attached else _NoProfiler()
    _listener = _Scopes(profiler) if are_scopes else profiler
    return _listener


def _check(msg: object, function: str) -> None:
    if not isinstance(msg, str):
        raise TypeError(f"{function}() takes a str, not {msg!r}, a {type(msg).__name__}")


def range_push(msg: str) -> int:
    """Open a range inside this thread's innermost range (``nvtxRangePush``).

    Args:
        msg: The text to show.

    Returns:
        The depth of the range, counted from 0; -2 if no profiler is attached.

    Raises:
        TypeError: ``msg`` is not a text.

    Example:
        >>> depth = tcuda.nvtx.range_push("load")  # -2 without a profiler
        >>> x = xp.ones(1000)
        >>> depth = tcuda.nvtx.range_pop()
    """
    if type(msg) is not str:
        _check(msg, "range_push")
    return (_listener or _listen()).push(msg)


def range_pop() -> int:
    """Close this thread's innermost range (``nvtxRangePop``).

    Returns:
        The depth of the range, counted from 0; -2 if this thread has no open range or no profiler is attached.

    Example:
        >>> depth = tcuda.nvtx.range_push("load")
        >>> depth = tcuda.nvtx.range_pop()  # ends "load"
    """
    return (_listener or _listen()).pop()


def range_start(msg: str) -> int:
    """Open a range that any thread may close (``nvtxRangeStart``).

    Args:
        msg: The text to show.

    Returns:
        The number of the range, for :func:`range_end`.

    Raises:
        TypeError: ``msg`` is not a text.

    Example:
        >>> number = tcuda.nvtx.range_start("request")
        >>> x = xp.ones(1000)
        >>> tcuda.nvtx.range_end(number)  # in this thread or in another one
    """
    _check(msg, "range_start")
    return (_listener or _listen()).start(msg)


def range_end(range_id: int) -> None:
    """Close a range (``nvtxRangeEnd``).

    Args:
        range_id: The number of the range that :func:`range_start` returned.

    Raises:
        TypeError: ``range_id`` is not an integer.
        ValueError: ``range_id`` is negative or 2**64 or larger.

    Example:
        >>> number = tcuda.nvtx.range_start("request")
        >>> tcuda.nvtx.range_end(number)
    """
    if not isinstance(range_id, int):
        raise TypeError(f"range_end() takes what range_start() returned, an int, not {range_id!r}")
    if not 0 <= range_id < 1 << 64:
        raise ValueError(f"range_end() takes what range_start() returned, from 0 to 2**64 - 1, not {range_id}")
    (_listener or _listen()).end(range_id)


def mark(msg: str) -> None:
    """Mark the present moment (``nvtxMark``).

    Args:
        msg: The text to show.

    Raises:
        TypeError: ``msg`` is not a text.

    Example:
        >>> tcuda.nvtx.mark("first batch done")
    """
    _check(msg, "mark")
    (_listener or _listen()).mark(msg)


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Context manager and decorator for :func:`range_push` and :func:`range_pop` (``torch.cuda.nvtx.range``).

    Args:
        msg: The text to show, a format string.
        *args: The positional arguments of ``msg.format()``.
        **kwargs: The keyword arguments of ``msg.format()``.

    Raises:
        TypeError: ``msg`` is not a text.
        IndexError: ``msg`` has a replacement field that ``args`` lack.
        KeyError: ``msg`` has a replacement field that ``kwargs`` lack.

    Example:
        >>> with tcuda.nvtx.range("epoch {}", 3):
        ...     x = xp.ones(1000).sum()
        >>> @tcuda.nvtx.range("step")
        ... def step(x):
        ...     return x + 1
    """
    _check(msg, "range")
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
