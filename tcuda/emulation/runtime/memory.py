"""The memory of the emulated devices and of the host: owners of addresses, page-locked ranges, and legal copies."""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, NamedTuple

from tcuda import _core
from tcuda._base.statuses import Status
from tcuda._runtime.protocol import (
    MEMCPY_DEFAULT,
    MEMCPY_DEVICE_TO_DEVICE,
    MEMCPY_DEVICE_TO_HOST,
    MEMCPY_HOST_TO_DEVICE,
    MEMCPY_HOST_TO_HOST,
)
from tcuda.emulation.runtime import costs
from tcuda.emulation.runtime.accesses import READ, WRITE, rows, span
from tcuda.emulation.runtime.address_ranges import AddressRanges
from tcuda.emulation.runtime.calls import failure
from tcuda.emulation.runtime.contents import Contents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tcuda.emulation.runtime.accesses import Access
    from tcuda.emulation.runtime.calls import Call
    from tcuda.emulation.runtime.devices import EmulatedDevice

_KINDS = {
    # (destination is on a device, source is on a device)
    MEMCPY_HOST_TO_HOST: (False, False),
    MEMCPY_HOST_TO_DEVICE: (True, False),
    MEMCPY_DEVICE_TO_HOST: (False, True),
    MEMCPY_DEVICE_TO_DEVICE: (True, True),
}


class Rows(NamedTuple):
    """The rows of bytes that a copy moves.

    Attributes:
        dst: The address of the first row of the destination.
        dpitch: The bytes from one row of the destination to the next.
        src: The address of the first row of the source.
        spitch: The bytes from one row of the source to the next.
        width: The bytes of a row.
        height: The number of rows.
    """

    dst: int
    dpitch: int
    src: int
    spitch: int
    width: int
    height: int


class Copy(NamedTuple):
    """A copy.

    Attributes:
        make: A function that copies the bytes.
        size: The bytes.
        duration: The nanoseconds that the copy takes.
        host_waits: Whether the host waits until the copy is complete.
        addresses: The addresses that lie on devices.
        layout: The rows that are copied.
        host: The address and the size of each range of page-locked memory of the host that the copy uses.
    """

    make: Callable[[], object]
    size: int
    duration: int
    host_waits: bool
    addresses: tuple[int, ...] = ()
    layout: Rows | None = None
    host: tuple[tuple[int, int], ...] = ()


