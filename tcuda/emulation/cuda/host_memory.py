"""Page-locked memory of the host that the runtime allocates."""

from __future__ import annotations

import ctypes
import mmap

from tcuda._process.lazy import cuda

_pages: dict[int, mmap.mmap] = {}
"""The memory by address."""


def allocate(size: int) -> int:
    """Return the address of ``size`` bytes of page-locked memory; 0 if ``size`` is 0.

    Raises:
        AcceleratorError: A stream captures, which forbids to page-lock memory.
    """
    if not size:
        return 0
    pages = mmap.mmap(-1, size)
    ptr = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    cuda.hostRegister(ptr, size, 0)
    _pages[ptr] = pages
    return ptr


def free(ptr: int) -> bool:
    """Free the memory at ``ptr`` after the work of all devices, and return whether the memory was allocated here.

    Raises:
        AcceleratorError: A stream captures, which forbids to wait for it.
    """
    if not ptr:
        return True
    if ptr not in _pages:
        return False
    current = cuda.getDevice()
    try:
        for device in range(cuda.getDeviceCount()):
            cuda.setDevice(device)
            cuda.deviceSynchronize()
    finally:
        cuda.setDevice(current)
    cuda.hostUnregister(ptr)
    del _pages[ptr]
    return True
