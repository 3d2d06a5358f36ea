"""The CUDA runtime API as torch hands it out: functions that return a status instead of raising one."""

from __future__ import annotations

import ctypes
import operator
import os
import reprlib
import sys
from enum import IntEnum
from typing import TYPE_CHECKING

from tcuda import _status
from tcuda._device import mem_get_info
from tcuda._errors import AcceleratorError, CudaError
from tcuda._process.lazy import cuda, init
from tcuda._runtime.protocol import STREAM_DEFAULT, STREAM_LEGACY, STREAM_PER_THREAD

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


# What the types of the parameters in C hold; CuPy has a sign in those for addresses, and no process has larger ones.
_ADDRESSES = range(1 << 63)
_FLAGS = range(1 << 32)
_STATUSES = range(-(1 << 31), 1 << 31)

_INVALID_VALUE = 1
_STREAMS_OF_CUDA = (0, STREAM_LEGACY, STREAM_PER_THREAD)  # which CUDA refuses to destroy
_created: set[int] = set()
"""The streams that :func:`cudaStreamCreate` made, and nobody destroyed. CUDA does not check a handle."""


class cudaError(IntEnum):
    """The status of a call; like torch's it names success alone, and any other integer is a status too."""

    success = 0

    @classmethod
    def _missing_(cls, value: object) -> cudaError | None:
        if not isinstance(value, int):
            raise TypeError(f"cudaError() takes the number of a status, an int, not {_short(value)}")
        status = int.__new__(cls, value)
        status._name_ = _status.name(value)
        status._value_ = value
        return status


def cudaGetErrorString(error: int) -> str:
    """Return the description of a status (``cudaGetErrorString``).

    Raises:
        TypeError: ``error`` is no integer.
    """
    return _status.text(_whole("cudaGetErrorString", "error", error, _STATUSES, "a status"))


def cudaProfilerStart() -> cudaError:
    """Let an attached profiler start to collect (``cudaProfilerStart``)."""
    return _status_of(cuda.profilerStart)


def cudaProfilerStop() -> cudaError:
    """Let an attached profiler stop collecting (``cudaProfilerStop``)."""
    return _status_of(cuda.profilerStop)


def cudaHostRegister(ptr: int, size: int, flags: int) -> cudaError:
    """Page-lock ``size`` bytes of host memory at ``ptr``, so that copies need not wait (``cudaHostRegister``).

    Raises:
        TypeError: An argument is no integer, or none that CUDA can take.
    """
    name = "cudaHostRegister"
    address = _whole(name, "ptr", ptr, _ADDRESSES, "the address of host memory")
    length = _whole(name, "size", size, _ADDRESSES, "a number of bytes")
    options = _whole(name, "flags", flags, _FLAGS, "flags, such as 0")
    return _status_of(lambda: cuda.hostRegister(address, length, options))


def cudaHostUnregister(ptr: int) -> cudaError:
    """Undo :func:`cudaHostRegister` (``cudaHostUnregister``).

    Raises:
        TypeError: ``ptr`` is no address.
    """
    address = _whole("cudaHostUnregister", "ptr", ptr, _ADDRESSES, "the address that was registered")
    return _status_of(lambda: cuda.hostUnregister(address))


def cudaStreamCreate(ptr: int) -> cudaError:
    """Create a stream and write its handle to the address ``ptr`` (``cudaStreamCreate``).

    Raises:
        TypeError: ``ptr`` is no address of memory that can be written. CUDA would end the process.
    """
    wanted = "the address of 8 bytes where the handle is written, such as ctypes.addressof(ctypes.c_void_p())"
    address = _whole("cudaStreamCreate", "ptr", ptr, _ADDRESSES, wanted)
    if address == 0:
        return cudaError(_INVALID_VALUE)

    def create() -> None:
        handle = cuda.streamCreateWithPriority(STREAM_DEFAULT, 0)
        if not _write(address, handle.to_bytes(8, sys.byteorder)):
            cuda.streamDestroy(handle)
            raise TypeError(f"cudaStreamCreate() takes {wanted}; memory at {address:#x} cannot be written.")
        _created.add(handle)

    return _status_of(create)


def cudaStreamDestroy(ptr: int) -> cudaError:
    """Destroy the stream with the handle ``ptr`` (``cudaStreamDestroy``).

    Raises:
        TypeError: :func:`cudaStreamCreate` made no such stream, or it is destroyed. CUDA may end the process.
    """
    wanted = "a handle that cudaStreamCreate() has written"
    handle = _whole("cudaStreamDestroy", "ptr", ptr, _ADDRESSES, wanted)
    if handle not in _created and handle not in _STREAMS_OF_CUDA:
        raise TypeError(
            f"cudaStreamDestroy() takes {wanted}, and {handle:#x} is none, or one that is destroyed. The streams of "
            "tcuda and CuPy are destroyed by their owners."
        )
    _created.discard(handle)  # first, so that no other thread destroys the stream too
    status = _status_of(lambda: cuda.streamDestroy(handle))
    if int(status) != 0 and handle not in _STREAMS_OF_CUDA:
        _created.add(handle)
    return status


def cudaMemGetInfo(device: int) -> tuple[int, int]:
    """Return the free and the total memory of ``device`` in bytes; this one raises, as torch's does.

    Raises:
        AcceleratorError: There is no such device.
        TypeError: ``device`` is no integer.
    """
    return mem_get_info(_whole("cudaMemGetInfo", "device", device, _STATUSES, "the index of a device"))


def _whole(function: str, name: str, value: object, allowed: range, wanted: str) -> int:
    """Return ``value`` as an int, if it is an integer that is allowed."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"{function}() takes {wanted} as {name}, an int, not {type(value).__name__} {_short(value)}"
        ) from None
    if number not in allowed:
        raise TypeError(
            f"{function}() takes {wanted} as {name}, an int of {allowed[0]} to {allowed[-1]}, not {_short(number)}"
        )
    return number


def _short(value: object) -> str:
    """Return a value for a message; a number of thousands of digits is not written out, which Python may refuse."""
    if isinstance(value, int) and value.bit_length() > 128:
        return f"one of {value.bit_length()} bits"
    return reprlib.repr(value)


def _write(address: int, content: bytes) -> bool:
    """Write to memory; return whether that was possible. The kernel writes, because it knows what can be written."""
    reader, writer = os.pipe()
    try:
        os.write(writer, content)
        read = ctypes.CDLL(None, use_errno=True).read
        read.argtypes, read.restype = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t), ctypes.c_ssize_t
        return bool(read(reader, address, len(content)) == len(content))
    finally:
        os.close(reader)
        os.close(writer)


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
        raise TypeError(
            f"check_error() takes the status that a function of cudart() returned, an int, not {_short(res)}"
        )
    if res != cudaError.success:
        raise CudaError(res)
