"""Unwritten bytes: bytes of device memory that no work has written since the memory was given out.

Work is checked when it is done, in the order of the streams. Each byte of a block has a mark while a byte of the block
is unwritten. Memory of which nothing is known here, such as that of another library, counts as written.
"""

from __future__ import annotations

import functools
import math
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from tcuda._base.errors import UnwrittenMemoryError
from tcuda._base.statuses import Status
from tcuda._base.strides import byte_bounds
from tcuda._base.user_code import calling_place
from tcuda.emulation.runtime.accesses import READ, WRITE, listed, rows
from tcuda.emulation.runtime.address_ranges import AddressRanges
from tcuda.emulation.runtime.moves import Movable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from tcuda._base.user_code import Place
    from tcuda.emulation.runtime.accesses import Access, Accesses

    Marks: TypeAlias = npt.NDArray[np.uint8]
    """A number for each element or byte: 0 if it is written, or else the number of its origin."""

Region: TypeAlias = tuple[int, int, tuple[int, ...], tuple[int, ...]]
"""The address of the first element, the bytes of an element, and the lengths and the strides of the axes."""

_WRITTEN = 255
"""The mark of a written byte in the marks of a block, which are 255 minus the numbers of origins.

The mark of a byte that nothing has written since the block itself was given out is 0, so that new marks need no work.
"""
_MOST_ORIGINS = 254


class Origin(NamedTuple):
    """An allocation whose bytes nothing has written.

    Attributes:
        size: The bytes.
        line: The line of the program that has allocated the memory.
    """

    size: int
    line: Place | None

    def __str__(self) -> str:
        return f"memory of {self.size} bytes" if self.line is None else f"{self.size} bytes allocated at {self.line}"


class _Block:
    """A block of memory.

    Attributes:
        begin: The address.
        size: The bytes.
        origin: The allocation.
        missing: The number of unwritten bytes.
        marks: A mark for each byte; None if all bytes are written, or if all of them are unwritten.
        number: The number of the origin; 0 before the first use.
    """

    __slots__ = ("begin", "marks", "missing", "number", "origin", "size")

    def __init__(self, begin: int, size: int, origin: Origin) -> None:
        self.begin = begin
        self.size = self.missing = size
        self.origin = origin
        self.marks: Marks | None = None
        self.number = 0


