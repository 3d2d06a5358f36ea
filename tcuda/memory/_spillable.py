"""A mapping whose arrays move to the host when a device has no room, and come back when they are used."""

from __future__ import annotations

import contextlib
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
from tcuda.memory._copies import copy_async
from tcuda.memory._movable_memory import Entry, MovableMemory
from tcuda.memory._page_locked import empty_pinned
from tcuda.memory._relief import on_out_of_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from tcuda._process.devices import DeviceArgument

K = TypeVar("K")


class SpillStats(NamedTuple):
    """What :meth:`Spillable.stats` returns.

    Attributes:
        device_bytes: The bytes of device memory in which the container's arrays are.
        host_bytes: The bytes of page-locked memory in which the container's arrays are.
        spills: How often the memory of arrays was moved to the host.
        restores: How often such memory came back to its device.

    Example:
        >>> cache = tcuda.memory.Spillable()
        >>> cache["x"] = xp.zeros(1024, dtype="uint8")
        >>> cache.spill()
        1024
        >>> cache.stats()
        SpillStats(device_bytes=0, host_bytes=1024, spills=1, restores=0)
    """

    device_bytes: int
    host_bytes: int
    spills: int
    restores: int


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
    when their threads read ``cache[key]``. An array that comes back in a block of :func:`tcuda.use_mem_pool` belongs to
    that pool from then on. ``values()`` and ``items()`` bring each array back. Several threads may use the mapping.

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
        self._entries: dict[K, Entry] = {}
        self._known: dict[int, MovableMemory] = {}  # by the id() of the block
        self._orders: dict[int, OrderedDict[MovableMemory, None]] = {}  # by device
        self._lock = threading.RLock()  # a finalizer may use the container anywhere
        self._spills = self._restores = 0
        self._callback = on_out_of_memory(_spilling(weakref.ref(self)))

    __reduce__ = refusing(
        "copy or pickle", "its arrays belong to this process, and move between its memory and its devices."
    )

    def __getitem__(self, key: K) -> Any:
        entry = self._entries[key]
        memory = entry.memory
        if memory is None:
            return entry.value
        value = entry.value
        if value is None or (memory.is_restored and backend.current_stream(memory.device) is not memory.stream):
            return self._restored(key, entry, memory)
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
            memory = self._memory_of(value)
            entry = Entry(value, memory)
            self._entries[key] = entry
            if memory is not None:
                memory.entries[entry] = None
                self._note(memory)
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
        """Remove all values; no array is brought back.

        Example:
            >>> cache = tcuda.memory.Spillable()
            >>> cache["x"] = xp.zeros(3)
            >>> cache.clear()
            >>> len(cache)
            0
        """
        with self._lock:
            memories = [*self._known.values(), *filter(None, (entry.memory for entry in self._entries.values()))]
            self._entries.clear()
            self._known.clear()
            for memory in memories:
                memory.entries.clear()  # the entries and their memory refer to each other
                memory.host = None
                memory.order.pop(memory, None)

    def _end(self) -> None:
        self._callback.remove()
        self.clear()

    __del__ = finalizer(_end)

    def __repr__(self) -> str:
        stats = self.stats()
        values = "1 value" if len(self) == 1 else f"{len(self)} values"
        return (
            f"<tcuda.memory.Spillable with {values}: {stats.device_bytes} bytes on devices, "
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
        with self._lock:
            memories = {entry.memory for entry in self._entries.values() if entry.memory is not None}
            on_device = sum(memory.size for memory in memories if memory.block is not None)
            hosts = [memory.host[0].nbytes for memory in memories if memory.block is None and memory.host is not None]
            return SpillStats(on_device, sum(hosts), self._spills, self._restores)

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

    def _memory_of(self, value: Any) -> MovableMemory | None:
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
        return MovableMemory(block, index, size, self._orders.setdefault(index, OrderedDict()))

    def _note(self, memory: MovableMemory) -> None:
        """Note that the memory is on its device, and was used just now."""
        self._known[id(memory.block)] = memory
        memory.order[memory] = None
        memory.order.move_to_end(memory)

    def _drop(self, entry: Entry) -> None:
        """Forget an entry that is not in the container any more, and its memory with the last entry."""
        memory = entry.memory
        if memory is None:
            return
        memory.entries.pop(entry, None)
        if not memory.entries:
            memory.order.pop(memory, None)
            self._known.pop(id(memory.block), None)
            memory.host = None

    def _restored(self, key: K, entry: Entry, memory: MovableMemory) -> Any:
        """Return an array that was on the host, or is still there, for use on the current stream of its device."""
        value = entry.value
        while value is None:
            self._restore(memory)
            value = entry.value  # None if another thread has moved the array to the host again, or has removed it
            if value is None and entry not in memory.entries:
                raise KeyError(key)
        memory.join()
        with contextlib.suppress(KeyError):
            memory.order.move_to_end(memory)
        return value

    def _restore(self, memory: MovableMemory) -> None:
        with self._lock:
            if memory.block is not None:
                # A finalizer reads an array in the middle of a move, or an exception has ended a move.
                if memory.entries:
                    self._note(memory)
                    memory.put_back()
                return
            kept = memory.host
        if kept is None:  # removed
            return
        if captures and capture_on(backend.current_stream(memory.device).ptr) is not None:
            raise RuntimeError(
                "The array is on the host, and cannot come back on a stream that captures a graph. Read the array "
                "before the capture, and keep the array in a variable until the capture ends."
            )
        host, begin = kept
        # The allocation may call callbacks of the program. So no lock is held.
        with device_scope(memory.device):
            fresh = backend.array_type()(host.shape, host.dtype)
            with self._lock:
                if memory.block is not None or memory.host is not kept:
                    return
                memory.bring(fresh.data.mem, begin, copy_async(fresh, host))
                self._note(memory)
                memory.put_back()
                memory.host = None
                self._restores += 1

    def _spill(self, index: int, wanted: int) -> int:
        """Move arrays to the host; the caller has the lock. Return the bytes that became free."""
        order = self._orders.get(index)
        if not order:
            return 0
        taken: list[MovableMemory] = []
        found = 0
        try:
            for _ in range(len(order)):
                if found >= wanted:
                    break
                taken.append(order.popitem(last=False)[0])
                if taken[-1].take():
                    found += taken[-1].size
                else:
                    self._note(taken.pop())  # in use now
            return self._move(index, taken) if taken else 0
        finally:
            for memory in taken:
                if memory.block is not None and memory.entries:
                    self._note(memory)
                    memory.put_back()

    def _move(self, index: int, taken: list[MovableMemory]) -> int:
        """Move memory to the host, whose arrays are taken. Return the bytes that became free."""
        _wait_for_devices()
        copies: list[tuple[MovableMemory, int, npt.NDArray[Any]]] = []
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
                source = backend.array_in(memory.block, begin - memory.begin, host.shape, host.dtype, None)
                copied = copy_async(host, source)
                copies.append((memory, begin, host))
                del source
        if copied is None:
            return 0
        waits.unwatched("eventSynchronize")(copied.cuda_event)
        freed = 0
        for memory, begin, host in copies:
            # In the middle of the move, a finalizer may have read an array, or may have removed all of them.
            if memory.entries and memory.is_unread():
                memory.host = host, begin
                self._known.pop(id(memory.block), None)
                memory.block = None
                freed += memory.size
                self._spills += 1
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
