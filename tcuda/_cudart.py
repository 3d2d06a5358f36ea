"""The CUDA runtime API as torch hands it out: functions that return a status instead of raising one."""

from __future__ import annotations

import ctypes
import sys
from enum import IntEnum
from typing import TYPE_CHECKING

from tcuda import _status
from tcuda._device import mem_get_info
from tcuda._errors import AcceleratorError, CudaError
from tcuda._lazy import cuda, init
from tcuda._runtime.protocol import STREAM_DEFAULT

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


class cudaError(IntEnum):
    """The status of a call; like torch's it names success alone, and any other integer is a status too."""

    success = 0

    @classmethod
    def _missing_(cls, value: object) -> cudaError | None:
        if not isinstance(value, int):
            return None
        status = int.__new__(cls, value)
        status._name_ = _status.name(value)
        status._value_ = value
        return status


def cudaGetErrorString(error: int) -> str:
    """Return the description of a status (``cudaGetErrorString``)."""
    return _status.text(int(error))


def cudaProfilerStart() -> cudaError:
    """Let an attached profiler start to collect (``cudaProfilerStart``)."""
    return _status_of(cuda.profilerStart)


def cudaProfilerStop() -> cudaError:
    """Let an attached profiler stop collecting (``cudaProfilerStop``)."""
    return _status_of(cuda.profilerStop)


def cudaHostRegister(ptr: int, size: int, flags: int) -> cudaError:
    """Page-lock ``size`` bytes of host memory at ``ptr``, so that copies need not wait (``cudaHostRegister``)."""
    return _status_of(lambda: cuda.hostRegister(ptr, size, flags))


def cudaHostUnregister(ptr: int) -> cudaError:
    """Undo :func:`cudaHostRegister` (``cudaHostUnregister``)."""
    return _status_of(lambda: cuda.hostUnregister(ptr))


def cudaStreamCreate(ptr: int) -> cudaError:
    """Create a stream and write its handle to the address ``ptr`` (``cudaStreamCreate``)."""

    def create() -> None:
        handle = cuda.streamCreateWithPriority(STREAM_DEFAULT, 0)
        ctypes.c_void_p.from_address(ptr).value = handle

    return _status_of(create)


def cudaStreamDestroy(ptr: int) -> cudaError:
    """Destroy the stream with the handle ``ptr`` (``cudaStreamDestroy``)."""
    return _status_of(lambda: cuda.streamDestroy(ptr))


def cudaMemGetInfo(device: int) -> tuple[int, int]:
    """Return the free and the total memory of ``device`` in bytes; this one raises, as torch's does."""
    return mem_get_info(device)


def _status_of(call: Callable[[], None]) -> cudaError:
    try:
        call()
    except AcceleratorError as error:
        return cudaError(error.error_code)
    return cudaError.success


class cudaStatus:
    """Two statuses that torch names (``torch.cuda.cudaStatus``)."""

    SUCCESS: int = 0
    ERROR_NOT_READY: int = 34
    """torch's constant. The CUDA runtime of today returns 600 (``cudaErrorNotReady``)."""


def cudart() -> ModuleType:
    """Initialise, and return the CUDA runtime API as a module (``torch.cuda.cudart``).

    Its functions return a status, for :func:`check_error`:

        >>> tcuda.check_error(tcuda.cudart().cudaProfilerStart())

    Returns:
        A module with ``cudaError``, ``cudaGetErrorString``, ``cudaProfilerStart``, ``cudaProfilerStop``,
        ``cudaHostRegister``, ``cudaHostUnregister``, ``cudaStreamCreate``, ``cudaStreamDestroy`` and
        ``cudaMemGetInfo``.
    """
    init()
    return sys.modules[__name__]


def check_error(res: int) -> None:
    """Raise an error if ``res`` is not success (``torch.cuda.check_error``).

    Args:
        res: The status that a function of :func:`cudart` returned.

    Raises:
        CudaError: ``res`` is not 0.
        TypeError: ``res`` is no integer.
    """
    if not isinstance(res, int):
        raise TypeError(f"check_error() takes the status that a function of cudart() returned, an int, not {res!r}")
    if res != cudaError.success:
        raise CudaError(res)
