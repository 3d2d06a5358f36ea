"""The cuBLAS handles of the threads that capture graphs."""

from __future__ import annotations

import threading

import cupy


class BlasHandles:
    """Keeps the cuBLAS handles of threads that have captured.

    CuPy destroys a handle at the end of its thread. cuBLAS then waits for the device, which CUDA forbids while another
    thread captures: the call would invalidate that capture.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[threading.Thread, int], object] = {}

    def keep_handle_of_thread(self) -> None:
        """Make the handle of this thread and device, keep it, and let go the handles of threads that have ended.

        No capture may be in progress.
        """
        for ended in [owner for owner in self._kept if not owner[0].is_alive()]:
            del self._kept[ended]
        device = cupy.cuda.Device()
        device.cublas_handle  # noqa: B018  # makes the handle
        owner = threading.current_thread(), int(device.id)
        if owner not in self._kept:
            # Without a function that destroys, CuPy returns the object that destroys the handle at its own end.
            self._kept[owner] = device._get_handle("cublas_handles", None, None)
