"""The CUDA runtime API of ``torch.cuda.cudart``: functions that return a status instead of raising an error."""

from __future__ import annotations

import ctypes
import operator
import os
import reprlib
import sys
from enum import IntEnum
from typing import TYPE_CHECKING

from tcuda._base import statuses
from tcuda._base.errors import AcceleratorError, CudaError
from tcuda._device import mem_get_info
from tcuda._process.lazy import cuda, init
from tcuda._runtime.protocol import STREAM_DEFAULT, STREAM_LEGACY, STREAM_PER_THREAD

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


# The values of the parameter types in C. CuPy takes addresses as signed integers, and no process has larger addresses.
_ADDRESSES = range(1 << 63)
_FLAGS = range(1 << 32)
_STATUSES = range(-(1 << 31), 1 << 31)

_INVALID_VALUE = 1
_STREAMS_OF_CUDA = (0, STREAM_LEGACY, STREAM_PER_THREAD)  # CUDA refuses to destroy these streams
_created: set[int] = set()
"""The streams that :func:`cudaStreamCreate` made and that are not destroyed, because CUDA does not check a handle."""


class cudaError(IntEnum):
    """The status of a call; only ``success`` is a named member, as in torch, and any other integer is a status too."""

    success = 0

    @classmethod
    def _missing_(cls, value: object) -> cudaError | None:
        if not isinstance(value, int):
            raise TypeError(f"cudaError() takes the number of a status, an int, not {_short(value)}")
        status = int.__new__(cls, value)
        status._name_ = statuses.name(value)
        status._value_ = value
        return status


def cudaGetErrorString(error: int) -> str:
    """Return the description of a status (``cudaGetErrorString``).

    Raises:
        TypeError: ``error`` is not an integer.
    """
    return statuses.text(_whole("cudaGetErrorString", "error", error, _STATUSES, "a status"))


def cudaProfilerStart() -> cudaError:
    """Let an attached profiler start to collect (``cudaProfilerStart``)."""
    return _status_of(cuda.profilerStart)


def cudaProfilerStop() -> cudaError:
    """Let an attached profiler stop collecting (``cudaProfilerStop``)."""
    return _status_of(cuda.profilerStop)


def cudaHostRegister(ptr: int, size: int, flags: int) -> cudaError:
    """Page-lock ``size`` bytes of host memory at ``ptr``, so that copies need not wait (``cudaHostRegister``).

    Raises:
        TypeError: An argument is not an integer, or is outside the range of its type in CUDA.
    """
    name = "cudaHostRegister"
    address = _whole(name, "ptr", ptr, _ADDRESSES, "the address of host memory")
    length = _whole(name, "size", size, _ADDRESSES, "a number of bytes")
    options = _whole(name, "flags", flags, _FLAGS, "flags, such as 0")
    return _status_of(lambda: cuda.hostRegister(address, length, options))


def cudaHostUnregister(ptr: int) -> cudaError:
    """Undo :func:`cudaHostRegister` (``cudaHostUnregister``).

    Raises:
        TypeError: ``ptr`` is not an address.
    """
    address = _whole("cudaHostUnregister", "ptr", ptr, _ADDRESSES, "the address that was registered")
    return _status_of(lambda: cuda.hostUnregister(address))


def cudaStreamCreate(ptr: int) -> cudaError:
    """Create a stream and write its handle to the address ``ptr`` (``cudaStreamCreate``).

    Raises:
        TypeError: ``ptr`` is not the address of memory that can be written. CUDA would crash the process.
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
        TypeError: ``ptr`` is not a handle of :func:`cudaStreamCreate`, or the stream is destroyed already. CUDA may
            crash the process for such a handle.
    """
    wanted = "a handle that cudaStreamCreate() has written"
    handle = _whole("cudaStreamDestroy", "ptr", ptr, _ADDRESSES, wanted)
    if handle not in _created and handle not in _STREAMS_OF_CUDA:
        raise TypeError(
            f"cudaStreamDestroy() takes {wanted}; {handle:#x} is not such a handle, or its stream is destroyed "
            "already. The streams of tcuda and CuPy are destroyed by their owners."
        )
    _created.discard(handle)  # first, so that no other thread destroys the stream too
    status = _status_of(lambda: cuda.streamDestroy(handle))
    if int(status) != 0 and handle not in _STREAMS_OF_CUDA:
        _created.add(handle)
    return status


def cudaMemGetInfo(device: int) -> tuple[int, int]:
    """Return the free and the total memory of ``device`` in bytes; a failure raises an error, as in torch.

    Raises:
        AcceleratorError: ``device`` does not exist.
        TypeError: ``device`` is not an integer.
    """
    return mem_get_info(_whole("cudaMemGetInfo", "device", device, _STATUSES, "the index of a device"))


def _whole(function: str, name: str, value: object, allowed: range, wanted: str) -> int:
    """Return ``value`` as an int; raise an error unless ``value`` is an integer in ``allowed``."""
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
    """Return a value for a message; a huge number is not written out, because Python may refuse to convert it."""
    if isinstance(value, int) and value.bit_length() > 128:
        return f"one of {value.bit_length()} bits"
    return reprlib.repr(value)


def _write(address: int, content: bytes) -> bool:
    """Write to memory through a pipe, and return whether the kernel, which knows the memory, allows the write."""
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
    """Two statuses by their names in torch (``torch.cuda.cudaStatus``).

    Example:
        >>> tcuda.cudaStatus.SUCCESS
        0
        >>> tcuda.cudart().cudaProfilerStop() == tcuda.cudaStatus.SUCCESS
        True
    """

    SUCCESS: int = 0
    ERROR_NOT_READY: int = 34
    """The constant of torch; the present CUDA runtime returns 600 (``cudaErrorNotReady``)."""


def cudart() -> ModuleType:
    """Initialise tcuda, and return the CUDA runtime API as a module (``torch.cuda.cudart``).

    The functions of the module return a status, for :func:`check_error`; ``cudaMemGetInfo`` returns bytes instead.

    Returns:
        A module with ``cudaError``, ``cudaGetErrorString``, ``cudaProfilerStart``, ``cudaProfilerStop``,
        ``cudaHostRegister``, ``cudaHostUnregister``, ``cudaStreamCreate``, ``cudaStreamDestroy`` and
        ``cudaMemGetInfo``.

    Example:
        >>> free, total = tcuda.cudart().cudaMemGetInfo(0)  # bytes
        >>> status = tcuda.cudart().cudaProfilerStart()  # Nsight Systems records from here
        >>> tcuda.check_error(status)
        >>> tcuda.check_error(tcuda.cudart().cudaProfilerStop())
    """
    init()
    return sys.modules[__name__]


def check_error(res: int) -> None:
    """Raise an error if ``res`` is not success (``torch.cuda.check_error``).

    Args:
        res: The status that a function of :func:`cudart` returned.

    Raises:
        CudaError: ``res`` is not 0.
        TypeError: ``res`` is not an integer.

    Example:
        >>> tcuda.check_error(0)
        >>> tcuda.check_error(1)
        Traceback (most recent call last):
            ...
        tcuda.CudaError: invalid argument (1)
    """
    if not isinstance(res, int):
        raise TypeError(
            f"check_error() takes the status that a function of cudart() returned, an int, not {_short(res)}"
        )
    if res != cudaError.success:
        raise CudaError(res)
