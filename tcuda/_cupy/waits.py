"""The waits of CuPy's own calls, of which tcuda is told while there is a watcher.

CuPy calls a Python function before each copy of an array to the host and before each wait for a device, for the sake of
``cupyx.allow_synchronize``, which CuPy has deprecated. Such a copy is made by ``float(array)``, ``array.item()``,
printing, boolean indexing and every other function of CuPy that reads an array. The classes of streams and events are
Python classes. So tcuda replaces these functions. CuPy's other waits are made by C functions, which cannot be replaced.
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
    """Let ``cupy`` tell of its waits; a second call does nothing."""
    with _lock:
        if _undo:
            return
        detect = cupy._core.syncdetect
        streams = cupy.cuda.stream
        # The two modules of CuPy find the function by these names, so that each of them can get a function of its own.
        _replace(cupy._core.core, "syncdetect", _declaring(detect, lambda: waits.announce_next("ndarray.get")))
        _replace(
            cupy.cuda.device,
            "syncdetect",
            _declaring(detect, lambda: waits.notice("Device.synchronize", explicit=True)),
        )
        _precede(streams._BaseStream, lambda: waits.notice("Stream.synchronize"))
        _precede(streams.Event, lambda: waits.notice("Event.synchronize", explicit=True))


def end() -> None:
    """Put CuPy's own functions back."""
    with _lock:
        while _undo:
            _undo.pop()()


def _declaring(detect: Any, tell: Callable[[], None]) -> SimpleNamespace:
    """Return a stand-in for ``detect``, the module in which CuPy finds the function that it calls before a wait."""

    def declare() -> None:
        detect._declare_synchronize()  # raises an error if a program has forbidden the wait by CuPy's means
        tell()

    return SimpleNamespace(_declare_synchronize=declare)


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
