"""Memory whose arrays the program lets move between a device and the host."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tcuda._base.strides import byte_bounds
from tcuda._device import device as device_scope
from tcuda._process.captures import capture_on, captures
from tcuda._process.lazy import backend
from tcuda._process.ledger import ledger
from tcuda._runtime.protocol import STREAM_PER_THREAD

if TYPE_CHECKING:
    from collections import OrderedDict

    import numpy.typing as npt

    from tcuda.streams import Event

_ALIGNMENT = 512  # bytes: what the addresses of new memory are multiples of


class Entry:
    """A value of a container.

    Attributes:
        value: The value; None for an array that is not on its device.
        memory: The memory of the array; None if the value stays where the program has put it.
        taken: The array, while the container looks whether anybody else refers to the array.
        offset: The bytes from the start of the memory to the first element.
        shape: The shape of the array.
        dtype: The dtype of the array.
        strides: The strides of the array, in bytes.
    """

    __slots__ = ("dtype", "memory", "offset", "shape", "strides", "taken", "value")

    def __init__(self, value: Any, memory: MovableMemory | None) -> None:
        self.value = value
        self.memory = memory
        self.taken: Any = None
        if memory is None:
            return
        self.offset: int = memory.begin + value.data.ptr - memory.block.ptr
        self.shape: tuple[int, ...] = value.shape
        self.dtype: Any = value.dtype
        self.strides: tuple[int, ...] = value.strides
        if memory.entries:  # an array to which two entries refer would never be alone
            self.value = self.array()

    def array(self) -> Any:
        """Return a new array in the memory."""
        memory = self.memory
        assert memory is not None
        return backend.array_in(memory.block, self.offset - memory.begin, self.shape, self.dtype, self.strides)

    def range(self) -> tuple[int, int]:
        """Return the first byte of the memory that the elements use, and the byte after the last."""
        return byte_bounds(self.offset, self.dtype.itemsize, self.shape, self.strides)


class MovableMemory:
    """The memory that arrays of a container share: on a device, or on the host.

    An exception of a signal handler may end each change anywhere. So one assignment to ``block`` makes the memory be on
    the other side, and all that follows is done again by the next call that needs it.

    Attributes:
        device: The index of the device.
        order: The memory of the container on the device, the least recently used first.
        entries: The arrays.
        block: The ``data.mem`` of the arrays; None while the memory is on the host.
        begin: The bytes from the start of the memory to the start of the block. They grow when only a part moves.
        size: The bytes of the block.
        host: The contents while the memory is on the host, and the bytes from the start of the memory to them.
        is_restored: Whether the container has allocated the block.
        stream: The stream for which the container has allocated the block. None for a default stream that each thread
            has for itself.
        ready: The event after the copy that brought the contents back; None if the copy is known to be complete.
    """

    __slots__ = ("begin", "block", "device", "entries", "host", "is_restored", "order", "ready", "size", "stream")

    def __init__(self, block: Any, device: int, size: int, order: OrderedDict[MovableMemory, None]) -> None:
        self.block = block
        self.begin = 0
        self.device = device
        self.size = size
        self.order = order
        self.entries: dict[Entry, None] = {}
        self.host: tuple[npt.NDArray[Any], int] | None = None
        self.is_restored = False
        self.stream: Any = None
        self.ready: Event | None = None

    def take(self) -> bool:
        """Take the arrays out of the entries; return False, with all arrays in place, if the memory is in use.

        The memory is in use if the program refers to one of the arrays, or to another array in the memory.
        """
        entries = tuple(self.entries)
        for entry in entries:
            entry.taken, entry.value = entry.value, None
        alone = all(sys.getrefcount(entry.taken) == _ALONE for entry in entries)
        for entry in entries:
            if not alone:
                entry.value = entry.taken
            entry.taken = None
        if alone and not (sys.getrefcount(self.block) == _ALONE and self.is_unread()):
            self.put_back()
            return False
        return alone

    def is_unread(self) -> bool:
        """Return whether nobody has read the arrays since they were taken, and nobody needs the address.

        The number of references does not tell this after :meth:`take`. A profiler that looks at the stacks of all
        threads, as that of Dask does, keeps the arguments of functions for a moment, and so arrays of the move too.
        """
        return all(entry.value is None for entry in self.entries) and ledger().can_move(self.device, self.block.ptr)

    def put_back(self) -> None:
        """Make the arrays that the entries lack."""
        for entry in tuple(self.entries):
            entry.taken = None
            if entry.value is None:
                entry.value = entry.array()

    def range(self) -> tuple[int, int]:
        """Return the bytes of the memory that the arrays use, from a multiple of the alignment on."""
        begins, ends = zip(*(entry.range() for entry in self.entries), strict=True)
        return min(begins) // _ALIGNMENT * _ALIGNMENT, max(ends)

    def bring(self, block: Any, begin: int, ready: Event) -> None:
        """Be on the device, in new memory for the current stream, once ``ready`` is complete."""
        current = backend.current_stream(self.device)
        self.stream = None if current.ptr == STREAM_PER_THREAD else current
        self.ready = ready
        self.size = ledger().size_of(self.device, block.ptr)
        self.is_restored = True
        self.block, self.begin = block, begin

    def join(self) -> None:
        """Let the current stream of the device use the block, which may belong to another stream."""
        current = backend.current_stream(self.device)
        if current is self.stream:
            return
        if captures and capture_on(current.ptr) is not None:
            return  # the graph keeps the memory, and runs later
        in_use = ledger()
        if in_use.stream_of(self.device, self.block.ptr) == current.ptr:
            return
        in_use.record_stream(self.device, self.block.ptr, current.ptr)
        ready = self.ready
        if ready is None:
            return
        if not captures and ready.query():
            self.ready = None
            return
        with device_scope(self.device):
            ready.wait()


def _references_of_one_owner() -> int:
    probe = Entry(object(), None)
    return sys.getrefcount(probe.value)


_ALONE = _references_of_one_owner()
"""What ``sys.getrefcount()`` says of an object to which only an attribute refers."""
