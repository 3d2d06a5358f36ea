"""The watch of page-locked memory: a race detector is told when the host uses memory that an operation still uses."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tcuda import _core
from tcuda._runtime.emulated.accesses import READ, WRITE, span

if TYPE_CHECKING:
    from collections.abc import Mapping

os.register_at_fork(after_in_child=_core.end_watch_of_pages)  # a child has no devices, and so no detector


class HostWatch:
    """Tells a race detector of the reads and writes that the host makes while an operation uses the same memory.

    Only whole pages of the memory can be watched, and only the first access to the memory of an operation is told.
    Machines that do not tell reads from writes are not watched.

    Args:
        detector: The detector.
        ranges: The size of each range that is page-locked already, by address.
    """

    def __init__(self, detector: _core.RaceDetector, ranges: Mapping[int, int]) -> None:
        self._detector = detector
        for address, size in ranges.items():
            detector.host_registered(address, size)

    def registered(self, address: int, size: int) -> None:
        """Take note of memory that is page-locked from now on."""
        self._detector.host_registered(address, size)

    def unregistered(self, address: int) -> None:
        """Forget memory that is not page-locked any more."""
        self._detector.host_unregistered(address)
        self.update()

    def update(self) -> None:
        """Watch the memory that operations use now."""
        ranges = self._detector.ranges_in_use()
        if ranges is not None and _core.watches_pages():
            _core.watch_pages(ranges, self._seen)

    def _seen(self, address: int, write: bool) -> None:
        name = "write by the host" if write else "read by the host"
        self._detector.host_access(name, [span(address, 1, WRITE if write else READ, "")])
