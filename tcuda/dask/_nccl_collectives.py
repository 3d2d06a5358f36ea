"""Collectives by NCCL, whose clique the scheduler has brought together."""

from __future__ import annotations

import math
import os
import threading
from typing import TYPE_CHECKING, Any

import tcuda
from tcuda import nccl
from tcuda._base.errors import NcclNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable

_NUMBERS = {"sum": 0, "prod": 1, "max": 2, "min": 3}
"""The numbers of ``ncclRedOp_t``."""


def new_unique_id() -> bytes | None:
    """Return the name of a new clique; None if NCCL cannot work on the arrays of this process.

    Raises:
        NcclError: NCCL is installed and makes no name, for example because it finds no network.
    """
    if tcuda.xp.__name__ != "cupy":  # NCCL could not read the memory of the arrays
        return None
    try:
        return nccl.unique_id()
    except NcclNotFoundError:
        return None


class EndedError(Exception):
    """The clique has ended, because a rank has gone."""


class NcclCollectives:
    """The collectives of a rank, which :meth:`connect` makes possible.

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
        self._place = size, uid, rank
        self._most_calls: float = math.inf
        self._lock = threading.Lock()
        self._communicator: Any = None
        self._connected = threading.Event()
        self._error: BaseException | None = None

    def connect(self) -> None:
        """Join the clique.

        A rank that dies before it has joined can let NCCL wait for ever, and NCCL has no call that ends this wait. So a
        thread of its own joins. If a rank is lost, the thread is left to itself.

        Raises:
            EndedError: A rank has gone meanwhile.
            RuntimeError: NCCL cannot make the clique.
        """
        # Otherwise NCCL connects the ranks in the first collective. The host would then wait there, with the lock, for
        # a rank that may never come.
        os.environ.setdefault("NCCL_RUNTIME_CONNECT", "0")
        device = tcuda.current_device()
        threading.Thread(target=self._join, args=(device,), name="tcuda-nccl-join", daemon=True).start()
        self._connected.wait()
        with self._lock:
            if self.aborted:
                raise EndedError
            error, self._error = self._error, None
        if error is not None:
            raise error

    def _join(self, device: int) -> None:
        try:
            with tcuda.device(device):
                joined = nccl.init_rank(*self._place)
        except BaseException as error:
            self._error = error
        else:
            with self._lock:
                self._communicator = joined
                if self.aborted:
                    self._abort()
        self._connected.set()

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
                self._connected.set()
                if self._communicator is not None:
                    self._abort()

    def _abort(self) -> None:
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
