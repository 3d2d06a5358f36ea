"""The debug mode for calls that let the host wait for a device, and the counter of such calls.

Seen on emulated devices: every wait. Seen on CUDA: the waits of tcuda's own calls, every copy of a ``cupy.ndarray`` to
the host, and the ``synchronize()`` of CuPy's streams, events and devices.
"""

from __future__ import annotations

import numbers
import threading
import warnings
from typing import TYPE_CHECKING, Literal

from tcuda._base.arguments import flag
from tcuda._base.cells import line_in, shown
from tcuda._base.scope import Scope
from tcuda._base.warnings import stacklevel
from tcuda._process import waits
from tcuda._process.fork import call_in_child
from tcuda._process.lazy import _lazy_init

if TYPE_CHECKING:
    from types import FrameType

    from typing_extensions import Self, TypedDict

    class SyncCount(TypedDict):
        """A row of :meth:`SyncCounter.counts`."""

        call: str
        file: str
        line: int
        count: int


_MODES = {"default": 0, "warn": 1, "error": 2}
_ERROR = 2
_SYNCHRONIZES = "called a synchronizing CUDA operation"
_PROTOTYPE = "Synchronization debug mode is a prototype feature and does not yet detect all synchronizing operations"


class _Setting:
    """A debug mode, of the process or of a block.

    Attributes:
        mode: 0, 1 or 2.
        explicit: Whether the mode holds for waits for an event or a whole device too.
    """

    __slots__ = ("explicit", "mode")

    def __init__(self, mode: int, *, explicit: bool = False) -> None:
        self.mode = mode
        self.explicit = explicit


class _Thread(threading.local):
    """The settings of the scopes that a thread is in, the innermost one last."""

    def __init__(self) -> None:
        self.settings: list[_Setting] = []


_thread = _Thread()
_of_process = _Setting(0)
_of_scopes: dict[int, _Setting] = {}
"""The settings of the scopes of all threads, by their identity."""
_counters: tuple[SyncCounter, ...] = ()
_has_warned = False
_lock = threading.RLock()


def set_sync_debug_mode(debug_mode: int | Literal["default", "warn", "error"]) -> None:
    """Set what happens at calls that let the host wait for a device (``torch.cuda.set_sync_debug_mode``).

    The mode holds for all threads. Inside of a block of :func:`sync_debug_mode`, the call changes the mode of the
    block instead. ``Event.synchronize()`` and ``tcuda.synchronize()`` are no such calls, as in torch.

    On emulated devices every wait is seen. On CUDA, a wait is seen if tcuda begins it; if CuPy copies an array to the
    host, as ``array.get()``, ``float(array)``, printing and boolean indexing do; or if the wait is the
    ``synchronize()`` of a stream. Waits in C functions of CuPy and of other libraries are not seen, for instance
    ``MemoryPointer.copy_to_host()``. CuPy announces every copy to the host, so that ``array.get(blocking=False)`` is
    reported on CUDA, although a copy to pinned memory does not wait.

    Args:
        debug_mode: 0 or ``"default"`` for nothing, 1 or ``"warn"`` for a warning, 2 or ``"error"`` for a
            ``RuntimeError``, which is raised before the wait begins.

    Raises:
        RuntimeError: ``debug_mode`` is another value.

    Example:
        >>> tcuda.set_sync_debug_mode("error")
        >>> float(xp.ones(3).sum())  # the host waits for the result
        Traceback (most recent call last):
            ...
        RuntimeError: called a synchronizing CUDA operation...
        >>> tcuda.set_sync_debug_mode("default")
    """
    _lazy_init()
    if isinstance(debug_mode, str):
        debug_mode = _mode_of(debug_mode)
    _warn_of_prototype()  # torch warns before a look at a number, and after a look at a text
    mode = _mode_of(debug_mode)
    with _lock:
        _in_force().mode = mode
        _adapt()