class Unwritten:
    """The unwritten bytes of all devices.

    Attributes:
        open: The number of blocks with unwritten bytes.
    """

    def __init__(self) -> None:
        self.open = 0
        self._blocks: AddressRanges[_Block] = AddressRanges()
        self._origins: list[Origin] = [Origin(0, None)]
        self._numbers: dict[Origin, int] = {}
        # The lock is reentrant, because a finalizer may give memory out while this thread works on the marks.
        self._lock = threading.RLock()
        self._state = _State()

    # Memory

    def given(self, address: int, size: int, line: Place | None) -> None:
        """Take note of memory that is given out, with unwritten contents."""
        block = _Block(address, size, Origin(size, line))
        with self._lock:
            known = self._blocks.beginning_at(address)
            if known is not None and known.end == address + size:
                self._close(known.value)  # the most frequent case: memory of the same size is given again
            else:
                self.forget(address, size)
            self._blocks.add(address, address + size, block)
            self.open += 1

    def freed(self, address: int) -> None:
        """Forget a block that nobody uses any more, and that no work will use, if it has unwritten bytes."""
        known = self._blocks.beginning_at(address)
        if known is not None and known.value.missing:
            self.forget(address, 1)

    def forget(self, address: int, size: int) -> None:
        """Forget all blocks in a range of memory, whose bytes then count as written."""
        with self._lock:
            for old in self._blocks.overlapping(address, address + size):
                self._blocks.remove(old.begin)
                self._close(old.value)

    def _close(self, block: _Block) -> None:
        if block.missing:
            block.missing, block.marks = 0, None
            self.open -= 1

    # Marks

    def marks(self, region: Region) -> Marks | None:
        """Return the marks of a region, with a last axis for the bytes of an element; None if all bytes are written."""
        if not self.open:
            return None
        with self._lock:
            block, low, size = self._block_of(region)
            if block is None or not block.missing:
                return None
            if block.marks is None:
                return np.broadcast_to(np.uint8(self._number_of(block)), (*region[2], region[1]))
            view = _view(block.marks, block.begin, region, low, size)
            if not view.size or view.min() == _WRITTEN:
                return None
            found: Marks = np.uint8(_WRITTEN) - _view(block.marks, block.begin, region)
            found[found == _WRITTEN] = self._number_of(block)
            return found

    def may_have(self, region: Region) -> bool:
        """Return whether the block of a region has unwritten bytes, in the region or elsewhere."""
        if not self.open:
            return False
        with self._lock:
            block, _, _ = self._block_of(region)
            return block is not None and block.missing != 0

    def write(self, region: Region) -> None:
        """Take note that work has written all bytes of a region."""
        if not self.open:
            return
        with self._lock:
            block, low, size = self._block_of(region)
            if block is None or not block.missing:
                return
            if size is not None and low == block.begin and size >= block.size:
                self._close(block)
                return
            view = _view(self._marks_of(block), block.begin, region, low, size)
            before = _written(view)
            view[...] = _WRITTEN
            self._count(block, view.size - before)

    def store(self, region: Region, marks: Marks | None) -> None:
        """Take note that work has written a region with what has ``marks``, one for each byte or for each element."""
        if marks is None or not marks.any():
            self.write(region)
            return
        with self._lock:
            block, _, _ = self._block_of(region)
            if block is None:
                return
            view = _view(self._marks_of(block), block.begin, region)
            before = _written(view)
            view[...] = _WRITTEN - (marks if marks.ndim == view.ndim else marks[..., None])
            self._count(block, _written(view) - before)

    def items(self, addresses: npt.NDArray[Any], itemsize: int) -> Marks | None:
        """Return the marks of elements at ``addresses``; None if all are written."""
        if not self.open or not addresses.size:
            return None
        with self._lock:
            block, places = self._places(addresses, itemsize)
            if block is None or not block.missing:
                return None
            found: Marks = _WRITTEN - self._marks_of(block)[places].min(-1)
            found[found == _WRITTEN] = self._number_of(block)
            return found if found.any() else None

    def store_items(self, addresses: npt.NDArray[Any], itemsize: int, marks: Marks | None) -> None:
        """Take note that work has written elements at ``addresses`` with what has ``marks``; None for written bytes."""
        if not addresses.size or (marks is None and not self.open):
            return
        with self._lock:
            block, places = self._places(addresses, itemsize)
            if block is None or (marks is None and not block.missing):
                return
            new = 0 if marks is None else np.broadcast_to(marks, addresses.shape)[..., None]
            known = self._marks_of(block)
            each = _bytes_of(np.unique(addresses) - block.begin, itemsize)
            before = _written(known[each])
            known[places] = np.uint8(_WRITTEN) - np.uint8(new)
            self._count(block, _written(known[each]) - before)

    def _places(self, addresses: npt.NDArray[Any], itemsize: int) -> tuple[_Block | None, npt.NDArray[Any]]:
        low, high = int(addresses.min()), int(addresses.max()) + itemsize
        found = self._blocks.at(low)
        if found is None or high > found.end:
            return None, addresses
        return found.value, _bytes_of(addresses - found.begin, itemsize)

    def _block_of(self, region: Region) -> tuple[_Block | None, int, int | None]:
        """Return the block of a region, the first address, and the bytes if they have no gaps."""
        low, high = byte_bounds(*region)
        found = self._blocks.at(low)
        if low == high or found is None or high > found.end:
            return None, low, None
        _, itemsize, shape, strides = region
        extent = high - low
        return found.value, low, extent if math.prod(shape) * itemsize == extent and 0 not in strides else None

    def _marks_of(self, block: _Block) -> Marks:
        if block.marks is None:
            block.marks = np.zeros(block.size, np.uint8) if block.missing else np.full(block.size, _WRITTEN, np.uint8)
        return block.marks

    def _count(self, block: _Block, written: int) -> None:
        """Count bytes that were written, or a negative number of bytes that are unwritten now."""
        was_open = block.missing != 0
        block.missing -= written
        if not 0 < block.missing <= block.size:  # elements that share bytes were counted twice
            block.missing = block.size - _written(self._marks_of(block))
        if not block.missing:
            block.marks = None
        self.open += (block.missing != 0) - was_open

    def _number_of(self, block: _Block) -> int:
        if not block.number:
            number = self._numbers.get(block.origin)
            if number is None:
                if len(self._origins) > _MOST_ORIGINS:
                    number = _MOST_ORIGINS
                    self._origins[number] = Origin(block.size, None)
                else:
                    number = len(self._origins)
                    self._origins.append(block.origin)
                self._numbers[block.origin] = number
            block.number = number
        return block.number

    # Work

    def around(self, work: Callable[[], object], accesses: Accesses, name: str, *, decides: bool = False) -> Any:
        """Return ``work`` with the passing on of marks: what it writes is unwritten where what it reads is.

        Args:
            work: The work of an operation. Work with the attribute ``passes_marks`` does all of this itself.
            accesses: What the work reads and writes.
            name: The name of the operation.
            decides: Whether the program depends on what the work reads.
        """
        if getattr(work, "passes_marks", False):
            return work
        return _Around(self, work, accesses, name, calling_place() if decides else None)

    def copying(
        self, make: Callable[..., object], layout: tuple[int, int, int, int, int, int], *, to_host: bool
    ) -> Callable[..., object]:
        """Return the copy ``make`` with the passing on of marks.

        Args:
            make: Makes the copy; its arguments are those of the result.
            layout: The rows, as :class:`~tcuda.emulation.runtime.memory.Rows` has them.
            to_host: Whether the destination is memory of the host, which the program reads.
        """
        dst, dpitch, src, spitch, width, height = layout
        read = rows(src, spitch, width, height, READ, "src")[:4]
        write = rows(dst, dpitch, width, height, WRITE, "dst")[:4]
        line = calling_place() if to_host else None
        return functools.partial(self._copy, make, read, write, self._state.described, line)

    def _copy(
        self, make: Callable[..., object], read: Region, write: Region, described: Any, line: Place | None, *source: int
    ) -> None:
        marks = self.marks(read)
        if line is not None and marks is not None:
            self._refuse_copy(read, marks, described, line)
        make(*source)
        if line is None:
            self.store(write, marks)

    def describe(self, array: npt.NDArray[Any] | None) -> None:
        """Tell what the next copies of this thread copy; None for nothing that is known."""
        self._state.described = None if array is None else (array.dtype, array.shape)

    def _refuse_copy(self, region: Region, marks: Marks, described: Any, line: Place) -> None:
        flat = marks.reshape(-1)
        what = "byte"
        if described is not None and flat.size % described[0].itemsize == 0:
            used = ~padding_of(described[0])
            flat = (flat.reshape(-1, used.size) * used).max(-1)
            what = f"{described[0]} element" if described[0].names is None else "element"
        places = np.flatnonzero(flat)
        if places.size:
            count = f"{what} {places[0]} of {flat.size}"
            self.refuse("cudaMemcpyAsync()", "The copy to the host", count, places.size, int(flat[places[0]]), line)

    def refuse(self, call: str, reader: str, what: str, count: int, number: int, line: Place | None) -> None:
        """Raise the error for a use of unwritten memory.

        Args:
            call: The call of the runtime.
            reader: What reads.
            what: The first element that is read.
            count: The number of unwritten elements that are read.
            number: The number of the origin.
            line: The line of the program that reads.

        Raises:
            UnwrittenMemoryError: Always.
        """
        others = f" ({count} are unwritten)" if count > 1 else ""
        by = "" if line is None else f" at {line}"
        raise UnwrittenMemoryError(
            Status.LAUNCH_FAILURE,
            call,
            f"{reader}{by} reads memory that nothing has written:\n"
            f"    {what}{others}, of {self.origin(number)}.\n"
            "Write the elements first, or leave them out.",
        )

    def origin(self, number: int) -> Origin:
        """Return the origin with a number."""
        return self._origins[number]

    def origin_at(self, address: int, size: int) -> Origin | None:
        """Return the origin of the first unwritten byte of some bytes; None if all of them are written."""
        marks = self.marks((address, size, (), ()))
        return None if marks is None else self._origins[int(marks[marks.argmax()] or marks.max())]

    # Launches of kernels

    def open_blocks(self, begin: int, end: int) -> list[tuple[int, Marks]]:
        """Return the address and the marks of the blocks with unwritten bytes in a range, for a launch of a kernel.

        The launch changes the marks.
        """
        if not self.open:
            return []
        with self._lock:
            found = self._blocks.overlapping(begin, end)
            return [(each.begin, self._marks_of(each.value)) for each in found if each.value.missing]

    def changed(self, marks: Mapping[int, Marks], counts: Iterable[tuple[int, int]]) -> None:
        """Take note that a launch has written bytes.

        Args:
            marks: The marks of blocks, by the address of the block.
            counts: The address of a block, and the number of bytes.
        """
        with self._lock:
            for begin, count in counts:
                found = self._blocks.at(begin)
                if found is not None and found.value.marks is marks[begin]:
                    self._count(found.value, count)


