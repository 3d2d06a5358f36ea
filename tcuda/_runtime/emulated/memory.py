"""The memory of the emulated devices and of the host: owners of addresses, page-locked ranges, and legal copies."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcuda._runtime.emulated import costs
from tcuda._runtime.emulated.calls import failure
from tcuda._runtime.protocol import (
    MEMCPY_DEFAULT,
    MEMCPY_DEVICE_TO_DEVICE,
    MEMCPY_DEVICE_TO_HOST,
    MEMCPY_HOST_TO_DEVICE,
    MEMCPY_HOST_TO_HOST,
)
from tcuda._status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcuda._runtime.emulated.calls import Call
    from tcuda._runtime.emulated.devices import EmulatedDevice

_KINDS = {
    # (destination is on a device, source is on a device)
    MEMCPY_HOST_TO_HOST: (False, False),
    MEMCPY_HOST_TO_DEVICE: (True, False),
    MEMCPY_DEVICE_TO_HOST: (False, True),
    MEMCPY_DEVICE_TO_DEVICE: (True, True),
}


@dataclass(frozen=True)
class Copy:
    """A copy.

    Attributes:
        dst: The address that the copy writes.
        src: The address that the copy reads.
        size: The bytes.
        duration: The nanoseconds that the copy takes.
        host_waits: Whether the host waits until the copy is complete.
        addresses: The addresses that lie on devices.
    """

    dst: int
    src: int
    size: int
    duration: int
    host_waits: bool
    addresses: tuple[int, ...] = ()

    def make(self) -> None:
        """Copy the bytes."""
        ctypes.memmove(self.dst, self.src, self.size)


class Memory:
    """The memory of all devices, and the page-locked memory of the host.

    Args:
        devices: The devices.
    """

    def __init__(self, devices: Sequence[EmulatedDevice]) -> None:
        self._devices = devices
        self._registered: dict[int, int] = {}
        self._variables: dict[int, tuple[EmulatedDevice, int]] = {}

    def owner(self, ptr: int) -> EmulatedDevice | None:
        """Return the device on which ``ptr`` lies, None for memory of the host."""
        for device in self._devices:
            if device.memory.block_at(ptr) is not None:
                return device
        found = self._variable_at(ptr) if self._variables else None
        return None if found is None else found[0]

    def add_variable(self, ptr: int, size: int, device: EmulatedDevice) -> None:
        """Take note of a global variable of a module of ``device``."""
        self._variables[ptr] = device, size

    def range_at(self, ptr: int) -> tuple[EmulatedDevice | None, int, int] | None:
        """Return the owner, the beginning and the end of the memory at ``ptr``, if a device can reach the memory.

        The memory is a block of a device, a global variable of a module, or page-locked memory of the host, whose owner
        is None.
        """
        for device in self._devices:
            block = device.memory.block_at(ptr)
            if block is not None:
                return device, block[0], sum(block)
        found = self._variable_at(ptr)
        if found is not None:
            return found
        for start, length in self._registered.items():
            if start <= ptr < start + length:
                return None, start, start + length
        return None

    def _variable_at(self, ptr: int) -> tuple[EmulatedDevice, int, int] | None:
        for start, (device, size) in self._variables.items():
            if start <= ptr < start + size:
                return device, start, start + size
        return None

    def free(self, ptr: int, call: Call) -> EmulatedDevice:
        """Free the block that starts at ``ptr`` and return its device.

        Raises:
            AcceleratorError: No block starts at ``ptr`` (1).
        """
        for device in self._devices:
            if device.memory.release(ptr):
                return device
        raise failure(Status.INVALID_VALUE, call)

    def register(self, ptr: int, size: int, call: Call) -> None:
        """Page-lock memory of the host.

        Raises:
            AcceleratorError: The range is empty (1), or a part of it is page-locked already (712).
        """
        if ptr == 0 or size == 0:
            raise failure(Status.INVALID_VALUE, call)
        if any(ptr < start + length and start < ptr + size for start, length in self._registered.items()):
            raise failure(Status.HOST_MEMORY_ALREADY_REGISTERED, call)
        self._registered[ptr] = size

    def unregister(self, ptr: int, call: Call) -> None:
        """Undo :meth:`register`.

        Raises:
            AcceleratorError: No page-locked range starts at ``ptr`` (713).
        """
        if self._registered.pop(ptr, None) is None:
            raise failure(Status.HOST_MEMORY_NOT_REGISTERED, call)

    def is_registered(self, ptr: int, size: int) -> bool:
        """Return whether ``size`` bytes of host memory at ``ptr`` are page-locked."""
        return any(start <= ptr and ptr + size <= start + length for start, length in self._registered.items())

    def plan_set(self, ptr: int, value: int, size: int, call: Call) -> Callable[[], object]:
        """Return a function that fills memory of a device with ``value``.

        Raises:
            AcceleratorError: The range is not in one block of a device (1).
        """
        if size:
            self._check(ptr, size, call)
            if self.owner(ptr) is None:
                raise failure(Status.INVALID_VALUE, call)
        return lambda: ctypes.memset(ptr, value, size)

    def plan_copy(self, dst: int, src: int, size: int, kind: int, call: Call) -> Copy:
        """Return a copy, which is not made yet.

        Raises:
            AcceleratorError: ``kind`` is unknown (21) or does not fit the addresses (1), or a range is not in one block
                (1).
        """
        if kind not in (*_KINDS, MEMCPY_DEFAULT):
            raise failure(Status.INVALID_MEMCPY_DIRECTION, call)
        if size == 0:
            return Copy(dst, src, 0, duration=0, host_waits=False)
        self._check(dst, size, call)
        self._check(src, size, call)
        target, source = self.owner(dst), self.owner(src)
        if kind != MEMCPY_DEFAULT and _KINDS[kind] != (target is not None, source is not None):
            raise failure(Status.INVALID_VALUE, call)
        pinned = self.is_registered(src if source is None else dst, size)
        if target is not None and source is not None:
            same = target is source
            duration = costs.copy_on_device(size) if same else costs.copy_between_devices(size)
        else:
            duration = 0 if target is source else costs.copy_to_or_from_host(size, pinned=pinned)
        # cudaMemcpyAsync to pageable memory returns when the copy is complete.
        host_waits = target is None and not pinned
        addresses = [ptr for ptr, owner in ((dst, target), (src, source)) if owner is not None]
        return Copy(dst, src, size, duration, host_waits, tuple(addresses))

    def _check(self, ptr: int, size: int, call: Call) -> None:
        """Refuse a null pointer, a range that leaves its block, and addresses without memory.

        Raises:
            AcceleratorError: The range is one of these (1).
        """
        if ptr == 0:
            raise failure(Status.INVALID_VALUE, call)
        for device in self._devices:
            if device.memory.is_unmapped(ptr):
                raise failure(Status.INVALID_VALUE, call)
            block = device.memory.block_at(ptr)
            if block is not None and ptr + size > sum(block):
                raise failure(Status.INVALID_VALUE, call)