class Memory:
    """The memory of all devices, and the page-locked memory of the host.

    Args:
        devices: The devices.
        contents: Knows which bytes of the memory no work has written.

    Attributes:
        page_locked: The page-locked ranges of the host.
    """

    def __init__(self, devices: Sequence[EmulatedDevice], contents: Contents | None = None) -> None:
        self._devices = devices
        self.page_locked: AddressRanges[None] = AddressRanges()
        self._variables: AddressRanges[EmulatedDevice] = AddressRanges()
        self._contents = Contents() if contents is None else contents

    def owner(self, ptr: int) -> EmulatedDevice | None:
        """Return the device on which ``ptr`` lies, None for memory of the host."""
        for device in self._devices:
            if device.memory.block_at(ptr) is not None:
                return device
        found = self._variables.at(ptr) if self._variables else None
        return None if found is None else found.value

    def is_unmapped(self, ptr: int) -> bool:
        """Return whether ``ptr`` is an address of a device that has no memory."""
        return any(device.memory.is_unmapped(ptr) for device in self._devices)

    def devices_of(self, addresses: Iterable[int]) -> set[int]:
        """Return the devices on which ``addresses`` lie."""
        owners = map(self.owner, addresses)
        return {owner.index for owner in owners if owner is not None}

    def add_variable(self, ptr: int, size: int, device: EmulatedDevice) -> None:
        """Take note of a global variable of a module of ``device``."""
        self._variables.add(ptr, ptr + size, device)

    def range_at(self, ptr: int) -> tuple[EmulatedDevice | None, int, int] | None:
        """Return the owner, the beginning and the end of the memory at ``ptr``, if a device can reach the memory.

        The memory is a block of a device, a global variable of a module, or page-locked memory of the host, whose owner
        is None.
        """
        for device in self._devices:
            block = device.memory.block_at(ptr)
            if block is not None:
                return device, block[0], sum(block)
        variable = self._variables.at(ptr)
        if variable is not None:
            return variable.value, variable.begin, variable.end
        locked = self.page_locked.at(ptr)
        return None if locked is None else (None, locked.begin, locked.end)

    def bounds(self) -> list[tuple[int, int]]:
        """Return the start and the end of a few ranges, in which all memory lies that :meth:`range_at` knows."""
        found = [bounds for device in self._devices for bounds in device.memory.bounds()]
        return [*found, *self._variables.bounds(), *self.page_locked.bounds()]

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
        if self.page_locked.overlapping(ptr, ptr + size):
            raise failure(Status.HOST_MEMORY_ALREADY_REGISTERED, call)
        self.page_locked.add(ptr, ptr + size, None)

    def unregister(self, ptr: int, call: Call) -> int:
        """Undo :meth:`register` and return the size of the range.

        Raises:
            AcceleratorError: No page-locked range starts at ``ptr`` (713).
        """
        removed = self.page_locked.remove(ptr)
        if removed is None:
            raise failure(Status.HOST_MEMORY_NOT_REGISTERED, call)
        return removed.end - removed.begin

    def is_registered(self, ptr: int, size: int) -> bool:
        """Return whether ``size`` bytes of host memory at ``ptr`` are page-locked."""
        locked = self.page_locked.at(ptr)
        return locked is not None and ptr + size <= locked.end

    def plan_set(self, ptr: int, value: int, size: int, call: Call) -> Callable[[], object]:
        """Return a function that fills memory of a device with ``value``.

        Raises:
            AcceleratorError: The range is not in one block of a device (1).
        """
        if size:
            self._check(ptr, size, call)
            if self.owner(ptr) is None:
                raise failure(Status.INVALID_VALUE, call)
        unwritten = self._contents.unwritten
        if unwritten is None or not size:
            return functools.partial(ctypes.memset, ptr, value, size)
        accesses = [span(ptr, size, WRITE, "a")]
        noted: Callable[[], object] = unwritten.around(
            functools.partial(ctypes.memset, ptr, value, size), accesses, "memset"
        )
        return noted

    def plan_copy(self, dst: int, src: int, size: int, kind: int, call: Call) -> Copy:
        """Return a copy, which is not made yet.

        Raises:
            AcceleratorError: ``kind`` is unknown (21) or does not fit the addresses (1), or a range is not in one block
                (1).
        """
        make = functools.partial(ctypes.memmove, dst, src, size)
        return self._plan(make, Rows(dst, size, src, size, size, 1), kind, call)

    def plan_rows(
        self, dst: int, dpitch: int, src: int, spitch: int, width: int, height: int, kind: int, call: Call
    ) -> Copy:
        """Return a copy of ``height`` rows of ``width`` bytes, which is not made yet.

        Args:
            dst: The address of the first row of the destination.
            dpitch: The bytes from one row of the destination to the next.
            src: The address of the first row of the source.
            spitch: The bytes from one row of the source to the next.
            width: The bytes of a row.
            height: The number of rows.
            kind: The direction.
            call: The call of the runtime, for the error.

        Raises:
            AcceleratorError: A row is longer than a pitch (12), ``kind`` is unknown (21) or does not fit the addresses
                (1), or a range is not in one block (1).
        """
        if width and height and (width > dpitch or width > spitch):
            raise failure(Status.INVALID_PITCH_VALUE, call)
        layout = Rows(dst, dpitch, src, spitch, width, height)
        return self._plan(functools.partial(_core.copy_rows, *layout), layout, kind, call)

    def _plan(self, make: Callable[[], object], layout: Rows, kind: int, call: Call) -> Copy:
        """Return the copy ``make`` of the rows ``layout``."""
        dst, dpitch, src, spitch, width, height = layout
        size = width * height
        if kind not in (*_KINDS, MEMCPY_DEFAULT):
            raise failure(Status.INVALID_MEMCPY_DIRECTION, call)
        if size == 0:
            return Copy(_nothing, 0, duration=0, host_waits=False)
        to, of = (dst, (height - 1) * dpitch + width), (src, (height - 1) * spitch + width)
        self._check(*to, call)
        self._check(*of, call)
        target, source = self.owner(dst), self.owner(src)
        if kind != MEMCPY_DEFAULT and _KINDS[kind] != (target is not None, source is not None):
            raise failure(Status.INVALID_VALUE, call)
        host_waits = False
        if target is not None and source is not None:
            same = target is source
            duration = costs.copy_on_device(size) if same else costs.copy_between_devices(size)
        else:
            pinned = self.is_registered(*(of if source is None else to))
            duration = 0 if target is source else costs.copy_to_or_from_host(size, pinned=pinned)
            host_waits = target is None and not pinned  # cudaMemcpyAsync to pageable memory returns after the copy
        addresses = [ptr for ptr, owner in ((dst, target), (src, source)) if owner is not None]
        ends = (to, target), (of, source)
        host = tuple(range_ for range_, owner in ends if owner is None and self.is_registered(*range_))
        return Copy(self._noted(make, layout), size, duration, host_waits, tuple(addresses), layout, host)

    def _noted(self, make: Callable[..., object], layout: Rows) -> Callable[..., object]:
        """Return the copy ``make`` of the rows ``layout``, which looks for unwritten bytes if the user wants that."""
        if self._contents.unwritten is None:
            return make
        return self._contents.unwritten.copying(make, layout, to_host=self.owner(layout.dst) is None)

    def accesses(self, copy: Copy) -> list[Access]:
        """Return the accesses of ``copy``.

        The operation does not access pageable memory of the host: the host does, before the call of the copy returns.
        """
        if copy.layout is None:
            return []
        dst, dpitch, src, spitch, width, height = copy.layout
        sides = (dst, dpitch, WRITE, "dst"), (src, spitch, READ, "src")
        return [
            rows(address, pitch, width, height, kind, label)
            for address, pitch, kind, label in sides
            if self.owner(address) is not None or self.is_registered(address, (height - 1) * pitch + width)
        ]

    def block_from(self, ptr: int) -> tuple[int, int] | None:
        """Return the address and the size of the block that starts at ``ptr``; None without such a block."""
        for device in self._devices:
            block = device.memory.block_at(ptr)
            if block is not None and block[0] == ptr:
                return block
        return None

    def _check(self, ptr: int, size: int, call: Call) -> None:
        """Refuse a null pointer, a range that leaves its block, and addresses without memory.

        Raises:
            AcceleratorError: The range is one of these (1).
        """
        if ptr == 0:
            raise failure(Status.INVALID_VALUE, call)
        if self.is_unmapped(ptr):
            raise failure(Status.INVALID_VALUE, call)
        for device in self._devices:
            block = device.memory.block_at(ptr)
            if block is not None and ptr + size > sum(block):
                raise failure(Status.INVALID_VALUE, call)


def _nothing() -> None:
    """Copy nothing."""
