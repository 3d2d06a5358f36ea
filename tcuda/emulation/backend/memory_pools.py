"""The memory pools of emulated devices, which stand for the two kinds of memory pools of CuPy."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tcuda.emulation.runtime.allocation import Allocation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda._core import Ledger
    from tcuda.emulation.runtime.devices import EmulatedDevice
    from tcuda.emulation.runtime.watch import Watch


class MemoryPool:
    """A pool that keeps freed memory for the same stream and the same size, as ``cupy.cuda.MemoryPool`` does.

    Args:
        ledger: The ledger that allocates the segments.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._free: dict[tuple[int, int, int], list[int]] = {}

    def allocate(self, size: int, device: int, stream: int) -> Allocation:
        """Return memory of ``size`` bytes.

        Raises:
            MemoryError: The device has no room for ``size`` bytes.
        """
        spare = self._free.setdefault((device, stream, size), [])
        try:  # A check of the length would be useless: another thread may take the last block after the check.
            ptr = spare.pop()
        except IndexError:
            ptr = self._new(size, device)
        return Allocation(ptr, spare.append)

    def empty_cache(self, device: int) -> None:
        """Give the free memory of ``device`` back."""
        for (of, _, _), spare in dict(self._free).items():  # Other threads and finalizers may add to the dictionary.
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
    """A pool that keeps no memory: ``cupy.cuda.MemoryAsyncPool`` leaves free memory to the driver.

    Args:
        devices: The devices whose memory the pool hands out.
        races: The watch of a race detector.
    """

    def __init__(self, devices: Sequence[EmulatedDevice], races: Watch) -> None:
        self._devices = devices
        self._races = races

    def allocate(self, size: int, device: int, stream: int) -> Allocation:
        """Return memory of ``size`` bytes.

        Raises:
            MemoryError: The device has no room for ``size`` bytes.
        """
        memory = self._devices[device].memory
        ptr = memory.allocate(size, exportable=False)
        if not ptr:
            raise MemoryError(size)

        def release(ptr: int) -> None:
            self._races.watcher.returned(ptr, size, device, stream)
            memory.release(ptr)

        return Allocation(ptr, release)

    def empty_cache(self, device: int) -> None:
        """Do nothing: the pool keeps no memory."""
