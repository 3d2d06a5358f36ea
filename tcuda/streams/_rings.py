"""Rings of CUDA streams, which are kept for their next use, because CUDA takes microseconds to create them."""

from __future__ import annotations

import itertools

from tcuda._process.devices import exchange_device
from tcuda._process.lazy import cuda
from tcuda._process.ledger import ledger
from tcuda._runtime.protocol import STREAM_NON_BLOCKING

LAST = 31
"""The last place in a ring of streams."""


class StreamRing:
    """The 32 streams of one device and priority, handed out in turn, and created when their turn first comes.

    The streams are never destroyed: CUDA frees the streams when the process ends.

    No lock is held while a stream is created, because finalizers and signal handlers may run meanwhile, in any thread,
    and may take a stream of the same ring.

    The members are public, because a function that takes a stream would cost each ``Stream()`` a frame::

        turn = ring.next_turn() & LAST
        handle = ring.handles[turn] or ring.create(turn)

    Attributes:
        next_turn: Returns 0, 1, 2 and so on.
        handles: The handles of the streams; 0 for a stream that is not created yet.
    """

    def __init__(self, device: int, priority: int) -> None:
        self._device = device
        self._priority = priority
        self._created: dict[int, int] = {}
        self.handles = [0] * (LAST + 1)
        self.next_turn = itertools.count().__next__

    def create(self, turn: int) -> int:
        """Create the stream of ``turn``, and return the handle."""
        previous = exchange_device(self._device)
        try:
            made = cuda.streamCreateWithPriority(STREAM_NON_BLOCKING, self._priority)
            known = ledger()
            known.stream_created(self._device, made)
            handle = self.handles[turn] = self._created.setdefault(turn, made)
            if handle != made:  # another caller has created a stream for the same turn meanwhile
                known.stream_about_to_be_destroyed(self._device, made)
                cuda.streamDestroy(made)
            return handle
        finally:
            exchange_device(previous)
