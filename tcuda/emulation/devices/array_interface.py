"""The protocols by which other libraries pass arrays of a device: ``__cuda_array_interface__`` and CuPy's own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda._base.strides import byte_bounds, packed_strides
from tcuda._process.lazy import backend, cuda
from tcuda._runtime.protocol import STREAM_LEGACY
from tcuda.emulation.devices.memory import ForeignBlock, MemoryPointer
from tcuda.emulation.devices.strided import Strided

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

_ON_HOST = (np.ndarray, np.generic, bool, int, float, complex, list, tuple, str, bytes, slice, type(None), type(...))
"""The types of objects that have no such protocol."""


def array_of(obj: Any) -> Strided | None:
    """Return ``obj`` as an array of a device that shares its memory; None if ``obj`` is not an array of a device.

    Args:
        obj: An array of a device, an object with ``__cuda_array_interface__``, whose stream is waited for, or an object
            with ``__cupy_get_ndarray__``.

    Raises:
        ValueError: ``obj`` has big-endian elements or a mask, or its memory is not memory of a device.
    """
    if isinstance(obj, Strided):
        return obj
    if isinstance(obj, _ON_HOST):
        return None
    if hasattr(obj, "__cuda_array_interface__"):
        return _of_interface(obj, obj.__cuda_array_interface__)
    if hasattr(obj, "__cupy_get_ndarray__"):
        array: Strided = obj.__cupy_get_ndarray__()
        return array
    return None


def is_array(obj: Any) -> bool:
    """Return whether ``obj`` is an array of a device, or has a protocol by which it passes one."""
    return isinstance(obj, Strided) or (
        not isinstance(obj, _ON_HOST)
        and (hasattr(obj, "__cuda_array_interface__") or hasattr(obj, "__cupy_get_ndarray__"))
    )


def interface_of(array: Strided) -> dict[str, Any]:
    """Return the ``__cuda_array_interface__`` of ``array``.

    Raises:
        ValueError: The environment variable ``CUPY_CUDA_ARRAY_INTERFACE_EXPORT_VERSION`` is neither 2 nor 3.
    """
    version = os.environ.get("CUPY_CUDA_ARRAY_INTERFACE_EXPORT_VERSION", "3")
    if version not in ("2", "3"):
        raise ValueError("CUPY_CUDA_ARRAY_INTERFACE_EXPORT_VERSION can only be set to 3 (default) or 2")
    interface = {
        "shape": array.shape,
        "typestr": array.dtype.str,
        "descr": array.dtype.descr,
        "version": int(version),
        "strides": None if array._host.flags.c_contiguous else array.strides,
        "data": (array.data.ptr if array.size else 0, False),
    }
    expose(array)
    if version == "3":
        interface["stream"] = backend.current_stream().ptr or STREAM_LEGACY
    return interface


def expose(array: Strided) -> None:
    """Take note that another library may write the memory of ``array``."""
    block = array._block
    if block.ptr:
        backend.expose(block.ptr, block.size, backend.current_stream(block.device).ptr)


def foreign_array(
    ptr: int, shape: Sequence[int], dtype: np.dtype[Any], strides: Sequence[int] | None, owner: object
) -> Strided:
    """Return an array over memory of a device that ``owner`` keeps alive.

    Args:
        ptr: The address of the first element.
        shape: The lengths of the axes.
        dtype: The type of the elements.
        strides: The bytes from one element to the next along each axis; without gaps if None.
        owner: The object that keeps the memory alive.

    Raises:
        ValueError: The memory is not memory of a device.
    """
    steps = packed_strides(dtype.itemsize, shape) if strides is None else strides
    begin, end = byte_bounds(ptr, dtype.itemsize, shape, steps)
    device = cuda.getDevice()
    if end > begin:
        found = _device_of(ptr)
        if found is None:
            raise ValueError(f"The address {ptr:#x} is not in memory of a device.")
        device = found if found >= 0 else device
        block = ForeignBlock(begin, end - begin, device, owner)
        pointer = MemoryPointer(block, ptr - begin)
    else:
        pointer = MemoryPointer(ForeignBlock(0, 0, device, owner), 0)
    host = np.ndarray(tuple(shape), dtype, pointer.mem.host(), pointer.offset, strides)
    return Strided.array_type._made(pointer.mem, host, None, None)


def _device_of(ptr: int) -> int | None:
    """Return the device of the memory at ``ptr``; -1 for page-locked memory of the host, None for other memory."""
    device = cuda.pointerGetDevice(ptr)
    if device < 0 and not cuda.pointerIsPageLocked(ptr):
        return None
    return device


def _of_interface(owner: object, interface: Mapping[str, Any]) -> Strided:
    dtype = _dtype_of(interface)
    if dtype.byteorder == ">":
        raise ValueError("CuPy does not support the big-endian byte-order")
    if interface.get("mask") is not None:
        raise ValueError("CuPy currently does not support masked arrays.")
    array = foreign_array(interface["data"][0], interface["shape"], dtype, interface.get("strides"), owner)
    stream = interface.get("stream")
    if stream is not None and os.environ.get("CUPY_CUDA_ARRAY_INTERFACE_SYNC", "1") != "0":
        cuda.streamSynchronize(stream)
    return array


def _dtype_of(interface: Mapping[str, Any]) -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.dtype(interface["typestr"])
    fields = interface.get("descr")
    if dtype.kind != "V" or not isinstance(fields, list):
        return dtype
    names: list[str] = []
    offsets: list[int] = []
    formats: list[npt.DTypeLike] = []
    offset = 0
    for name, *kind in fields:
        field = np.dtype(kind[0]) if len(kind) == 1 else np.dtype((kind[0], kind[1]))
        if name:  # A field without a name is padding.
            names.append(name)
            offsets.append(offset)
            formats.append(field)
        offset += field.itemsize
    if not names:  # An unstructured type has one field without a name.
        return dtype
    structure: Any = {"names": names, "offsets": offsets, "formats": formats, "itemsize": dtype.itemsize}
    made: np.dtype[Any] = np.dtype(structure)
    return made
