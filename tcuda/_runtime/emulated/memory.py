"""Memory as the emulated devices see it: whose a pointer is, what is registered, what may be copied where."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcuda._errors import AcceleratorError
from tcuda._runtime.emulated import costs
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

    from tcuda._runtime.emulated.device import EmulatedDevice

_KINDS = {
    # (destination is on a device, source is on a device)
    MEMCPY_HOST_TO_HOST: (False, False),
    MEMCPY_HOST_TO_DEVICE: (True, False),
    MEMCPY_DEVICE_TO_HOST: (False, True),
    MEMCPY_DEVICE_TO_DEVICE: (True, True),
}


@dataclass(frozen=True)
class Copy:
    """A copy: where from, where to, how long it takes, and whether the host waits for it."""

    dst: int
    src: int
    size: int
    duration: int
    host_waits: bool

    def make(self) -> None:
        """Copy the bytes."""
        ctypes.memmove(self.dst, self.src, self.size)


class Memory:
    """The memory of all devices, and the host memory registered with them."""

    def __init__(self, devices: Sequence[EmulatedDevice]) -> None:
        self._devices = devices
        self._registered: dict[int, int] = {}

    def owner(self, ptr: int) -> EmulatedDevice | None:
        """Return the device on which ``ptr`` lies, None for host memory."""
        for device in self._devices:
            if device.memory.block_at(ptr) is not None:
                return device
        return None

    def free(self, ptr: int, call: str) -> EmulatedDevice:
        """Free the block that starts at ``ptr`` and return the device it was on."""
        for device in self._devices:
            if device.memory.release(ptr):
                return device
        raise AcceleratorError(Status.INVALID_VALUE, call)

    def register(self, ptr: int, size: int, call: str) -> None:
        """Page-lock host memory."""
        if ptr == 0 or size == 0:
            raise AcceleratorError(Status.INVALID_VALUE, call)
        if any(ptr < start + length and start < ptr + size for start, length in self._registered.items()):
            raise AcceleratorError(Status.HOST_MEMORY_ALREADY_REGISTERED, call)
        self._registered[ptr] = size

    def unregister(self, ptr: int, call: str) -> None:
        """Undo :meth:`register`."""
        if self._registered.pop(ptr, None) is None:
            raise AcceleratorError(Status.HOST_MEMORY_NOT_REGISTERED, call)

    def is_registered(self, ptr: int, size: int) -> bool:
        """Tell whether all of that host memory is page-locked."""
        return any(start <= ptr and ptr + size <= start + length for start, length in self._registered.items())

    def plan_set(self, ptr: int, value: int, size: int, call: str) -> Callable[[], object]:
        """Check that device memory may be filled so, and return what does it."""
        if size:
            self._check(ptr, size, call)
            if self.owner(ptr) is None:
                raise AcceleratorError(Status.INVALID_VALUE, call)
        return lambda: ctypes.memset(ptr, value, size)

    def plan_copy(self, dst: int, src: int, size: int, kind: int, call: str) -> Copy:
        """Check that memory may be copied so, and return the copy, which is not made yet."""
        if kind not in (*_KINDS, MEMCPY_DEFAULT):
            raise AcceleratorError(Status.INVALID_MEMCPY_DIRECTION, call)
        if size == 0:
            return Copy(dst, src, 0, duration=0, host_waits=False)
        self._check(dst, size, call)
        self._check(src, size, call)
        target, source = self.owner(dst), self.owner(src)
        if kind != MEMCPY_DEFAULT and _KINDS[kind] != (target is not None, source is not None):
            raise AcceleratorError(Status.INVALID_VALUE, call)
        pinned = self.is_registered(src if source is None else dst, size)
        if target is not None and source is not None:
            same = target is source
            duration = costs.copy_on_device(size) if same else costs.copy_between_devices(size)
        else:
            duration = 0 if target is source else costs.copy_to_or_from_host(size, pinned=pinned)
        # As cudaMemcpyAsync: a copy to pageable memory returns when it is complete.
        return Copy(dst, src, size, duration, host_waits=target is None and not pinned)

    def _check(self, ptr: int, size: int, call: str) -> None:
        """Refuse a null pointer, a range that leaves the block it starts in, and addresses without memory."""
        if ptr == 0:
            raise AcceleratorError(Status.INVALID_VALUE, call)
        for device in self._devices:
            if device.memory.is_unmapped(ptr):
                raise AcceleratorError(Status.INVALID_VALUE, call)
            block = device.memory.block_at(ptr)
            if block is not None and ptr + size > sum(block):
                raise AcceleratorError(Status.INVALID_VALUE, call)