class _State(threading.local):
    """What the next copies of a thread copy: the type of an element, and the lengths of the axes."""

    described: tuple[np.dtype[Any], tuple[int, ...]] | None = None


class _Around(Movable):
    """Work that passes marks on; the arguments are those of :meth:`Unwritten.around`."""

    passes_marks = True

    def __init__(
        self, unwritten: Unwritten, work: Callable[[], object], accesses: Accesses, name: str, line: Place | None
    ) -> None:
        self._unwritten = unwritten
        self._work = work
        self._accesses = accesses
        self._name = name
        self._line = line

    def __call__(self) -> None:
        unwritten = self._unwritten
        if not unwritten.open:
            self._work()
            return
        accesses = listed(self._accesses)
        reads = [access for access in accesses if access[4] & READ and len(access) == 6]
        found = [(access, marks) for access in reads if (marks := unwritten.marks(access[:4])) is not None]
        if found and self._line is not None:
            read, marks = found[0]
            places = np.flatnonzero(marks)
            what = f"byte {places[0]} of {read[5] or 'memory'}"
            unwritten.refuse(self._name, self._name, what, places.size, int(marks.reshape(-1)[places[0]]), self._line)
        self._work()
        for access in accesses:
            if access[4] & WRITE:
                unwritten.store(access[:4], _joined(access, reads, found))


