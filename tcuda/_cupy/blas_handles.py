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
        self._of_thread = _DevicesOfThread()

    def keep_handle_of_thread(self) -> None:
        """Make the handle of this thread and device, and keep it.

        A new handle lets the handles of threads that have ended go. No capture may be in progress.
        """
        index = cupy.cuda.runtime.getDevice()
        if index in self._of_thread.devices:
            return
        owner = threading.current_thread(), index
        for ended in [known for known in self._kept if not known[0].is_alive()]:
            del self._kept[ended]
        device = cupy.cuda.Device()
        device.cublas_handle  # noqa: B018  # makes the handle
        # Without a function that destroys, CuPy returns the object that destroys the handle at its own end.
        self._kept[owner] = device._get_handle("cublas_handles", None, None)
        self._of_thread.devices.add(index)


class _DevicesOfThread(threading.local):
    """The devices whose handles of the calling thread are kept."""

    def __init__(self) -> None:
        self.devices: set[int] = set()
