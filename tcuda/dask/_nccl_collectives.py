"""Collectives by NCCL, whose clique the scheduler has brought together."""

from __future__ import annotations

import threading
from typing import Any

import tcuda
from tcuda import nccl

_NUMBERS = {"sum": 0, "prod": 1, "max": 2, "min": 3}
"""The numbers of ``ncclRedOp_t``."""


def new_unique_id() -> bytes | None:
    """Return the name of a new clique; None if NCCL cannot work on the arrays of this process."""
    if not hasattr(tcuda.xp.ndarray, "__cuda_array_interface__"):  # NCCL could not read the memory of the arrays
        return None
    try:
        return nccl.unique_id()
    except RuntimeError:  # NCCL is not installed
        return None


class NcclCollectives:
    """The collectives of a rank.

    Args:
        size: The number of ranks.
        uid: The name of the clique.
        rank: The number of this rank.
    """

    def __init__(self, size: int, uid: bytes, rank: int) -> None:
        self.aborted = False
        self._lock = threading.Lock()
        self._communicator = nccl.init_rank(size, uid, rank)

    def all_reduce(self, array: Any, out: Any, op: str) -> None:
        """Reduce the arrays of all ranks into ``out`` on the current stream."""
        self._call(nccl.all_reduce, [array], [out], _NUMBERS[op])

    def broadcast(self, array: Any, root: int) -> None:
        """Copy the array of ``root`` into ``array`` on the current stream."""
        self._call(nccl.broadcast, [array], root)

    def all_gather(self, array: Any, out: Any) -> None:
        """Put the arrays of all ranks into ``out`` on the current stream."""
        self._call(nccl.all_gather, [array], [out])

    def reduce_scatter(self, array: Any, out: Any, op: str) -> None:
        """Reduce the arrays of all ranks, and put this rank's part into ``out`` on the current stream."""
        self._call(nccl.reduce_scatter, [array], [out], _NUMBERS[op])

    def abort(self) -> None:
        """End the collectives that wait for a rank that has gone.

        NCCL may take a moment, so a thread of its own does the work, and the caller does not wait.
        """
        threading.Thread(target=self._abort, name="tcuda-nccl-abort", daemon=True).start()

    def _abort(self) -> None:
        with self._lock:
            if not self.aborted:
                self.aborted = True
                self._communicator.handle.abort()

    def _call(self, function: Any, *args: Any) -> None:
        with self._lock:
            if not self.aborted:
                function(*args, comms=[self._communicator])
