"""Communicators: the ranks that a program joins to cliques, and the cliques of the devices of this process."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from tcuda._base.copying import refusing
from tcuda._process.captures import require_no_capture
from tcuda._process.fork import call_in_child

if TYPE_CHECKING:
    from tcuda._backend.nccl import Nccl


class Communicator:
    """A rank of a clique, which :func:`tcuda.nccl.init_rank` returns; an opaque object in torch.

    Args:
        handle: The communicator of the library.
        device: The index of the device.
        rank: The number of the device in the clique.
        ranks: The number of devices in the clique.
    """

    __slots__ = ("device", "handle", "rank", "ranks")

    def __init__(self, handle: Any, device: int, rank: int, ranks: int) -> None:
        self.handle = handle
        self.device = device
        self.rank = rank
        self.ranks = ranks

    def __repr__(self) -> str:
        return f"<communicator of rank {self.rank} of {self.ranks} on device {self.device}>"

    __reduce__ = refusing("copy or pickle", "A communicator is valid in one process. Send the unique_id() instead.")


class Clique(NamedTuple):
    """The communicators of several devices of this process.

    Attributes:
        handles: The communicators of the library, in the order of the devices.
        lock: The lock of the communicators, which only one thread may use at a time.
    """

    handles: tuple[Any, ...]
    lock: Any


cliques: dict[tuple[int, ...], Clique] = {}
"""The cliques that have been made, by their devices."""

# The lock is reentrant because a signal handler that runs meanwhile may ask for communicators too.
_lock = threading.RLock()


def clique(library: Nccl, devices: tuple[int, ...]) -> Clique:
    """Return the clique of ``devices``, which lives as long as the process; the first call makes the clique.

    Raises:
        AcceleratorError: The clique is to be made, which a capture in progress forbids.
        NcclError: NCCL cannot make the clique.
    """
    known = cliques.get(devices)
    if known is not None:
        return known
    with _lock:
        if devices not in cliques:
            require_no_capture("ncclCommInitAll()")
            cliques[devices] = Clique(tuple(library.communicators(devices)), threading.RLock())
        return cliques[devices]


def _forget_in_child() -> None:
    global _lock
    cliques.clear()
    _lock = threading.RLock()  # another thread of the parent may have held the lock


call_in_child(_forget_in_child)
