"""A mapping whose arrays move to the host when a device has no room, and come back when they are used."""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tcuda._base.arguments import MOST_BYTES, integer
from tcuda._base.copying import refusing
from tcuda._device import device as device_scope
from tcuda._process import waits
from tcuda._process.captures import capture_on, captures
from tcuda._process.device_rules import OF_MEMORY, resolve
from tcuda._process.exit import finalizer
from tcuda._process.lazy import backend, cuda
from tcuda._process.ledger import ledger, ledger_if_any
from tcuda._runtime.protocol import STREAM_PER_THREAD
from tcuda.memory._copies import copy_async
from tcuda.memory._page_locked import empty_pinned
from tcuda.memory._relief import on_out_of_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from tcuda._process.devices import DeviceArgument
    from tcuda.streams import Event

K = TypeVar("K")

_ALIGNMENT = 512  # bytes: what the addresses of new memory are multiples of


class SpillStats(NamedTuple):
    """What :meth:`Spillable.stats` returns.

    Attributes:
        device_bytes: The bytes of device memory in which the container's arrays are.
        host_bytes: The bytes of page-locked memory in which the container's arrays are.
        spills: How often the memory of arrays was moved to the host.
        restores: How often such memory came back to its device.
    """

    device_bytes: int
    host_bytes: int
    spills: int
    restores: int


class _Entry:
    """A value of a container.

    Attributes:
        value: The value; None for an array that is not on its device.
        memory: The memory of the array; None if the value stays where the program has put it.
        taken: The array, while the container looks whether anybody else refers to the array.
        offset: The bytes from the begin of the memory to the first element.
        shape: The shape of the array.
        dtype: The dtype of the array.
        strides: The strides of the array, in bytes.
    """

    __slots__ = ("dtype", "memory", "offset", "shape", "strides", "taken", "value")

    def __init__(self, value: Any, memory: _Memory | None) -> None:
        self.value = value
        self.memory = memory
        self.taken: Any = None
        if memory is None:
            return
        self.offset: int = value.data.ptr - memory.block.ptr
        self.shape: tuple[int, ...] = value.shape
        self.dtype: Any = value.dtype
        self.strides: tuple[int, ...] = value.strides
        if memory.entries:  # an array to which two entries refer would never be alone
            self.value = self.array()

    def array(self) -> Any:
        """Return a new array in the memory."""
        assert self.memory is not None
        return backend.array_in(self.memory.block, self.offset, self.shape, self.dtype, self.strides)

    def range(self) -> tuple[int, int]:
        """Return the first byte of the memory that the elements use, and the byte after the last."""
        ways = [(length - 1) * stride for length, stride in zip(self.shape, self.strides, strict=True)]
        begin = self.offset + sum(way for way in ways if way < 0)
        return begin, self.offset + sum(way for way in ways if way > 0) + int(self.dtype.itemsize)


class _Memory:
    """The memory that arrays of a container share: on a device, or on the host.

    Attributes:
        device: The index of the device.
        order: The memory of the container on the device, the least recently used first.
        entries: The arrays.
        block: The ``data.mem`` of the arrays; None while the memory is on the host.
        size: The bytes of the block.
        host: The contents on the host; None while the memory is on the device.
        is_restored: Whether the container has allocated the block.
        stream: The stream for which the container has allocated the block. None for a default stream that each thread
            has for itself.
        ready: The event after the copy that brought the contents back; None if the copy is known to be complete.
    """

    __slots__ = ("block", "device", "entries", "host", "is_restored", "order", "ready", "size", "stream")

    def __init__(self, block: Any, device: int, size: int, order: OrderedDict[_Memory, None]) -> None:
        self.block = block
        self.device = device
        self.size = size
        self.order = order
        self.entries: dict[_Entry, None] = {}
        self.host: npt.NDArray[Any] | None = None
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
        if alone and not self.is_free():
            self.put_back()
            return False
        return alone

    def is_free(self) -> bool:
        """Return whether only this object refers to the block, and nobody needs the address."""
        return sys.getrefcount(self.block) == _ALONE and ledger().can_move(self.device, self.block.ptr)

    def put_back(self) -> None:
        """Make the arrays that :meth:`take` has taken."""
        for entry in tuple(self.entries):
            entry.taken = None
            if entry.value is None:
                entry.value = entry.array()

    def range(self) -> tuple[int, int]:
        """Return the bytes of the block that the arrays use, from a multiple of the alignment on."""
        begins, ends = zip(*(entry.range() for entry in self.entries), strict=True)
        return min(begins) // _ALIGNMENT * _ALIGNMENT, max(ends)

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
    probe = _Entry(object(), None)
    return sys.getrefcount(probe.value)


