"""The DLPack protocol: capsules that pass arrays of a device between libraries.

NumPy makes and reads the capsules, for arrays of the host over the memory of a device. The device in a capsule is
written and read here.
"""

from __future__ import annotations

import ctypes
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda._device import device
from tcuda._process.lazy import backend, cuda
from tcuda._runtime.protocol import EVENT_DISABLE_TIMING, STREAM_LEGACY
from tcuda.emulation.devices import array_interface
from tcuda.emulation.devices.memory import is_managed
from tcuda.emulation.numbers.bfloat16 import is_bfloat16, named_bfloat16
from tcuda.emulation.work import copies

if TYPE_CHECKING:
    import numpy.typing as npt

    from tcuda.emulation.devices.strided import Strided

_HOST, _CUDA, _MANAGED = 1, 2, 13
"""The types of devices in DLPack."""

_DEVICE_AT = {b"dltensor": 8, b"dltensor_versioned": 40}
"""By the name of a capsule: the bytes before the device in the structure to which the capsule points."""

_KIND_AFTER_DEVICE = 12
"""The bytes from the device in that structure to the kind of the elements."""
_UNSIGNED, _BFLOAT = 1, 4
"""Kinds of elements in DLPack."""

_is_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class _Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("index", ctypes.c_int32))


class _Carrier:
    """An array of the host that a capsule holds.

    Args:
        capsule: The capsule.
    """

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return _HOST, 0


def device_of(array: Strided) -> tuple[int, int]:
    """Return the type and the index of the device of ``array``."""
    return _MANAGED if is_managed(array._block.ptr) else _CUDA, array._block.device


