"""Copies of batches to a device, on a stream of their own, while the device works on the batch before."""

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
    """A host buffer, the device buffer to which it is copied, and an event that completes after the copy."""

    def __init__(self, host: Rows) -> None:
        self.host = host
        self.device = xp.empty(host.shape, host.dtype)
        self.copied = tcuda.Event()


def _own_pages(shape: tuple[int, ...]) -> Rows:
    """Return an array that shares no page with other memory, because CUDA locks whole pages."""
    return numpy.frombuffer(mmap.mmap(-1, math.prod(shape)), numpy.uint8).reshape(shape)


class Loader:
    """Copies batches of ``rows`` to the current device, one batch ahead of the computation.

    There are two slots: the device works on the batch in one slot while the loader fills the other slot. The loader is
    a context manager because its host buffers are page-locked: only a copy from page-locked memory runs at the same
    time as the program.

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
        self._host = _own_pages((2, batch_size, rows.shape[1]))
        self._slots = [_Slot(host) for host in self._host]

    def __enter__(self) -> Self:
        tcuda.check_error(tcuda.cudart().cudaHostRegister(self._host.ctypes.data, self._host.nbytes, 0))
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self._copy_stream.synchronize()  # A copy may still be reading the host buffers.
        tcuda.check_error(tcuda.cudart().cudaHostUnregister(self._host.ctypes.data))

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
        slot.copied.synchronize()  # The earlier copy must have read the host buffer before it is overwritten.
        slot.host[...] = self._rows[indices]
        # All work that reads the device buffer has been launched, because the caller has asked for another batch.
        self._copy_stream.wait_stream(self._compute_stream)
        with tcuda.stream(self._copy_stream):
            with self._phases.measure("copy"):
                slot.device.set(slot.host)
            slot.copied.record()

    def _arrived(self, slot: _Slot) -> DeviceArray:
        self._compute_stream.wait_event(slot.copied)
        return slot.device
