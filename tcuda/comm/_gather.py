"""Arrays of several devices as the parts of one array."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tcuda._backend.transfers import Hop
from tcuda._base.arguments import several
from tcuda._process.device_rules import device_count
from tcuda._process.lazy import backend, cuda
from tcuda.comm._arguments import (
    HOST,
    axis_of,
    device_index,
    host,
    is_host,
    place_of,
    place_text,
    require_existing,
    shape_text,
)
from tcuda.comm._copies import copy, has_whole_rows, part_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import NoReturn

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
        AcceleratorError: ``destination`` does not exist, or a capture forbids the wait for a copy to the host.

    Example:
        >>> parts = tcuda.comm.scatter(xp.arange(6), [0, 1])
        >>> tcuda.comm.gather(parts, destination=0)
        array([0, 1, 2, 3, 4, 5])
        >>> type(tcuda.comm.gather(parts, destination="cpu")).__module__
        'numpy'
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
    if where != HOST and (out is None or all(array.data.device_id != where for array in arrays)):
        _join(result, arrays, axis, where)
        return result
    parts = _parts(result, arrays, axis)
    if where == HOST:
        host().download(parts, arrays)
    else:  # an array may be a part of `out`
        for part, array in zip(parts, arrays, strict=True):
            copy([part], [array])
    return result


def _parts(result: Any, arrays: Sequence[Any], axis: int) -> list[Any]:
    """Return the view of ``result`` along ``axis`` for each of ``arrays``."""
    begin, parts = 0, []
    for array in arrays:
        end = begin + array.shape[axis]
        parts.append(part_of(result, axis, begin, end))
        begin = end
    return parts


def _join(result: Any, arrays: Sequence[Any], axis: int, where: int) -> None:
    """Copy ``arrays`` to ``result`` on the device ``where``; no array has memory in common with ``result``."""
    dtype = result.dtype
    is_plain = all(array.flags.c_contiguous and array.dtype == dtype for array in arrays)
    if not is_plain or not has_whole_rows(result, axis):
        copy(_parts(result, arrays, axis), arrays)
        return
    near: list[Hop] = []
    far: list[Hop] = []
    to = 0
    for place, array in enumerate(arrays, 1):
        nbytes = array.nbytes
        (near if array.data.device_id == where else far).append(Hop(place, 0, 0, nbytes, to))
        to += nbytes
    # Copies within the device first: they need not wait for those that arrive.
    backend.transfers().relay([result, *arrays], near + far)


def _destination(destination: DeviceArgument) -> int:
    """Return the index of the device of the result, or :data:`HOST`."""
    if destination is None:
        return cuda.getDevice()
    if type(destination) is int and 0 <= destination < device_count():
        return destination
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
    kind = backend.transfers().array
    for number, array in enumerate(arrays):
        if not isinstance(array, kind):
            place = place_text(place_of(array, f"tensors[{number}]"))
            raise RuntimeError(
                f"Expected all input tensors to be CUDA tensors, but tensor at index {number} has device {place}"
            )
    shape = arrays[0].shape
    axis = axis_of(dim, len(shape))
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    before, behind, length = shape[:axis], shape[axis + 1 :], 0
    for number, array in enumerate(arrays):
        other = array.shape
        if other != shape and (len(other) != len(shape) or other[:axis] != before or other[axis + 1 :] != behind):
            _refuse_shape(number, other, shape, axis)
        length += other[axis]
    return axis, (*before, length, *behind)


def _refuse_shape(number: int, shape: Sequence[int], first: Sequence[int], axis: int) -> NoReturn:
    """Refuse the array ``number``, whose shape does not fit that of the first array."""
    if len(shape) != len(first):
        raise RuntimeError(
            f"Expected all input tensors to have the same number of dimensions, but tensor at index {number} has "
            f"{len(shape)} dimensions, (expected {len(first)})"
        )
    expected = (*first[:axis], shape[axis], *first[axis + 1 :])
    raise RuntimeError(
        f"Input tensor at index {number} has invalid shape {shape_text(shape)}, but expected {shape_text(expected)}"
    )
