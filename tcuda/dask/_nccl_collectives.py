"""Collectives by NCCL, whose clique the scheduler has brought together."""

from __future__ import annotations

import math
import os
import threading
from typing import TYPE_CHECKING, Any

import tcuda
from tcuda import nccl

if TYPE_CHECKING:
    from collections.abc import Callable

_NUMBERS = {"sum": 0, "prod": 1, "max": 2, "min": 3}
"""The numbers of ``ncclRedOp_t``."""


def new_unique_id() -> bytes | None:
    """Return the name of a new clique; None if NCCL cannot work on the arrays of this process."""
    if tcuda.xp.__name__ != "cupy":  # NCCL could not read the memory of the arrays
        return None
    try:
        return nccl.unique_id()
    except RuntimeError:  # NCCL is not installed
        return None


class EndedError(Exception):
    """The clique has ended, because a rank has gone."""


class NcclCollectives:
    """The collectives of a rank.

    Args:
        size: The number of ranks.
        uid: The name of the clique.
        rank: The number of this rank.

    Attributes:
        calls: The number of collectives that this rank has started.
        aborted: Whether the collectives of this rank were ended before they were complete.
    """

    def __init__(self, size: int, uid: bytes, rank: int) -> None:
        self.calls = 0
        self.aborted = False
        self._most_calls: float = math.inf
        self._lock = threading.Lock()
        # Otherwise NCCL connects the ranks in the first collective. The host would then wait there, with the lock, for
        # a rank that may never come.
        os.environ.setdefault("NCCL_RUNTIME_CONNECT", "0")
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

    def lose_rank(self, calls: int | None) -> None:
        """Note that a rank has gone, and end the collectives that wait for this rank.

        NCCL may take a moment to end, so a thread of its own does the work, and the caller does not wait.

        Args:
            calls: The number of collectives that the rank has completed; None if the rank has completed none for sure.
        """
        threading.Thread(target=self._lose_rank, args=(calls,), name="tcuda-nccl-abort", daemon=True).start()

    def _lose_rank(self, calls: int | None) -> None:
        with self._lock:
            self._most_calls = min(self._most_calls, -1 if calls is None else calls)
            if self.calls > self._most_calls and not self.aborted:
                self.aborted = True
                # The emulated library has no such call. Its ranks notice the end of another process by themselves.
                abort = getattr(self._communicator.handle, "abort", None)
                if abort is not None:
                    abort()

    def _call(self, function: Callable[..., None], *args: Any) -> None:
        with self._lock:
            if self.calls >= self._most_calls:
                raise EndedError
            self.calls += 1
            function(*args, comms=[self._communicator])
