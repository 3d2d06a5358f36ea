"""What stands for CuPy's memory pools on emulated devices."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcuda._core import Ledger
    from tcuda._runtime.emulated.device import EmulatedDevice


class PooledMemory:
    """Memory at ``ptr`` that ``release`` gets back when this object dies."""

    __slots__ = ("_release", "ptr")

    def __init__(self, ptr: int, release: Callable[[int], object]) -> None:
        self.ptr = ptr
        self._release = release

    def __del__(self, _exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        if not _exiting():
            self._release(self.ptr)


class MemoryPool:
    """As ``cupy.cuda.MemoryPool``: keeps freed memory for its stream; it reuses it for the same size only."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._free: dict[tuple[int, int, int], list[int]] = {}

    def allocate(self, size: int, device: int, stream: int) -> PooledMemory:
        """Return memory of ``size`` bytes; MemoryError if there is none."""
        spare = self._free.setdefault((device, stream, size), [])
        try:  # another thread may take the last one between a question and an answer
            ptr = spare.pop()
        except IndexError:
            ptr = self._new(size, device)
        return PooledMemory(ptr, spare.append)

    def empty_cache(self, device: int) -> None:
        """Give back what is free."""
        for (of, _, _), spare in list(self._free.items()):  # to which other threads may add
            if of == device:
                with contextlib.suppress(IndexError):
                    while True:
                        self._ledger.free_segment(device, spare.pop())

    def _new(self, size: int, device: int) -> int:
        ptr = self._ledger.allocate_segment(device, size)
        if not ptr:
            self.empty_cache(device)
            ptr = self._ledger.allocate_segment(device, size)
        if not ptr:
            raise MemoryError(size)
        return ptr


class MemoryAsyncPool:
    """As ``cupy.cuda.MemoryAsyncPool``: what is free is the driver's business, which here keeps nothing."""

    def __init__(self, devices: Sequence[EmulatedDevice]) -> None:
        self._devices = devices

    def allocate(self, size: int, device: int, stream: int) -> PooledMemory:
        """Return memory of ``size`` bytes; MemoryError if there is none."""
        memory = self._devices[device].memory
        ptr = memory.allocate(size)
        if not ptr:
            raise MemoryError(size)
        return PooledMemory(ptr, memory.release)

    def empty_cache(self, device: int) -> None:
        """Do nothing: nothing is kept."""
