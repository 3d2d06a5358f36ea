"""Arrays of several devices as the parts of one array."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tcuda._arguments import several
from tcuda._process.lazy import backend, cuda
from tcuda.comm._arrays import HOST, axis_of, part_of, place_of, place_text, shape_text
from tcuda.comm._copies import copy
from tcuda.comm._devices import device_index, is_host, require_existing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcuda._process.devices import DeviceArgument


def gather(tensors: Iterable[Any], dim: int = 0, destination: DeviceArgument = None, *, out: Any = None) -> Any:
    """Join arrays of several devices along an axis (``torch.cuda.comm.gather``).

    Args:
        tensors: Arrays of devices, whose shapes differ only along ``dim``.
        dim: The axis.
        destination: The device of the result; the current device if None. ``"cpu"`` means the host, as does -1, which
            gives a ``FutureWarning``.
        out: An array of a device, or a NumPy array, in place of ``destination``, to which the arrays are copied.

    Returns:
        A new array in C order with the dtype of ``tensors[0]``, or ``out``. The result on the host is a NumPy array;
        the call then waits for the copies.

    Raises:
        RuntimeError: There are no arrays, an array is on the host, the shapes do not fit each other or ``out``, or both
            ``destination`` and ``out`` are given.
        IndexError: The arrays have no axis ``dim``.
        TypeError: ``tensors`` is not iterable, or an element or ``out`` is not an array.
        ValueError: ``destination`` is not a device.
        AcceleratorError: ``destination`` does not exist, or a capture forbids to wait for a copy to the host.
    """
    arrays = list(several(tensors, "tensors", "a sequence of arrays"))
    if out is not None:
        if destination is not None:
            raise RuntimeError(
                f"'destination' must not be specified when 'out' is specified, but got destination={destination}"
            )
        where = place_of(out, "out")
        axis, shape = _joined(arrays, dim)
        if out.shape != shape:
            raise RuntimeError(
                f"Expected out tensor to have shape {shape_text(shape)}, but got {shape_text(out.shape)}"
            )
        if where == HOST and not out.flags.writeable:
            raise ValueError("output array is read-only: it cannot be written to; pass a copy of it")
        result = out
    else:
        where = _destination(destination)
        axis, shape = _joined(arrays, dim)
        result = _new(shape, arrays[0].dtype, where)
    parts, begin = [], 0
    for array in arrays:
        parts.append(part_of(result, axis, begin, begin + array.shape[axis]))
        begin += array.shape[axis]
    if where == HOST:
        from tcuda.comm._host import download  # here, because `import tcuda` imports no NumPy

        download(parts, arrays)
    else:
        for part, array in zip(parts, arrays, strict=True):
            copy(part, array)
    return result


def _destination(destination: DeviceArgument) -> int:
    """Return the index of the device of the result, or :data:`HOST`."""
    if destination is None:
        return cuda.getDevice()
    if is_host(destination):
        return HOST
    if destination == HOST and isinstance(destination, int):
        warnings.warn(
            "Using -1 to represent CPU tensor is deprecated. Please use a device object or string instead, e.g., "
            '"cpu".',
            FutureWarning,
            stacklevel=3,
        )
        return HOST
    index = device_index(destination, optional=True)
    require_existing(index)
    return index


def _new(shape: Sequence[int], dtype: Any, where: int) -> Any:
    if where == HOST:
        import numpy as np

        return np.empty(shape, dtype)
    return backend.transfers().empty(shape, dtype, where)


def _joined(arrays: Sequence[Any], dim: int) -> tuple[int, tuple[int, ...]]:
    """Return the axis that ``dim`` means, and the shape of the arrays that are joined along the axis.

    Raises:
        RuntimeError: There are no arrays, an array is on the host, or the shapes do not fit each other.
        IndexError: The arrays have no axis ``dim``.
        TypeError: An element of ``arrays`` is not an array.
    """
    if not arrays:
        raise RuntimeError("Expected at least one tensor to gather from")
    places = [place_of(array, f"tensors[{number}]") for number, array in enumerate(arrays)]
    shape = list(arrays[0].shape)
    axis = axis_of(dim, len(shape))
    length = 0
    for number, (array, place) in enumerate(zip(arrays, places, strict=True)):
        if place == HOST:
            raise RuntimeError(
                f"Expected all input tensors to be CUDA tensors, but tensor at index {number} has device "
                f"{place_text(place)}"
            )
        if not shape:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        if array.ndim != len(shape):
            raise RuntimeError(
                "Expected all input tensors to have the same number of dimensions, but tensor at index "
                f"{number} has {array.ndim} dimensions, (expected {len(shape)})"
            )
        expected = (*shape[:axis], array.shape[axis], *shape[axis + 1 :])
        if array.shape != expected:
            raise RuntimeError(
                f"Input tensor at index {number} has invalid shape {shape_text(array.shape)}, but expected "
                f"{shape_text(expected)}"
            )
        length += array.shape[axis]
    shape[axis] = length
    return axis, tuple(shape)
