"""Segments of other processes that are open in this process. All arrays of one segment use one mapping.

A mapping of descriptors stays open for a short time after its last array, because the next message is often about the
same segment: CUDA takes much longer to map the segment than all other steps of a message together. The mapping keeps
no block of the owner, only the physical memory. So the owner's allocator uses the block again at once.

A mapping of an IPC handle is closed with its last array: the owner must not free the segment before.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda._process.devices import exchange_device
from tcuda._process.fork import call_in_child
from tcuda._process.lazy import cuda
from tcuda._process.ledger import ledger
from tcuda.multiprocessing._segments import HANDLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda.multiprocessing._segments import Segment
    from tcuda.multiprocessing._wire import Address


_IDLE_TIME = 0.1
"""The seconds for which a mapping without arrays stays open.

CUDA takes a few milliseconds to open and to close a mapping. A process that exchanges arrays less often than every 0.1
seconds loses little time by that.
"""
_MOST_IDLE = 64
"""The number of mappings without arrays that stay open."""


class _Key(NamedTuple):
    owner: Address
    device: int
    segment: Segment


class Mapping:
    """An open segment.

    Attributes:
        address: The address in this process.
    """

    def __init__(self, key: _Key, address: int) -> None:
        self.address = address
        self._key = key
        self._users = 0

    def close(self) -> None:
        """End one use of the segment, and close the segment, now or later, if this was the last user.

        The owner may free a segment with an IPC handle only after the call: the next segment with the same handle may
        be another one.
        """
        with _lock:
            self._users -= 1
            if self._users or _mappings.get(self._key) is not self:
                return
            if self._key.segment.kind == HANDLE:
                self._unmap()
                return
            _idle[self._key] = time.monotonic() + _IDLE_TIME
            if len(_idle) > _MOST_IDLE:
                _mappings[next(iter(_idle))]._unmap()

    def use(self) -> None:
        """Count one more user. The caller holds the lock of the module."""
        self._users += 1
        _idle.pop(self._key, None)

    def _unmap(self) -> None:
        del _mappings[self._key]
        _idle.pop(self._key, None)
        if self._key.segment.kind == HANDLE:
            previous = exchange_device(self._key.device)
            try:
                cuda.ipcCloseMemHandle(self.address)
            finally:
                exchange_device(previous)
        else:
            ledger().release_imported(self._key.device, self.address)


_mappings: dict[_Key, Mapping] = {}
_idle: dict[_Key, float] = {}
"""For each mapping without arrays, the time at which the mapping is closed; the earliest time is first."""
_lock = threading.RLock()


def idle_time() -> float | None:
    """Return the number of seconds until the next mapping without arrays is closed; None without such mappings."""
    if not _idle:
        return None
    with _lock:
        return max(0.0, next(iter(_idle.values())) - time.monotonic()) if _idle else None


def close_idle(*, also_young: bool = False) -> None:
    """Close the mappings that have been without arrays for long enough.

    Args:
        also_young: Close all mappings without arrays.
    """
    with _lock:
        now = time.monotonic()
        for key, end in dict(_idle).items():
            if also_young or end <= now:
                with contextlib.suppress(AcceleratorError):
                    _mappings[key]._unmap()


def open_segment(owner: Address, device: int, segment: Segment, descriptors: Callable[[int], list[int]]) -> Mapping:
    """Return the mapping of ``segment`` with one more user.

    Args:
        owner: The process whose memory the segment is.
        device: The index of the device in this process.
        segment: The segment.
        descriptors: A function that asks the owner for this number of descriptors.

    Raises:
        RuntimeError: The driver refused to open the segment.
    """
    key = _Key(owner, device, segment)
    with _lock:
        mapping = _mappings.get(key)
        if mapping is None:
            try:
                mapping = Mapping(key, _open(device, segment, descriptors))
            except AcceleratorError as error:
                advice = (
                    "This process has no room for the memory. Drop arrays that are no longer needed, or send less."
                    if error.error_code == Status.MEMORY_ALLOCATION
                    else "Containers need the same PID and IPC namespaces and the same devices, and the sender must "
                    "run until the array is received."
                )
                raise RuntimeError(
                    f"The memory of the process {owner.pid} cannot be opened: {error}\n{advice}"
                ) from error
            _mappings[key] = mapping
        mapping.use()
        return mapping


def is_open(owner: Address, device: int, segment: Segment) -> bool:
    """Return whether the segment is open now; see :func:`open_segment` for the arguments."""
    return _Key(owner, device, segment) in _mappings


def _open(device: int, segment: Segment, descriptors: Callable[[int], list[int]]) -> int:
    previous = exchange_device(device)
    try:
        if segment.kind == HANDLE:
            return cuda.ipcOpenMemHandle(segment.handle)
        received = descriptors(len(segment.pieces))
        try:
            sizes = [size for _, size in segment.pieces]
            return ledger().import_pieces(device, list(zip(received, sizes, strict=True)))
        finally:
            for descriptor in received:
                os.close(descriptor)
    finally:
        exchange_device(previous)


def count() -> int:
    """Return the number of open segments."""
    return len(_mappings)


def _forget_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    _mappings.clear()
    _idle.clear()


call_in_child(_forget_in_child)
