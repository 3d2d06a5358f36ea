"""The watch: what a race detector is told of the calls of the CUDA driver."""

from __future__ import annotations

import atexit
import warnings

from tcuda import _core
from tcuda._runtime.cuda import cupti, nvdisasm
from tcuda._runtime.cuda.library_calls import LibraryCalls
from tcuda._warnings import stacklevel


class CudaWatch:
    """Tells a race detector of the calls of the CUDA driver that this process makes.

    CUPTI tells of the calls of all libraries. If CUPTI cannot be used, a warning says why, and the detector is told of
    the ledger's memory only. The detector would accuse right programs if it were told of tcuda's own operations: CuPy
    calls the driver from its own copy of the CUDA runtime, so nobody else sees which waits order the operations.

    Args:
        detector: The detector.
        driver_version: The version of the driver's interface, such as 13010 for CUDA 13.1.
    """

    def __init__(self, detector: _core.RaceDetector, driver_version: int) -> None:
        self._calls: _core.DriverWatch | None = None
        self._library_calls = LibraryCalls()
        path = cupti.find(driver_version)
        if path is None:
            _warn(f"CUPTI is not installed: pip install 'tcuda[sanitizer{driver_version // 1000}]'")
            return
        _core.prefer_disassembler(nvdisasm.find_in_wheels())
        try:
            self._calls = _core.DriverWatch(detector, path)
        except RuntimeError as error:
            _warn(str(error))
            return
        self._library_calls.begin()
        atexit.register(self.end)

    def end(self) -> None:
        """End the watch, and deliver the races that wait; nothing stays attached.

        Raises:
            Exception: The detector's function has raised the exception for one of the races.
        """
        calls, self._calls = self._calls, None
        if calls is None:
            return
        atexit.unregister(self.end)
        try:
            calls.end()
        finally:
            self._library_calls.end()
        _core.deliver_races()


def _warn(reason: str) -> None:
    warnings.warn(
        "The race detector sees the memory of arrays, but no kernels, copies and waits, and so finds no races on CUDA "
        f"devices: {reason}",
        RuntimeWarning,
        stacklevel=stacklevel(),
    )