def get_sync_debug_mode() -> int:
    """Return the mode that is in force in this thread: 0, 1 or 2 (``torch.cuda.get_sync_debug_mode``).

    Example:
        >>> with tcuda.sync_debug_mode("warn"):
        ...     tcuda.get_sync_debug_mode()
        1
    """
    _lazy_init()
    return _in_force().mode


def sync_debug_mode(debug_mode: int | Literal["default", "warn", "error"], *, explicit: bool = False) -> Scope:
    """Return a context manager and decorator that sets the debug mode for a part of a program, in one thread.

    The mode of the process does not change, and other threads do not see the mode of the block. Blocks can be nested;
    the mode of the innermost block holds. See :func:`tcuda.set_sync_debug_mode` for the modes and for the calls that
    are seen.

    Args:
        debug_mode: 0, 1 or 2, or ``"default"``, ``"warn"`` or ``"error"``.
        explicit: Whether ``Event.synchronize()`` and ``tcuda.synchronize()``, which torch lets pass, are seen too.

    Raises:
        RuntimeError: ``debug_mode`` is another value.
        TypeError: ``explicit`` is neither a truth value nor an integer.

    Example:
        >>> total = xp.ones(3).sum()
        >>> with tcuda.sync_debug_mode("error"):
        ...     total += 1  # queues work, and does not wait
        >>> float(total)
        4.0
    """
    return _ModeScope(_mode_of(debug_mode), flag(explicit, "explicit"))


class _ModeScope(Scope):
    """The block of :func:`sync_debug_mode`."""

    def __init__(self, mode: int, explicit: bool) -> None:
        self._mode = mode
        self._explicit = explicit
        self._settings: list[_Setting] = []
        self._setting = _Setting(mode, explicit=explicit)

    def begin(self) -> None:
        _lazy_init()
        self._settings = _thread.settings
        with _lock:
            _of_scopes[id(self._setting)] = self._setting
            self._settings.append(self._setting)
            _adapt()

    def undo(self) -> None:
        with _lock:
            if self._setting in self._settings:
                self._settings.remove(self._setting)
            _of_scopes.pop(id(self._setting), None)
            _adapt()

    def again(self) -> _ModeScope:
        return _ModeScope(self._mode, self._explicit)


