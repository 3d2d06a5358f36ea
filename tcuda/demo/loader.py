"""Batches on their way to a device: copied on a stream of their own, while the batch before is computed with."""

from __future__ import annotations

import itertools
import math
import mmap
from typing import TYPE_CHECKING

import numpy

import tcuda
from tcuda import xp

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from typing_extensions import Self

    from tcuda.demo.arrays import DeviceArray, Indices, Rows
    from tcuda.demo.phases import Phases


class _Slot:
    """A host buffer, the device buffer it is copied to, and an event that says when that is done."""

    def __init__(self, host: Rows) -> None:
        self.host = host
        self.device = xp.empty(host.shape, host.dtype)
        self.copied = tcuda.Event()


def _own_pages(shape: tuple[int, ...]) -> Rows:
    """Return an array that shares no page with anything else, because what is locked are whole pages."""
    return numpy.frombuffer(mmap.mmap(-1, math.prod(shape)), numpy.uint8).reshape(shape)


class Loader:
    """Brings batches of ``rows`` to the current device, one ahead of the computation.

    There are two slots: the device computes with one while the other is filled. A context manager, because its host
    buffers are page-locked: only from such memory does a copy run beside the program.

    Args:
        rows: The data, on the host.
        batch_size: How many rows are in a batch.
        overlap: Whether to copy on a side stream; if not, all work is on the current stream.
        phases: Where the copies are measured.
    """

    def __init__(self, rows: Rows, batch_size: int, *, overlap: bool, phases: Phases) -> None:
        self._rows = rows
        self._phases = phases
        self._compute_stream = tcuda.current_stream()
        self._copy_stream = tcuda.Stream() if overlap else self._compute_stream
        self._host = _own_pages((2, batch_size, rows.shape[1]))
        self._slots = [_Slot(host) for host in self._host]

    def __enter__(self) -> Self:
        tcuda.check_error(tcuda.cudart().cudaHostRegister(self._host.ctypes.data, self._host.nbytes, 0))
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self._copy_stream.synchronize()  # a copy may still be reading them
        tcuda.check_error(tcuda.cudart().cudaHostUnregister(self._host.ctypes.data))

    def batches(self, order: Indices) -> Iterator[DeviceArray]:
        """Yield the batches that ``order`` names, a row of it each.

        A batch may be read on the stream that was current when the loader was made, until the next one is asked for.
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
        slot.copied.synchronize()  # the copy before has read the host buffer
        slot.host[...] = self._rows[indices]
        # What reads the device buffer has been launched by now, since the caller came for another batch.
        self._copy_stream.wait_stream(self._compute_stream)
        with tcuda.stream(self._copy_stream):
            with self._phases.measure("copy"):
                slot.device.set(slot.host)
            slot.copied.record()

    def _arrived(self, slot: _Slot) -> DeviceArray:
        self._compute_stream.wait_event(slot.copied)
        return slot.device
