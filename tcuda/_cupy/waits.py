"""The waits of CuPy's own calls. While there is a watcher, CuPy tells tcuda of these waits.

CuPy calls a Python function before each copy of an array to the host and before each wait for a device, for the sake of
``cupyx.allow_synchronize``, which CuPy has deprecated. Such a copy is made by ``float(array)``, ``array.item()``,
printing, boolean indexing and every other function of CuPy that reads an array. The classes of streams and events are
Python classes, and the calls of ``cupy.cuda.runtime`` are members of a module. So tcuda replaces these functions. The
other waits of CuPy are made by C functions, which cannot be replaced.
"""

from __future__ import annotations

import functools
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tcuda._process import waits

if TYPE_CHECKING:
    from collections.abc import Callable

_lock = threading.RLock()
_undo: list[Callable[[], None]] = []


def begin(cupy: Any) -> None:
    """Let ``cupy`` report its waits; a second call does nothing."""
    with _lock:
        if _undo:
            return
        # The two modules of CuPy find the function by these names, so that each of them can get a function of its own.
        _declare(cupy._core.core, lambda: waits.announce_next("ndarray.get"))
        _declare(cupy.cuda.device, lambda: waits.notice("Device.synchronize", explicit=True))
        streams, runtime = cupy.cuda.stream, cupy.cuda.runtime
        _precede(streams._BaseStream, lambda: waits.notice("Stream.synchronize"))
        _precede(streams.Event, lambda: waits.notice("Event.synchronize", explicit=True))
        # CuPy's compiled code does not find the calls of the runtime here. Programs do.
        for name in waits.CALLS:
            if hasattr(runtime, name):
                _replace(runtime, name, waits.noticing(name, getattr(runtime, name)))


def end() -> None:
    """Put CuPy's own functions back."""
    with _lock:
        while _undo:
            _undo.pop()()


def _declare(owner: Any, tell: Callable[[], None]) -> None:
    """Let ``owner``, a module of CuPy, call ``tell`` where ``owner`` looks whether a wait is allowed."""
    detect = getattr(owner, "syncdetect", None)
    if detect is None:  # CuPy may take its deprecated functions away
        return

    def declare() -> None:
        detect._declare_synchronize()  # raises an error if a program has forbidden the wait by CuPy's means
        tell()

    _replace(owner, "syncdetect", SimpleNamespace(_declare_synchronize=declare))


def _precede(owner: Any, tell: Callable[[], None]) -> None:
    """Let ``owner.synchronize`` call ``tell`` first."""
    found = owner.synchronize

    @functools.wraps(found)
    def synchronize(self: Any) -> None:
        tell()
        found(self)

    _replace(owner, "synchronize", synchronize)


def _replace(owner: Any, name: str, new: Any) -> None:
    found = getattr(owner, name)

    def undo() -> None:
        if getattr(owner, name) is new:  # another library may have replaced the function meanwhile
            setattr(owner, name, found)

    setattr(owner, name, new)
    _undo.append(undo)
