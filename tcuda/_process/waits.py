"""The waits of the host for a device. A watcher learns of each wait before the wait begins.

Nobody is told while there is no watcher, and then nothing costs anything: the calls of the runtime in ``cuda`` are
replaced only while there is a watcher. An operation that makes several calls of the runtime, such as a copy to the
host, announces itself as one wait.

The watcher may raise an exception. The wait is then not begun.
"""

from __future__ import annotations

import functools
import sys
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tcuda._process.fork import call_in_child
from tcuda._process.lazy import backend, call_when_ready, cuda, is_initialized
from tcuda._runtime.protocol import MEMCPY_DEFAULT, MEMCPY_DEVICE_TO_HOST

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import TypeAlias


class Wait(NamedTuple):
    """A wait of the host that is about to begin.

    Attributes:
        call: The name of the call that waits, such as ``"ndarray.get"``.
        frame: The frame of the program that makes the call. A keeper of the frame keeps its variables alive.
        explicit: Whether the call waits for an event or a whole device, and does nothing else. torch's debug mode does
            not look at such calls.
    """

    call: str
    frame: FrameType
    explicit: bool


if TYPE_CHECKING:
    Watcher: TypeAlias = Callable[[Wait], object]

watched = False
"""Whether there is a watcher. An operation that announces itself tests this first."""

_LIBRARIES = frozenset(["cupy", "cupy_backends", "cupyx", "numpy", "tcuda"])
_PROGRAMS = ("tcuda.demo",)

_watcher: Watcher | None = None
_lock = threading.RLock()
_replaced: dict[str, Any] = {}
"""The calls of the runtime that are replaced, by their names."""


class _Thread(threading.local):
    """The state of a thread.

    Attributes:
        announced: The place of the last call that has announced its wait by :func:`announce_next`, until the thread
            waits.
    """

    announced: tuple[int, int, CodeType] | None = None


_thread = _Thread()


def watch(watcher: Watcher | None) -> None:
    """Let ``watcher`` learn of every wait that begins from now on, in all threads; None ends this.

    Before tcuda is initialised, the host waits for no device, so the watcher learns of nothing.
    """
    global _watcher, watched
    with _lock:
        _watcher = watcher
        watched = watcher is not None
        if is_initialized():
            _adapt()


def unwatched(name: str) -> Callable[..., Any]:
    """Return the call ``name`` of the runtime, without a notice for the watcher.

    The call is for waits that are announced already, and for waits that are no waits of the program.
    """
    return _replaced.get(name) or cast("Callable[..., Any]", getattr(cuda, name))


def announce(call: str) -> None:
    """Tell the watcher of a wait of this thread, which the thread begins by :func:`unwatched`.

    Args:
        call: The name of the call.
    """
    _tell(call, _frame_of_program(), explicit=False)


def announce_next(call: str) -> None:
    """Tell the watcher of a wait as :func:`announce`, and treat the next wait at the same place as the same wait."""
    frame = _frame_of_program()
    _thread.announced = None
    _tell(call, frame, explicit=False)
    _thread.announced = _place(frame)


def notice(call: str, *, explicit: bool = False) -> None:
    """Tell the watcher of a wait of this thread, unless the wait was announced by :func:`announce_next`.

    Args:
        call: The name of the call.
        explicit: Whether the call waits for an event or a whole device.
    """
    frame = _frame_of_program()
    announced, _thread.announced = _thread.announced, None
    if announced is None or announced != _place(frame):
        _tell(call, frame, explicit=explicit)


def _tell(call: str, frame: FrameType, *, explicit: bool) -> None:
    watcher = _watcher
    if watcher is not None:
        watcher(Wait(call, frame, explicit))


def _frame_of_program() -> FrameType:
    """Return the innermost frame that is neither of tcuda nor of an array library; the outermost one if there is none.

    The modules of ``tcuda.demo`` count as code of the program, because a user reads them as an example.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None:
        name = frame.f_globals.get("__name__") or ""
        if name.partition(".")[0] not in _LIBRARIES or name.startswith(_PROGRAMS):
            break
        frame = frame.f_back
    return frame


def _place(frame: FrameType) -> tuple[int, int, CodeType]:
    return id(frame), frame.f_lasti, frame.f_code


def _adapt() -> None:
    """Replace the calls of the runtime that wait, or put them back, according to whether there is a watcher."""
    with _lock:
        members = vars(cuda)
        if watched and not _replaced:
            backend.watch_waits(True)
            for name in CALLS:
                _replaced[name] = members[name]
                members[name] = noticing(name, members[name])
        elif not watched and _replaced:
            backend.watch_waits(False)
            members.update(_replaced)
            _replaced.clear()


def noticing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function``, the call ``name`` of the runtime, with a notice of each call that waits."""
    call, waits, explicit = CALLS[name]

    @functools.wraps(function)
    def noticed(*args: Any, **kwargs: Any) -> Any:
        if waits(*args, **kwargs):
            notice(call, explicit=explicit)
        return function(*args, **kwargs)

    return noticed


def _always(*args: int, **kwargs: int) -> bool:
    return True


def _copies(dst: int, src: int, size: int, kind: int) -> bool:
    return size > 0


def _copies_to_host(dst: int, src: int, size: int, kind: int, stream: int) -> bool:
    return size > 0 and _waits_to_copy(dst, kind)


def _copies_rows_to_host(
    dst: int, dpitch: int, src: int, spitch: int, width: int, height: int, kind: int, stream: int
) -> bool:
    return width > 0 and height > 0 and _waits_to_copy(dst, kind)


def _waits_to_copy(dst: int, kind: int) -> bool:
    """Return whether an asynchronous copy of this kind to ``dst`` waits: a copy to pageable memory of the host does."""
    to_host = kind == MEMCPY_DEVICE_TO_HOST or (kind == MEMCPY_DEFAULT and cuda.pointerGetDevice(dst) < 0)
    return to_host and not cuda.pointerIsPageLocked(dst)


CALLS: dict[str, tuple[str, Callable[..., bool], bool]] = {
    "deviceSynchronize": ("synchronize", _always, True),
    "eventSynchronize": ("Event.synchronize", _always, True),
    "memcpy": ("cudaMemcpy", _copies, False),
    "memcpyAsync": ("cudaMemcpyAsync", _copies_to_host, False),
    "memcpy2DAsync": ("cudaMemcpy2DAsync", _copies_rows_to_host, False),
    "streamSynchronize": ("Stream.synchronize", _always, False),
}
"""For each call of the runtime: the name that the watcher is told, which calls wait, and whether they are explicit."""


def _forget_in_child() -> None:
    global _lock
    _lock = threading.RLock()  # another thread of the parent may have held it
    _replaced.clear()  # `cuda` forgets its members too


call_when_ready(_adapt)
call_in_child(_forget_in_child)
