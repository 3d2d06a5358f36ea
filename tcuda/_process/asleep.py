"""The pools that are asleep, whose arrays have addresses and no memory."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NoReturn

from tcuda._process.fork import call_in_child
from tcuda._process.ledger import ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

COMMON_POOL = (0, 0)
"""The number of the pool of all allocations that no other pool takes."""

asleep: list[tuple[int, tuple[int, int]]] = []
"""The device and the number of each pool that the program has put to sleep and not woken.

The list is empty nearly always. A call that uses memory looks at the list first, and asks for addresses only then.
"""

_listener: Callable[[bool], object] | None = None

# Reentrant, because a finalizer may use memory while a function below holds the lock.
_lock = threading.RLock()


def listen(listener: Callable[[bool], object] | None) -> None:
    """Let ``listener`` be told whether a pool is asleep, now and after each change; None ends that."""
    global _listener
    with _lock:
        _listener = listener
        if listener is not None:
            listener(bool(asleep))


def note(devices: Iterable[int], pool: tuple[int, int]) -> None:
    """Note whether a pool is asleep on each device. Pools that have ended are forgotten."""
    known = ledger()
    with _lock:  # or else a second thread could write an older state over a newer one
        entries = dict.fromkeys([*asleep, *((device, pool) for device in devices)])
        asleep[:] = [entry for entry in entries if known.is_asleep(*entry)]
        if _listener is not None:
            _listener(bool(asleep))


def _forget() -> None:
    global _lock
    _lock = threading.RLock()
    asleep.clear()
    if _listener is not None:
        _listener(False)


call_in_child(_forget)


def refuse_asleep(addresses: Iterable[int]) -> None:
    """Refuse addresses of a pool that is asleep; call this function only while :data:`asleep` has members.

    Raises:
        RuntimeError: An address is in such a pool.
    """
    known = ledger()
    if not all(known.is_asleep(*entry) for entry in list(asleep)):
        note((), COMMON_POOL)
    devices = {device for device, _ in list(asleep)}
    for address in addresses:
        for device in devices:
            pool = known.sleeping_pool(device, address)
            if pool is not None:
                _refuse(device, address, pool)


def _refuse(device: int, address: int, pool: tuple[int, int]) -> NoReturn:
    raise RuntimeError(
        f"The memory at {address:#x} of cuda:{device} is asleep in the pool {pool}, so the call would use addresses "
        "without memory. Wake the pool first, by tcuda.memory.wake() or by wake() of its MemPool."
    )
