"""Memory in several processes: the handles of blocks, and the opened blocks of other processes."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

from tcuda._base.statuses import Status
from tcuda.emulation.runtime.calls import failure
from tcuda.emulation.runtime.process_files import SIZE, FileUnavailable, ProcessFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda.emulation.runtime.calls import Call
    from tcuda.emulation.runtime.devices import EmulatedDevice

HANDLE_BYTES = 64
_MARK = b"tcudaMEM"
_PLACE = struct.Struct("<QQ")


class Imports:
    """The memory that this process shares with other processes.

    The caller holds the lock of the runtime.

    Args:
        devices: The devices.
    """

    def __init__(self, devices: Sequence[EmulatedDevice]) -> None:
        self._devices = devices
        self._by_handle: dict[tuple[bytes, int], int] = {}
        """The addresses of the opened blocks, by the handle and the device under which the block was opened."""
        self._opened: dict[int, tuple[tuple[bytes, int], int]] = {}
        """For each address the key in ``_by_handle``, and how often the block was opened and not closed."""

    def handle_of(self, ptr: int, call: Call) -> bytes:
        """Return the handle of the whole block that contains ``ptr``.

        Raises:
            AcceleratorError: No block of ``cudaMalloc`` contains ``ptr`` (1), or the system has no memory that
                processes share (801).
        """
        for device in self._devices:
            block = device.memory.block_at(ptr)
            if block is None:
                continue
            place = device.memory.place_of(ptr)
            if place is None:
                private = device.memory.descriptor() < 0
                raise failure(Status.NOT_SUPPORTED if private else Status.INVALID_VALUE, call)
            name = ProcessFile.of_this_process(device.memory.descriptor())
            return (_MARK + name.pack() + _PLACE.pack(*place)).ljust(HANDLE_BYTES, b"\0")
        raise failure(Status.INVALID_VALUE, call)

    def open(self, handle: bytes, device: EmulatedDevice, call: Call) -> int:
        """Return the address of the block of another process, as memory of ``device``.

        Raises:
            AcceleratorError: ``handle`` is no handle (1) or is of this process (201), the process of the handle has
                ended (400), or the system forbids the access to that process (304).
        """
        if len(handle) != HANDLE_BYTES or not handle.startswith(_MARK):
            raise failure(Status.INVALID_VALUE, call)
        key = handle, device.index
        ptr = self._by_handle.get(key)
        if ptr is None:
            ptr = self._import(handle, device, call)
            self._by_handle[key] = ptr
        self._opened[ptr] = key, self._opened.get(ptr, (key, 0))[1] + 1
        return ptr

    def close(self, ptr: int, call: Call) -> bool:
        """Undo one :meth:`open` of the block at ``ptr``, and return whether this was the last one.

        Raises:
            AcceleratorError: No opened block begins at ``ptr`` (1).
        """
        if ptr not in self._opened:
            raise failure(Status.INVALID_VALUE, call)
        key, count = self._opened[ptr]
        if count > 1:
            self._opened[ptr] = key, count - 1
            return False
        del self._opened[ptr], self._by_handle[key]
        self._devices[key[1]].memory.close_import(ptr)
        return True

    def _import(self, handle: bytes, device: EmulatedDevice, call: Call) -> int:
        place = _PLACE.unpack_from(handle, len(_MARK) + SIZE)
        try:
            descriptor = ProcessFile.unpack(handle[len(_MARK) :]).open()
        except FileUnavailable as error:
            raise failure(error.status, call) from None
        try:
            ptr = device.memory.import_block(descriptor, *place)
        finally:
            os.close(descriptor)
        if not ptr:
            raise failure(Status.INVALID_VALUE, call)
        return ptr
