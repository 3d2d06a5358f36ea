"""CuPy's copies of arrays between devices.

On the legacy default stream, CUDA lets a copy between the memories of two devices wait for all earlier work of both
devices, and lets all later work of both devices wait for the copy. ``cudaMemcpyAsync`` keeps this rule for memory of
``cudaMalloc``, but not for mapped memory, of which expandable segments consist (seen on H200s, driver 580). Programs of
CuPy rely on the rule, so tcuda adds the waits.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_LEGACY = (0, 1)
"""The addresses of the legacy default stream: the default, and ``cudaStreamLegacy``."""


@functools.cache
def order(cupy: Any) -> None:
    """Let CuPy's functions that copy arrays between devices wait as they do with memory of ``cudaMalloc``.

    Further calls do nothing.
    """
    array_type = cupy.ndarray
    waits = _Waits(cupy)
    copy, assign, copy_to = array_type.copy, array_type.__setitem__, cupy.copyto

    @functools.wraps(copy)
    def ordered_copy(self: Any, order: Any = "C") -> Any:
        device = self.data.device_id
        if device == waits.here():
            return copy(self, order)
        with cupy.cuda.Device(device):  # before the waits: CuPy would launch the kernel behind them
            contiguous = self.astype(self.dtype, order=order, copy=False)
        return waits.surround({device}, copy, contiguous, order)

    @functools.wraps(assign)
    def ordered_assign(self: Any, slices: Any, value: Any) -> None:
        if isinstance(value, array_type):
            devices = {self.data.device_id, value.data.device_id}
            if devices != {waits.here()}:
                waits.surround(devices, assign, self, slices, value)
                return
        assign(self, slices, value)

    @functools.wraps(copy_to)
    def ordered_copy_to(dst: Any, src: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(src, array_type) and isinstance(dst, array_type):
            devices = {dst.data.device_id, src.data.device_id}
            if devices != {waits.here()}:
                waits.surround(devices, copy_to, dst, src, *args, **kwargs)
                return
        copy_to(dst, src, *args, **kwargs)

    array_type.copy, array_type.__setitem__ = ordered_copy, ordered_assign
    for module in (cupy, cupy._manipulation.basic):
        module.copyto = ordered_copy_to


class _Waits:
    """The waits of the legacy default streams of several devices for each other.

    Args:
        cupy: The package.
    """

    def __init__(self, cupy: Any) -> None:
        self._cuda = cupy.cuda
        self.here: Callable[[], int] = cupy.cuda.runtime.getDevice

    def surround(self, devices: set[int], work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return ``work(*args, **kwargs)``, which queues work on the current stream for memory of ``devices``.

        If the current stream is the legacy default stream, the work waits for the legacy default streams of
        ``devices``, and these streams wait for the work. CUDA orders no other streams.
        """
        if self._cuda.get_current_stream().ptr not in _LEGACY:
            return work(*args, **kwargs)
        here = self.here()
        others = devices - {here}
        for other in others:
            self._wait(here, other)
        try:
            return work(*args, **kwargs)
        finally:
            for other in others:
                self._wait(other, here)

    def _wait(self, device: int, awaited: int) -> None:
        """Let the legacy default stream of ``device`` wait for that of the device ``awaited``."""
        legacy = self._cuda.Stream.null
        with self._cuda.Device(awaited):
            event = self._cuda.Event(disable_timing=True)
            event.record(legacy)
        with self._cuda.Device(device):
            legacy.wait_event(event)
