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
        """Make the handle of this thread and device, and keep it.

        A new handle lets the handles of threads that have ended go. No capture may be in progress.
        """
        owner = threading.current_thread(), cupy.cuda.runtime.getDevice()
        if owner in self._kept:
            return
        for ended in [known for known in self._kept if not known[0].is_alive()]:
            del self._kept[ended]
        device = cupy.cuda.Device()
        device.cublas_handle  # noqa: B018  # makes the handle
        # Without a function that destroys, CuPy returns the object that destroys the handle at its own end.
        self._kept[owner] = device._get_handle("cublas_handles", None, None)