def _joined(write: Access, reads: Sequence[Access], found: Sequence[tuple[Access, Marks]]) -> Marks | None:
    """Return the marks of ``write``: byte for byte if all reads have as many bytes, and else all or nothing."""
    if not found:
        return None
    size = math.prod(write[2]) * write[1]
    if all(math.prod(read[2]) * read[1] == size for read in reads):
        each = [marks.reshape(-1) for _, marks in found]
        joined: Marks = np.maximum.reduce(each)
        return joined.reshape(*write[2], write[1])
    return np.broadcast_to(found[0][1].max(), (*write[2], write[1]))


def _written(marks: Marks) -> int:
    """Return how many of the marks of a block are those of written bytes."""
    return int(np.count_nonzero(marks == _WRITTEN))


def _bytes_of(places: npt.NDArray[Any], itemsize: int) -> npt.NDArray[Any]:
    """Return the places of the bytes of elements at ``places``, with a last axis for the bytes of an element."""
    bytes_: npt.NDArray[Any] = places[..., None] + np.arange(itemsize)
    return bytes_


def _view(marks: Marks, begin: int, region: Region, low: int = 0, size: int | None = None) -> Marks:
    """Return the part of the marks of a block that a region has: flat if ``size`` says that it has no gaps."""
    if size is not None:
        return marks[low - begin : low - begin + size]
    address, itemsize, shape, strides = region
    buffer: Any = marks
    view: Marks = np.ndarray((*shape, itemsize), np.uint8, buffer, address - begin, (*strides, 1))
    return view


def padding_of(dtype: np.dtype[Any]) -> npt.NDArray[np.bool_]:
    """Return for each byte of an element whether no field uses the byte."""
    if dtype.subdtype is not None:
        return np.tile(padding_of(dtype.subdtype[0]), math.prod(dtype.shape))
    unused = np.full(dtype.itemsize, dtype.names is not None)
    for name in dtype.names or ():
        kind, offset = dtype.fields[name][:2]  # type: ignore[index]
        unused[offset : offset + kind.itemsize] &= padding_of(kind)
    return unused
