"""The recording of the stacks of allocations: what the program asks for, and what measurements need meanwhile."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from tcuda._core import Stacks
from tcuda._process.fork import call_in_child
from tcuda._process.ledger import ledger_if_any

if TYPE_CHECKING:
    from tcuda._backend import Backend
    from tcuda._core import Ledger
    from tcuda._runtime.protocol import Runtime

_ORDER = (Stacks.NONE, Stacks.LIVE, Stacks.ALLOCATIONS, Stacks.ALL)


class Recording(NamedTuple):
    """The arguments of ``Ledger.record_history``."""

    stacks: Stacks
    capacity: int
    skipped: int


_lock = threading.RLock()  # the garbage collector may end a measurement anywhere
_asked: Recording | None = None
_measurements = 0


def record(ledger: Ledger, asked: Recording | None, clear: bool = False) -> None:
    """Record as the program asks; None ends that. Measurements that need stacks still get them."""
    global _asked
    with _lock:
        _asked = asked
        _apply(ledger, clear)


def want_stacks() -> None:
    """Record the stacks of live memory until the matching :func:`release_stacks`."""
    _count(1)


def release_stacks() -> None:
    """End what :func:`want_stacks` has begun."""
    _count(-1)


def begin_recording(cuda: Runtime, backend: Backend) -> None:
    """Record for measurements that are older than the ledger: a step of initialisation."""
    ledger = ledger_if_any()
    if ledger is not None and _measurements:
        with _lock:
            _apply(ledger, False)


def _count(change: int) -> None:
    global _measurements
    with _lock:
        before, _measurements = _measurements, _measurements + change
        ledger = ledger_if_any()
        if ledger is not None and bool(before) != bool(_measurements):
            _apply(ledger, False)


def _apply(ledger: Ledger, clear: bool) -> None:
    if _asked is not None:
        stacks = max(_asked.stacks, Stacks.LIVE, key=_ORDER.index) if _measurements else _asked.stacks
        ledger.record_history(stacks, _asked.capacity, _asked.skipped, clear)
    elif _measurements:
        ledger.stop_history()  # drops the events that the program has asked for before
        ledger.record_history(Stacks.LIVE, 0, 0, clear)
    else:
        ledger.stop_history()


def _forget() -> None:
    global _lock, _asked, _measurements
    _lock, _asked, _measurements = threading.RLock(), None, 0


call_in_child(_forget)
