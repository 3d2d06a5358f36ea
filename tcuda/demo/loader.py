"""Copies of batches to a device, on a stream of their own, while the device works on the batch before."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import tcuda
from tcuda import xp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda.demo.arrays import DeviceArray, Indices, Rows
    from tcuda.demo.phases import Phases


class _Slot:
    """A device buffer, and an event that completes after the last copy to the buffer."""

    def __init__(self, rows: int, like: Rows) -> None:
        self.device = xp.empty((rows, *like.shape[1:]), like.dtype)
        self.copied = tcuda.Event()


class Loader:
    """Copies batches of ``rows`` to the current device, one batch ahead of the computation.

    There are two slots: the device works on the batch in one slot while the loader fills the other slot.

    Args:
        rows: The data, on the host.
        batch_size: The number of rows in a batch.
        overlap: Whether to copy on a side stream; if False, all work is on the current stream.
        phases: The phases to which the time of the copies is added.
    """

    def __init__(self, rows: Rows, batch_size: int, *, overlap: bool, phases: Phases) -> None:
        self._rows = rows
        self._phases = phases
        self._compute_stream = tcuda.current_stream()
        self._copy_stream = tcuda.Stream() if overlap else self._compute_stream
        self._slots = [_Slot(batch_size, rows) for _ in range(2)]

    def batches(self, order: Indices) -> Iterator[DeviceArray]:
        """Yield the batches that ``order`` names: each row of ``order`` has the indices of one batch.

        A batch may be read on the stream that was current when the loader was made, and only by work that is launched
        before the next batch is requested.
        """
        ahead: _Slot | None = None
        for slot, indices in zip(itertools.cycle(self._slots), order, strict=False):
            self._fill(slot, indices)
            if ahead is not None:
                yield self._arrived(ahead)
            ahead = slot
        if ahead is not None:
            yield self._arrived(ahead)

    def _fill(self, slot: _Slot, indices: Indices) -> None:
        # Only a copy from page-locked memory runs at the same time as the program.
        host = tcuda.memory.empty_pinned(slot.device.shape, slot.device.dtype)
        host[...] = self._rows[indices]
        # All work that reads the device buffer has been launched, because the caller has asked for another batch.
        self._copy_stream.wait_stream(self._compute_stream)
        with tcuda.stream(self._copy_stream), self._phases.measure("copy"):
            slot.copied = tcuda.memory.copy_async(slot.device, host)

    def _arrived(self, slot: _Slot) -> DeviceArray:
        self._compute_stream.wait_event(slot.copied)
        return slot.device