_ALONE = _references_of_one_owner()
"""What ``sys.getrefcount()`` says of an object to which only an attribute refers."""


class Spillable(MutableMapping[K, Any]):
    """A mapping whose arrays move to page-locked memory when a device has no room for an allocation.

    ``cache[key] = array`` puts an array in, and ``cache[key]`` returns the array. When an allocation on a device finds
    no room, arrays of that device move to the host, as many as the allocation needs. The arrays that were not used for
    the longest time move first. ``cache[key]`` brings an array back, which may move others. So a program can work on
    more data than a device holds. Dask-CUDA and cuDF call this *spilling*. :class:`on_out_of_memory` says when the
    container is asked for room.

    An array moves only if the container has the only reference to its memory, because CuPy's arrays keep their memory.
    So a program reads ``cache[key]`` where it needs the array, and keeps no array in a variable for longer. These stay
    on the device: arrays that the program refers to, also by a view; memory that a captured graph uses; arrays in a
    :class:`tcuda.MemPool`; memory that tcuda has not allocated; and arrays of a subclass.

    An array comes back with the same bytes, shape, dtype, strides and alignment. Arrays of the container that share
    memory move together, and still share memory afterwards. Values that are no arrays are kept as they are.

    Before the memory moves, the host waits for all devices, so that work of any stream on the array is complete. An
    array that comes back is allocated and copied on the current stream of its device. Other streams wait for the copy
    when their threads read ``cache[key]``. ``values()`` and ``items()`` bring each array back. Several threads may use
    the mapping.

    Example:
        >>> cache = tcuda.memory.Spillable()
        >>> cache["x"] = xp.arange(1000)
        >>> size = cache.spill()  # happens by itself when memory is short
        >>> cache.stats().device_bytes, cache.stats().host_bytes
        (0, 8000)
        >>> int(cache["x"].sum())  # back on the device
        499500
    """

    def __init__(self) -> None:
        """Make an empty container."""
        self._entries: dict[K, _Entry] = {}
        self._known: dict[int, _Memory] = {}  # by the id() of the block
        self._orders: dict[int, OrderedDict[_Memory, None]] = {}  # by device
        self._lock = threading.RLock()  # a finalizer may use the container anywhere
        self._stats = SpillStats(0, 0, 0, 0)
        self._callback = on_out_of_memory(_spilling(weakref.ref(self)))

    __reduce__ = refusing("copy or pickle", "its arrays are on devices of this process. Copy dict(container) instead.")

    def __getitem__(self, key: K) -> Any:
        entry = self._entries[key]
        memory = entry.memory
        if memory is None:
            return entry.value
        value = entry.value
        if value is None or (memory.is_restored and backend.current_stream(memory.device) is not memory.stream):
            return self._restored(entry, memory)
        try:  # contextlib.suppress() takes longer than the rest of the method
            memory.order.move_to_end(memory)
        except KeyError:
            return value  # another thread looks at the memory, and will see that this thread refers to the array
        return value

    def __setitem__(self, key: K, value: Any) -> None:
        with self._lock:
            before = self._entries.get(key)
            if before is not None and before.value is value and value is not None:
                return  # container[key] += 1
            entry = _Entry(value, self._memory_of(value))
            self._entries[key] = entry
            if entry.memory is not None:
                entry.memory.entries[entry] = None
            if before is not None:
                self._drop(before)

    def __delitem__(self, key: K) -> None:
        with self._lock:
            self._drop(self._entries.pop(key))

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    # The methods of Mapping would bring every array back.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def clear(self) -> None:
        """Remove all values; no array is brought back."""
        with self._lock:
            for key in list(self._entries):
                del self[key]

    def _end(self) -> None:
        self._callback.remove()
        self.clear()  # the entries and their memory refer to each other

    __del__ = finalizer(_end)

    def __repr__(self) -> str:
        stats = self._stats
        return (
            f"<tcuda.memory.Spillable with {len(self)} values: {stats.device_bytes} bytes on devices, "
            f"{stats.host_bytes} on the host>"
        )

    def stats(self) -> SpillStats:
        """Return where the arrays are, and how often arrays have moved.

        Example:
            >>> cache = tcuda.memory.Spillable()
            >>> cache["x"] = xp.zeros(1000, dtype="float32")
            >>> cache.stats()
            SpillStats(device_bytes=4096, host_bytes=0, spills=0, restores=0)
        """
        return self._stats

    def spill(self, size: int | None = None, device: DeviceArgument = None) -> int:
        """Move the least recently used arrays of ``device`` to the host, until ``size`` bytes are free.

        Args:
            size: The bytes of device memory; None to move all arrays that can move.
            device: The device; the current device if None.

        Returns:
            The bytes of device memory that became free, which may be more or less than ``size``.

        Raises:
            AcceleratorError: The driver has no more page-locked memory. Arrays that have not moved stay on the device.
            RuntimeError: A graph is being captured, or ``device`` does not exist.
            TypeError: ``size`` is not an integer.
            ValueError: ``size`` is negative, or ``device`` is not a CUDA device.

        Example:
            >>> cache = tcuda.memory.Spillable()
            >>> cache["x"] = xp.zeros(1000, dtype="float32")
            >>> cache.spill(1)
            4096
        """
        wanted = MOST_BYTES if size is None else integer(size, "Spillable.spill(): size", 0, MOST_BYTES)
        index = resolve(device, OF_MEMORY)
        if captures:
            raise RuntimeError("spill() waits for the devices, which is impossible while a graph is captured.")
        with self._lock:
            return self._spill(index, wanted)

    def _memory_of(self, value: Any) -> _Memory | None:
        """Return the memory of an array that can move; None for other values."""
        in_use = ledger_if_any()
        if in_use is None or type(value) is not backend.array_type():
            return None
        block, index = value.data.mem, value.data.device_id
        known = self._known.get(id(block))
        if known is not None:
            return known
        size = in_use.size_of(index, block.ptr) if value.size else 0
        if size == 0 or backend.owner_of(block) is not None:
            return None
        memory = _Memory(block, index, size, self._orders.setdefault(index, OrderedDict()))
        self._note_on_device(memory)
        return memory

    def _note_on_device(self, memory: _Memory) -> None:
        self._known[id(memory.block)] = memory
        memory.order[memory] = None
        self._count(device_bytes=memory.size)

    def _count(self, **changes: int) -> None:
        stats = self._stats
        self._stats = stats._replace(**{name: getattr(stats, name) + change for name, change in changes.items()})

    def _drop(self, entry: _Entry) -> None:
        """Forget an entry that is not in the container any more, and its memory with the last entry."""
        memory = entry.memory
        if memory is None:
            return
        del memory.entries[entry]
        if memory.entries:
            return
        if memory.host is not None:
            self._count(host_bytes=-memory.host.nbytes)
            memory.host = None
        else:
            self._count(device_bytes=-memory.size)
            del self._known[id(memory.block)]
            memory.order.pop(memory, None)

    def _restored(self, entry: _Entry, memory: _Memory) -> Any:
        """Return an array that was on the host, or is still there, for use on the current stream of its device."""
        value = entry.value
        while value is None:
            self._restore(memory)
            value = entry.value  # None if another thread has moved the array to the host again
        memory.join()
        with contextlib.suppress(KeyError):
            memory.order.move_to_end(memory)
        return value

    def _restore(self, memory: _Memory) -> None:
        with self._lock:
            host = memory.host
            if host is None:
                memory.put_back()  # a finalizer reads an array in the middle of the move to the host
                return
        if captures and capture_on(backend.current_stream(memory.device).ptr) is not None:
            raise RuntimeError(
                "The array is on the host, and cannot come back on a stream that captures a graph. Read the array "
                "before the capture, and keep the array in a variable until the capture ends."
            )
        # The allocation may call callbacks of the program. So no lock is held.
        with device_scope(memory.device):
            fresh = backend.array_type()(host.shape, host.dtype)
            with self._lock:
                if memory.host is not host or not memory.entries:
                    return
                current = backend.current_stream()
                memory.stream = None if current.ptr == STREAM_PER_THREAD else current
                memory.is_restored = True
                memory.ready = copy_async(fresh, host)
                memory.block = fresh.data.mem
                memory.size = ledger().size_of(memory.device, memory.block.ptr)
                self._note_on_device(memory)
                self._count(host_bytes=-host.nbytes, restores=1)
                memory.host = None
                memory.put_back()

    def _spill(self, index: int, wanted: int) -> int:
        """Move arrays to the host; the caller has the lock. Return the bytes that became free."""
        order = self._orders.get(index)
        if not order:
            return 0
        taken: list[_Memory] = []
        found = 0
        try:
            for _ in range(len(order)):
                if found >= wanted:
                    break
                memory, _ = order.popitem(last=False)
                taken.append(memory)
                if memory.take():
                    found += memory.size
                else:
                    order[memory] = None  # in use now
                    taken.pop()
            return self._move(index, taken) if taken else 0
        finally:
            for memory in taken:
                if memory.block is not None and memory.entries:
                    memory.put_back()
                    order[memory] = None

    def _move(self, index: int, taken: list[_Memory]) -> int:
        """Move memory to the host, whose arrays are taken. Return the bytes that became free."""
        _wait_for_devices()
        copies: list[tuple[_Memory, int, npt.NDArray[Any]]] = []
        copied = None
        with device_scope(index):
            for memory in taken:
                if not memory.entries:  # a finalizer has removed the arrays
                    continue
                begin, end = memory.range()
                try:
                    host = empty_pinned(end - begin, "B")
                except RuntimeError:
                    if not copies:
                        raise
                    break
                copied = copy_async(host, backend.array_in(memory.block, begin, host.shape, host.dtype, None))
                copies.append((memory, begin, host))
        if copied is None:
            return 0
        waits.unwatched("eventSynchronize")(copied.cuda_event)
        freed = 0
        for memory, begin, host in copies:
            # In the middle of the move, a finalizer may have read an array, or may have removed all of them.
            if memory.entries and memory.is_free():
                del self._known[id(memory.block)]
                memory.host = host
                memory.block = memory.ready = memory.stream = None
                for entry in memory.entries:
                    entry.offset -= begin
                self._count(device_bytes=-memory.size, host_bytes=host.nbytes, spills=1)
                freed += memory.size
        return freed


def _spilling(container: weakref.ref[Spillable[Any]]) -> Callable[[int, int], bool]:
    """Return the callback of a container, which does not keep the container alive."""

    def callback(index: int, size: int) -> bool:
        found = container()
        return found is not None and found.spill(size, index) > 0

    return callback


def _wait_for_devices() -> None:
    """Wait for the work of all devices in use: another device may read the memory too."""
    in_use, current = ledger(), cuda.getDevice()
    try:
        for index in range(cuda.getDeviceCount()):
            if index == current or in_use.reserved(index):
                cuda.setDevice(index)
                waits.unwatched("deviceSynchronize")()
    finally:
        cuda.setDevice(current)
