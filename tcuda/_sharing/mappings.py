"""Segments of other processes that are open in this process. All arrays of one segment use one mapping."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, NamedTuple

from tcuda._errors import AcceleratorError
from tcuda._process.devices import exchange_device
from tcuda._process.fork import call_in_child
from tcuda._process.lazy import cuda
from tcuda._process.ledger import ledger
from tcuda._sharing.segments import HANDLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda._sharing.segments import Segment
    from tcuda._sharing.wire import Address


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
        """Close the segment if this was the last user.

        The owner may free the segment only after the call: the next segment with the same handle or address may be
        another one.
        """
        with _lock:
            self._users -= 1
            if self._users or _mappings.pop(self._key, None) is not self:
                return
            if self._key.segment.kind == HANDLE:
                previous = exchange_device(self._key.device)
                try:
                    cuda.ipcCloseMemHandle(self.address)
                finally:
                    exchange_device(previous)
            else:
                ledger().release_imported(self._key.device, self.address)


_mappings: dict[_Key, Mapping] = {}
_lock = threading.RLock()


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
                raise RuntimeError(
                    f"The memory of the process {owner.pid} cannot be opened: {error}\n"
                    "Containers need the same PID and IPC namespaces and the same devices, and the sender must run "
                    "until the array is received."
                ) from error
            _mappings[key] = mapping
        mapping._users += 1
        return mapping


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


call_in_child(_forget_in_child)
