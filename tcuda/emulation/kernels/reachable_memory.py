"""The memory to which the pointers lead that a launch of a kernel has."""

from __future__ import annotations

import ctypes
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tcuda._process.lazy import cuda
from tcuda.emulation.kernels import memory_access

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from tcuda import _core
    from tcuda.emulation.runtime import EmulatedRuntime

_runtime = cast("EmulatedRuntime", cuda)
_WORD = 8
_HALF = 4
"""Compilers for GPUs read a pointer from a multiple of 8 bytes, or its two halves from multiples of 4 bytes."""
_PIECE = 1 << 20
"""The bytes that are searched at a time. NumPy's temporary arrays of such a piece fit in the caches."""
_CLOSE = 1 << 30
"""Ranges of addresses with smaller gaps are searched as one range."""


class ReachableMemory:
    """The blocks of memory to which the arguments of a launch lead, directly or by pointers in memory.

    Any eight bytes count as a pointer whose number is an address in a block, as for a conservative garbage collector.
    The memory of the module is searched too: its global variables, its shared memory, and the numbers in its code. The
    search goes only as far as needed to answer a question.

    Args:
        device: The index of the device of the launch.
        packed: The bytes of the arguments.
        blocks: The beginning and the end of the blocks of the arrays among the arguments.
        kernel: The kernel, whose module is searched.
    """

    def __init__(
        self,
        device: int,
        packed: bytes,
        blocks: Iterable[tuple[int, int]],
        kernel: _core.EmulatedFunction,
    ) -> None:
        self._device = device
        self._kernel = kernel
        self._blocks = dict(blocks)
        self._arguments = [
            int.from_bytes(packed[place : place + _WORD], "little")
            for place in range(0, len(packed) - _WORD + 1, _HALF)
        ]
        self._bounds: list[tuple[int, int]] = []
        self._unread: list[tuple[int, int, int]] = []  # the start, the end, and the distance of the places of words
        self._words: list[int] = []  # the addresses in the memory that was read, in ascending order
        self._unfollowed = sorted(self._arguments)  # the words whose blocks have not been looked up

    def blocks(self) -> list[tuple[int, int]]:
        """Return the beginning and the end of the blocks that were found so far."""
        return [*self._blocks.items()]

    def has(self, begin: int, end: int) -> bool:
        """Return whether a pointer leads to the block from ``begin`` to before ``end``."""
        if begin in self._blocks or any(begin <= word < end for word in self._arguments):
            return True
        if not self._bounds:
            self._begin()
        while True:
            place = bisect_left(self._words, begin)
            if place < len(self._words) and self._words[place] < end:
                return True
            if not self._unread:
                self._follow()
            if not self._unread:
                return False
            self._read()

    def _begin(self) -> None:
        """Prepare the search of memory, which few launches need."""
        self._bounds = _joined(_runtime.memoryBounds())
        self._unread = [(begin, end, _HALF) for begin, end in self._blocks.items()]
        # An instruction has its numbers at any place.
        self._unread += [(begin, end, 1 if code else _HALF) for begin, end, code in self._kernel.module_memory]

    def _read(self) -> None:
        """Search the smallest block that has not been searched: tables of pointers are small."""
        place = min(range(len(self._unread)), key=lambda place: self._unread[place][1] - self._unread[place][0])
        begin, end, step = self._unread.pop(place)
        found = sorted({address for words in _words(begin, end, step, self._bounds) for address in words.tolist()})
        self._words = sorted([*self._words, *found])
        self._unfollowed += found

    def _follow(self) -> None:
        """Find the blocks to which the words lead that were found since the last call."""
        words = sorted(self._unfollowed)
        self._unfollowed = []
        place = 0
        while place < len(words):
            block = memory_access.range_at(self._device, words[place], 1)
            if block is None:
                place += 1
                continue
            place = bisect_left(words, block[1])
            if block[0] not in self._blocks:
                self._blocks[block[0]] = block[1]
                self._unread.append((*block, _HALF))


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return few ranges with all addresses of ``ranges``."""
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(ranges):
        if joined and begin - joined[-1][1] < _CLOSE:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((begin, end))
    return joined


def _words(begin: int, end: int, step: int, bounds: list[tuple[int, int]]) -> Iterator[NDArray[np.uint64]]:
    """Yield the words in the memory from ``begin`` to before ``end`` that are addresses in ``bounds``."""
    for piece in range(begin, end, _PIECE):
        # A word may begin in a piece and end in the next.
        size = min(_PIECE + _WORD, end - piece)
        memory: Any = (ctypes.c_char * size).from_address(piece)  # NumPy's types know no such buffers
        for place in range(0, min(_WORD, size - _WORD + 1), step):
            words = np.frombuffer(memory, np.uint64, (size - place) // _WORD, place)
            for least, limit in bounds:
                # The difference of a smaller number is larger than all addresses.
                yield words[words - np.uint64(least) < limit - least]
