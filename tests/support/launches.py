"""A reader of launches over a stand-in driver."""

from __future__ import annotations

import itertools
import struct
from typing import TYPE_CHECKING

import numpy as np

from support.core import for_tests
from support.races import Watch
from support.stand_in_driver import Arguments, Extra, Function, StandInDriver

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from tcuda import _core

    Pointer = tuple[int, int, bool, int, int, str]
    Uses = dict[str, tuple[list[tuple[int, int]], list[Pointer], bool]]

NONE, READ, WRITE, BOTH = range(4)
WORD = 8


def number(value: int) -> bytes:
    """Return a parameter of eight bytes."""
    return struct.pack("<q" if value < 0 else "<Q", value)


def carray(array: npt.NDArray[np.generic], address: int | None = None) -> bytes:
    """Return the ``CArray`` of an array, as CuPy passes it to a kernel."""
    data = array.__array_interface__["data"][0] if address is None else address
    return struct.pack(f"<Qq{2 * array.ndim}q", data, array.size, *array.shape, *array.strides)


def pointer(offset: int, kind: int, label: str = "", *, possible: bool = False) -> Pointer:
    """Return a pointer without a known extent."""
    return (offset, kind, possible, -1, 0, label)


def array_pointer(offset: int, kind: int, array: npt.NDArray[np.generic], label: str = "") -> Pointer:
    """Return a pointer that begins a ``CArray``."""
    return (offset, kind, False, array.ndim, array.itemsize, label)


def layout(values: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return the offset and the size of each parameter; each is aligned to its size, at most to eight bytes."""
    made, end = [], 0
    for value in values:
        alignment = min(len(value), WORD)
        begin = -(-end // alignment) * alignment
        made.append((begin, len(value)))
        end = begin + len(value)
    return made


def block_of(values: Sequence[bytes]) -> bytes:
    """Return the parameter block."""
    block = b""
    for (offset, _), value in zip(layout(values), values, strict=True):
        block = block.ljust(offset, b"\0") + value
    return block


class Launches:
    """A reader of launches.

    Args:
        of_ptx: The analysis of PTX.
        without: The functions that the driver lacks.
        table: What is known of kernels; None for a table of its own.

    Attributes:
        driver: The stand-in driver.
        watch: The detector.
        table: What is known of kernels.
        reader: The reader.
    """

    def __init__(
        self,
        *,
        of_ptx: Callable[[bytes], Uses] | None = None,
        without: Sequence[str] = (),
        table: for_tests.KernelTable | None = None,
    ) -> None:
        self.driver = StandInDriver()
        self.watch = Watch()
        self.table = for_tests.KernelTable(of_ptx) if table is None else table
        self.reader = for_tests.LaunchReader(self.watch.detector, self.table, self.driver.addresses(*without))
        self._handles = itertools.count(0x5000, 16)

    def kernel(self, *values: bytes, name: str = "kernel", module: int = 1) -> int:
        """Make a function with parameters like ``values``, and return its handle."""
        handle = next(self._handles)
        self.driver.functions[handle] = Function(module, name.encode(), layout(values))
        return handle

    def own(self, address: int, size: int) -> int:
        """Let the detector know a live allocation, and return its address."""
        self.watch.detector.memory_allocated(address, size, 0, 0)
        return address

    def hold(self, array: npt.NDArray[np.generic]) -> None:
        """Let the detector know the memory of an array."""
        base = array
        while isinstance(base.base, np.ndarray):
            base = base.base
        self.own(base.__array_interface__["data"][0], base.nbytes)

    def uses(
        self, *values: bytes, function: int | None = None, name: str = "kernel", notes: _core._Scopes = ()
    ) -> list[_core.RaceUse]:
        """Return the uses of a launch with a list of parameters."""
        made = self.kernel(*values, name=name) if function is None else function
        arguments = Arguments(*values)
        return self.reader.uses(made, name, arguments.address, notes=notes)[1]

    def uses_of_block(self, *values: bytes, function: int | None = None, name: str = "kernel") -> list[_core.RaceUse]:
        """Return the uses of a launch with a parameter block."""
        made = self.kernel(*values, name=name) if function is None else function
        extra = Extra(block_of(values))
        return self.reader.uses(made, name, 0, extra.address)[1]

    def launch(self, stream: int, function: int, *values: bytes, name: str = "kernel") -> None:
        """Tell the detector of a launch."""
        arguments = Arguments(*values)
        self.reader.launch(0, stream, function, name, arguments.address)


def rest(address: int, end: int, kind: int = BOTH, label: str = "") -> _core.RaceUse:
    """Return the possible use of the memory from an address to the end of an allocation."""
    return (address, end - address, (), (), kind, label, "possible")
