"""The watch: what a race detector learns of the calls of the CUDA driver."""

from __future__ import annotations

import atexit
import threading
import warnings
from typing import TYPE_CHECKING

from tcuda import _core
from tcuda._base.warnings import stacklevel
from tcuda.sanitizer._cuda import cupti, kernel_uses
from tcuda.sanitizer._cuda.library_calls import LibraryCalls
from tcuda.sanitizer._cuda.torch_profiler import ProfilerStarts

if TYPE_CHECKING:
    from tcuda._runtime.protocol import Runtime


class CudaWatch:
    """Reports to a race detector the calls of the CUDA driver that this process makes.

    CUPTI reports the calls of all libraries. If CUPTI cannot be used, a warning says why, and the detector learns of
    the ledger's memory only. The detector would accuse right programs if it learned of tcuda's own operations: CuPy
    calls the driver from its own copy of the CUDA runtime, so nobody else sees which waits order the operations.

    CUPTI serves one tool at a time. So a start of torch's profiler ends the subscription, with a warning. Otherwise the
    profiler would not see the device.

    Args:
        detector: The detector.
        driver_version: The version of the driver's interface, such as 13010 for CUDA 13.1.
    """

    def __init__(self, detector: _core.RaceDetector, driver_version: int) -> None:
        self._detector = detector  # until the end: the races of a detector that is gone are not delivered
        self._calls: _core.DriverWatch | None = None
        self._library_calls = LibraryCalls()
        self._profiler_starts = ProfilerStarts(self._give_way)
        self._ending = threading.RLock()
        path = cupti.find(driver_version)
        if path is None:
            _warn(f"CUPTI is not installed: pip install {cupti.requirement(driver_version)}")
            return
        try:
            self._calls = _core.DriverWatch(detector, path)
        except RuntimeError as error:
            _warn(str(error))
            return
        self._library_calls.begin()
        self._profiler_starts.begin()
        atexit.register(self.end)

    def end(self) -> None:
        """End the watch, and deliver the races that wait; nothing stays attached.

        Raises:
            Exception: The detector's function has raised the exception for one of the races.
        """
        self._profiler_starts.end()
        self._detach()
        atexit.unregister(self.end)
        _core.deliver_races()

    def _give_way(self) -> None:
        """End the subscription before torch's profiler starts; the races that wait are delivered as always."""
        if self._detach():
            _warn_of_profiler()

    def _detach(self) -> bool:
        """End the subscription, and wait for another thread that does so; return whether this call has ended it."""
        with self._ending:
            calls, self._calls = self._calls, None
            if calls is None:
                return False
            try:
                calls.end()
            finally:
                self._library_calls.end()
        return True


def _warn(reason: str) -> None:
    warnings.warn(
        "The race detector sees the memory of arrays, but no kernels, copies and waits, and so finds no races on CUDA "
        f"devices: {reason}",
        RuntimeWarning,
        stacklevel=stacklevel(),
    )


def _warn_of_profiler() -> None:
    warnings.warn(
        "The race detector sees no more CUDA work from here on, because torch's profiler needs CUPTI, and CUPTI serves "
        "one tool at a time",
        RuntimeWarning,
        stacklevel=stacklevel("torch"),
    )


_watch: CudaWatch | None = None


def watch_races(cuda: Runtime, detector: _core.RaceDetector | None) -> None:
    """Report to ``detector`` the calls of the driver from now on; streams are met at their first use.

    The core is told what CuPy knows of its kernels, and of the arrays that programs give to raw kernels.

    Args:
        cuda: The CUDA runtime.
        detector: The race detector; None ends the watch.
    """
    global _watch
    watch, _watch = _watch, None
    if detector is None:
        kernel_uses.end()
    if watch is not None:
        watch.end()
    if detector is not None:
        _watch = CudaWatch(detector, cuda.driverGetVersion())
        import cupy

        kernel_uses.begin(cupy)
