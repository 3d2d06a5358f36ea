"""The memory of this process in the form in which other processes open it."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda._process.devices import exchange_device
from tcuda._process.lazy import cuda
from tcuda._process.ledger import ledger, source_name

HANDLE = "handle"
"""The kind of a segment of ``cudaMalloc``, which is opened by its IPC handle."""

DESCRIPTORS = "descriptors"
"""The kind of memory in an expandable segment, whose pieces are opened by file descriptors of the driver."""


class Segment(NamedTuple):
    """Memory that another process opens as a whole.

    Attributes:
        kind: :data:`HANDLE` or :data:`DESCRIPTORS`.
        handle: The IPC handle; empty for descriptors.
        pieces: The address and the size of each piece in the owner; for an IPC handle, the segment is one piece.
        youngest: The number of the piece that the owner has created last; 0 for an IPC handle. New physical memory at
            the addresses of old memory has another number.
    """

    kind: str
    handle: bytes
    pieces: tuple[tuple[int, int], ...]
    youngest: int = 0


class Place(NamedTuple):
    """A block in a segment.

    Attributes:
        segment: The segment.
        offset: The number of bytes from the start of the segment to the block.
        size: The size of the block in bytes.
    """

    segment: Segment
    offset: int
    size: int


class SharedBlock:
    """A block of this process that is shared.

    Args:
        memory: An object that keeps the block alive.
        device: The index of the device.
        place: The block in its segment.
    """

    def __init__(self, memory: Any, device: int, place: Place) -> None:
        self.memory = memory
        self.device = device
        self.place = place

    def descriptors(self, first: int, count: int) -> list[int]:
        """Return new file descriptors of ``count`` pieces of the segment, from the piece ``first`` on."""
        found: list[int] = []
        try:
            for address, _ in self.place.segment.pieces[first : first + count]:
                found.append(ledger().export_piece(self.device, address))
        except BaseException:
            for descriptor in found:
                os.close(descriptor)
            raise
        return found


def place_of(device: int, address: int) -> tuple[Place, list[int]]:
    """Return the place of the block that begins at ``address``, and the streams that use the block.

    Raises:
        RuntimeError: The block cannot be opened by another process.
    """
    found = ledger().sharing_of(device, address)
    if found is None:
        raise RuntimeError(
            f"The memory of the array, at {address:#x} of cuda:{device}, was not allocated by tcuda, so tcuda cannot "
            "keep it for another process. Send a copy: array.copy()."
        )
    begin, size, streams, pieces, segment, youngest = found
    if pieces:
        return Place(Segment(DESCRIPTORS, b"", tuple(pieces), youngest), begin - pieces[0][0], size), streams
    base, whole = segment or (begin, size)
    return Place(Segment(HANDLE, _handle(device, base), ((base, whole),)), begin - base, size), streams


def _handle(device: int, base: int) -> bytes:
    previous = exchange_device(device)
    try:
        return cuda.ipcGetMemHandle(base)
    except AcceleratorError as error:
        memory = f"The memory of the array, at {base:#x} of cuda:{device},"
        if error.error_code != Status.INVALID_VALUE:  # the reason is not where the memory comes from
            raise RuntimeError(f"{memory} cannot be shared: {error}\nSend the elements: array.get().") from error
        raise RuntimeError(
            f"{memory} comes from {source_name()!r}, and CUDA opens it in no other process. Choose the backend "
            "'native' (TCUDA_ALLOC_CONF=backend:native), or send the elements: array.get()."
        ) from error
    finally:
        exchange_device(previous)