def capsule_of(
    array: Strided,
    stream: int | None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """Return a capsule with ``array``, or with ``array`` on the host: a copy, unless the memory is managed.

    Args:
        array: The array.
        stream: The handle of the stream that reads the memory, which waits for the current stream; -1 if no stream must
            wait. None stands for the default stream.
        max_version: The latest version of DLPack that the reader knows.
        dl_device: The device to which the array is passed: its own device, or the host ``(1, 0)``.
        copy: Whether the reader gets a copy; an array of a device is copied to the host only.

    Raises:
        BufferError: ``dl_device`` is another device, a copy is asked for on the same device, or DLPack does not know
            the dtype.
        ValueError: ``copy`` is false for the host and memory that is not managed, or ``stream`` is less than -1.
    """
    if dl_device == (_HOST, 0):
        if not copy and is_managed(array._block.ptr):
            copies.wait_for_contents("__dlpack__()")
            array_interface.expose(array)
            return _capsule_over(array._host, max_version)
        if copy is False:
            raise ValueError("GPU memory cannot be exported to CPU without copy.")
        host = copies.to_host(array, None, "A", None, True)
        return _capsule_over(host, max_version)
    if dl_device is not None and dl_device != device_of(array):
        raise BufferError(f"unsupported device requested: {dl_device}; the array is on {device_of(array)}")
    if copy:
        raise BufferError("copy=True only supported for copy to CPU.")
    if stream is None:
        stream = STREAM_LEGACY
    if stream < -1:
        raise ValueError(
            f"On CUDA, the valid stream for the DLPack protocol is -1, 1, 2, or any larger value, but {stream} was "
            "provided"
        )
    if stream == 0:
        warnings.warn(
            "Stream 0 is passed from a library that you are converting to; CuPy assumes 0 as a legacy default stream. "
            "Please report this problem to the library as this violates the DLPack protocol.",
            stacklevel=3,
        )
        stream = STREAM_LEGACY
    if stream > 0:
        _let_wait(stream)
    array_interface.expose(array)
    # NumPy would refuse to pass memory that NumPy protects, in the oldest version of the protocol.
    capsule = _capsule_over(array._host, max_version)
    _set_device(_structure_of(capsule)[0], *device_of(array))
    return capsule


def old_capsule_of(array: Strided) -> Any:
    """Return a capsule of the first version with ``array``, without a wait of any stream.

    Warns:
        VisibleDeprecationWarning: CuPy has deprecated such capsules.
    """
    _warn_of_capsules()
    return capsule_of(array, -1, (1, 0))


def fromDlpack(dltensor: Any) -> Strided:
    """Return the array in ``dltensor``, a capsule of DLPack; deprecated in CuPy in favour of ``from_dlpack``."""
    _warn_of_capsules()
    return array_in(dltensor)


def _warn_of_capsules() -> None:
    warnings.warn(
        "This function is deprecated and will be removed in a future release. Use the cupy.from_dlpack() array "
        "constructor instead.",
        np.exceptions.VisibleDeprecationWarning,
        stacklevel=3,
    )


def array_from(x: Any, copy: bool | None = None) -> Strided:
    """Return the array that ``x``, an object with the DLPack protocol or a capsule, passes, on its device.

    Raises:
        TypeError: ``x`` is on the host, or on a device that is no GPU.
        ValueError: ``x`` is no capsule, or a capsule that was read before.
    """
    if not hasattr(x, "__dlpack_device__"):
        return array_in(x)
    kind, index = x.__dlpack_device__()
    if kind == _HOST:
        raise TypeError(
            "CPU arrays cannot be directly imported to CuPy. Use `cupy.array(numpy.from_dlpack(input))` instead."
        )
    if kind not in (_CUDA, _MANAGED):
        raise TypeError(f"Unsupported array type: {kind}")
    with device(index):
        stream = backend.current_stream().ptr or STREAM_LEGACY
        try:
            capsule = x.__dlpack__(stream=stream, max_version=(1, 0), copy=copy)
        except TypeError:
            if copy is not None:
                raise
            capsule = x.__dlpack__(stream=stream)
    return array_in(capsule)


def array_in(capsule: Any) -> Strided:
    """Return the array in ``capsule``, whose memory the array shares and keeps alive.

    Raises:
        ValueError: ``capsule`` is no capsule of DLPack, or was read before.
        RuntimeError: The memory is not memory of a GPU.
    """
    found, _ = _structure_of(capsule)
    if found.type not in (_CUDA, _MANAGED):
        raise RuntimeError(
            "CuPy is built against CUDA, different from the backend that backs the incoming DLPack tensor"
        )
    _set_device(found, _HOST, 0)
    kind = _kind_beside(found)
    small = kind.value == _BFLOAT
    if small:
        dtype = named_bfloat16()  # before the capsule changes
        kind.value = _UNSIGNED
    host = np.from_dlpack(_Carrier(capsule))
    if small:
        host = host.view(dtype)
    return array_interface.foreign_array(host.ctypes.data, host.shape, host.dtype, host.strides, host)


def _capsule_over(host: npt.NDArray[Any], max_version: tuple[int, int] | None) -> Any:
    """Return a capsule with ``host``. NumPy makes no capsules of bfloat16, which are written as other numbers here."""
    if not is_bfloat16(host.dtype):
        return host.__dlpack__(**_version(max_version))
    capsule = host.view(np.uint16).__dlpack__(**_version(max_version))
    _kind_beside(_structure_of(capsule)[0]).value = _BFLOAT
    return capsule


def _kind_beside(place: _Device) -> ctypes.c_uint8:
    """Return the kind of the elements in the structure that has the device ``place``."""
    return ctypes.c_uint8.from_address(ctypes.addressof(place) + _KIND_AFTER_DEVICE)


def _structure_of(capsule: Any) -> tuple[_Device, bytes]:
    """Return the device in ``capsule``, and the name of the capsule."""
    for name, offset in _DEVICE_AT.items():
        if _is_capsule(capsule, name):
            return _Device.from_address(_pointer_of(capsule, name) + offset), name
    raise ValueError(
        "A DLPack tensor object cannot be consumed multiple times (or object was not a DLPack capsule). Got: "
        f"{capsule!r}"
    )


def _set_device(place: _Device, kind: int, index: int) -> None:
    place.type, place.index = kind, index


def _version(max_version: tuple[int, int] | None) -> dict[str, Any]:
    return {} if max_version is None else {"max_version": max_version}


def _let_wait(stream: int) -> None:
    """Let the stream with the handle ``stream`` wait for the work of the current stream so far."""
    current = backend.current_stream().ptr
    if (current or STREAM_LEGACY) == stream:
        return
    event = cuda.eventCreateWithFlags(EVENT_DISABLE_TIMING)
    try:
        cuda.eventRecord(event, current)
        cuda.streamWaitEvent(stream, event)
    finally:
        cuda.eventDestroy(event)