class SyncCounter:
    """Counts the calls that let the host wait for a device, by the line of the program.

    A counter is a context manager, or is started and stopped by hand. A counter counts the calls of all threads, also
    ``Event.synchronize()`` and ``tcuda.synchronize()``. A call that the debug mode refuses is not counted. A counter
    does not initialise tcuda. See :func:`tcuda.set_sync_debug_mode` for the calls that are seen.

    Example:
        >>> total = xp.ones(3).sum()
        >>> with tcuda.SyncCounter() as counter:
        ...     for _ in range(2):
        ...         host = total.get()
        >>> [(row["call"], row["count"]) for row in counter.counts()]
        [('ndarray.get', 2)]
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int, str], int] = {}

    def start(self) -> None:
        """Count from now on; a second call does nothing.

        Example:
            >>> total = xp.ones(3).sum()
            >>> counter = tcuda.SyncCounter()
            >>> counter.start()
            >>> host = total.get()
            >>> counter.stop()
            >>> len(counter.counts())
            1
        """
        global _counters
        with _lock:
            if self not in _counters:
                _counters = (*_counters, self)
            _adapt()

    def stop(self) -> None:
        """Stop counting; a second call does nothing.

        Example:
            >>> total = xp.ones(3).sum()
            >>> counter = tcuda.SyncCounter()
            >>> counter.start()
            >>> host = total.get()
            >>> counter.stop()
            >>> host = total.get()  # is not counted
            >>> counter.counts()[0]["count"]
            1
        """
        global _counters
        with _lock:
            _counters = tuple(counter for counter in _counters if counter is not self)
            _adapt()

    def counts(self) -> list[SyncCount]:
        """Return the calls with their place and number, the most frequent ones first.

        Returns:
            A dict for each line and call: ``"call"``, the name of the call that waits, such as ``"ndarray.get"``;
            ``"file"`` and ``"line"``, the place in the program; ``"count"``, how often the call has waited.

        Example:
            >>> total = xp.ones(3).sum()
            >>> counter = tcuda.SyncCounter()
            >>> counter.start()
            >>> host = total.get()
            >>> counter.stop()
            >>> [(row["call"], row["count"]) for row in counter.counts()]
            [('ndarray.get', 1)]
        """
        with _lock:
            rows = sorted((-count, *place) for place, count in dict(self._counts).items())
        return [{"call": call, "file": file, "line": line, "count": -count} for count, file, line, call in rows]

    def __repr__(self) -> str:
        rows = self.counts()
        state = ", counting" if self in _counters else ""
        waits, lines = sum(row["count"] for row in rows), len(rows)
        counted = f"{waits} wait{'' if waits == 1 else 's'} at {lines} line{'' if lines == 1 else 's'}"
        return f"<tcuda.SyncCounter: {counted}{state}>"

    def _repr_html_(self) -> str:
        from tcuda._viz.shared import notebook  # here, because few programs need the module

        rows = [
            (row["count"], row["call"], line_in(shown(row["file"]), row["line"]) or f"{row['file']}:{row['line']}")
            for row in self.counts()
        ]
        return notebook.table("Calls that let the host wait", ("count", "call", "line"), rows)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _add(self, wait: waits.Wait) -> None:
        place = wait.frame.f_code.co_filename, wait.frame.f_lineno, wait.call
        with _lock:
            self._counts[place] = self._counts.get(place, 0) + 1


def _mode_of(debug_mode: object) -> int:
    """Return ``debug_mode`` as a number.

    Raises:
        RuntimeError: ``debug_mode`` is no mode.
    """
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`; got {debug_mode!r}."
            )
        return _MODES[debug_mode]
    if isinstance(debug_mode, bool) or not isinstance(debug_mode, numbers.Integral):
        raise RuntimeError(
            "invalid argument to set_sync_debug_mode: the mode is 0, 1, 2, 'default', 'warn' or 'error'; "
            f"got {debug_mode!r}."
        )
    if debug_mode not in _MODES.values():
        raise RuntimeError(f"invalid value of debug_mode, expected one of 0,1,2; got {debug_mode!r}.")
    return int(debug_mode)


def _warn_of_prototype() -> None:
    """Warn that torch calls the mode a prototype, at the first call of the process."""
    global _has_warned
    if not _has_warned:
        _has_warned = True
        warnings.warn(_PROTOTYPE, UserWarning, stacklevel=stacklevel())


def _in_force() -> _Setting:
    """Return the setting that holds in this thread."""
    settings = _thread.settings
    return settings[-1] if settings else _of_process


def _adapt() -> None:
    """Watch the waits if somebody wants to know of them."""
    settings = (_of_process, *_of_scopes.values())
    wanted = bool(_counters) or any(setting.mode for setting in settings)
    waits.watch(_check if wanted else None)


def _check(wait: waits.Wait) -> None:
    """Do what the mode demands, and count the wait, which has not begun.

    Raises:
        RuntimeError: The mode is 2.
    """
    setting = _in_force()
    if setting.mode and (setting.explicit or not wait.explicit):
        if setting.mode == _ERROR:
            raise RuntimeError(_SYNCHRONIZES)
        _warn(wait.frame)
    for counter in _counters:
        counter._add(wait)


def _warn(frame: FrameType) -> None:
    """Warn at the line of the program that ``frame`` executes."""
    module = frame.f_globals
    name = module.get("__name__") or "<unknown>"
    registry = module.setdefault("__warningregistry__", {})
    warnings.warn_explicit(_SYNCHRONIZES, UserWarning, frame.f_code.co_filename, frame.f_lineno, name, registry)


def _forget_in_child() -> None:
    """Keep the mode of the process and of the thread that has forked, because no other thread exists in the child."""
    global _lock
    _lock = threading.RLock()  # another thread of the parent may have held it
    _of_scopes.clear()
    _of_scopes.update({id(setting): setting for setting in _thread.settings})


call_in_child(_forget_in_child)
