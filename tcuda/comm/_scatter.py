"""Parts of an array on several devices."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from tcuda._backend.transfers import Hop
from tcuda._base.arguments import MOST_BYTES, a_kind, integer, several
from tcuda._process.lazy import backend
from tcuda._process.streams import handle_and_device
from tcuda.comm._arguments import (
    HOST,
    axis_of,
    device_indices,
    host,
    place_of,
    place_of_output,
    require_existing,
    shape_text,
)
from tcuda.comm._copies import copy, empty_like, has_whole_rows, part_of
from tcuda.streams import StreamContext
from tcuda.streams._stream import Stream, as_stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcuda._process.devices import DeviceArgument
    from tcuda._process.streams import StreamLike


def scatter(
    tensor: Any,
    devices: Iterable[DeviceArgument] | None = None,
    chunk_sizes: Iterable[int] | None = None,
    dim: int = 0,
    streams: Iterable[StreamLike | None] | None = None,
    *,
    out: Sequence[Any] | None = None,
) -> tuple[Any, ...]:
    """Cut an array along an axis, and copy each part to another device (``torch.cuda.comm.scatter``).

    Args:
        tensor: An array of a device, or a NumPy array.
        devices: The devices of the parts.
        chunk_sizes: The length of the part of each device along ``dim``. If None, the parts have equal lengths, the
            last part may be shorter, and there may be fewer parts than devices.
        dim: The axis.
        streams: For each part, a stream of its device, or None. If the part is copied to another device, the stream
            takes the place of the current stream of that device.
        out: Arrays of devices, in place of ``devices`` and ``chunk_sizes``, to which the parts are copied.

    Returns:
        The parts. A part that stays on the device of ``tensor`` is a view of ``tensor``. With ``out``, the arrays of
        ``out``.

    Raises:
        RuntimeError: ``chunk_sizes`` or ``out`` do not fit ``tensor``, ``out`` is given together with ``devices`` or
            ``chunk_sizes``, a stream is of another device than its part, or an index of a device is negative.
        IndexError: ``tensor`` has no axis ``dim``.
        TypeError: ``tensor`` or an element of ``out`` is not an array, ``devices`` and ``out`` are missing, or another
            argument is not iterable.
        ValueError: One of ``devices`` is not a CUDA device.
        AcceleratorError: One of ``devices`` does not exist.

    Example:
        >>> parts = tcuda.comm.scatter(xp.arange(6), [0, 1], chunk_sizes=[2, 4])
        >>> [(part.device.id, part.size) for part in parts]
        [(0, 2), (1, 4)]
    """
    if out is None:
        if devices is None:
            raise TypeError("'NoneType' object is not iterable: scatter() needs devices or out")
        indices = device_indices(devices)
        sizes = None if chunk_sizes is None else _lengths(chunk_sizes)
        return _scattered(tensor, indices, sizes, dim, _checked_streams(streams))
    if devices is not None:
        raise RuntimeError(f"'devices' must not be specified when 'out' is specified, but got devices={devices}")
    if chunk_sizes is not None:
        raise RuntimeError(
            f"'chunk_sizes' must not be specified when 'out' is specified, but got chunk_sizes={chunk_sizes}"
        )
    targets = tuple(several(out, "out", "a sequence of arrays"))
    _scatter_to(targets, tensor, dim, _checked_streams(streams))
    return targets


def _scattered(
    tensor: Any, indices: Sequence[int], sizes: list[int] | None, dim: int, streams: Sequence[Stream | None]
) -> tuple[Any, ...]:
    home = place_of(tensor, "tensor")
    if not indices:
        raise RuntimeError("Expected at least one device to scatter to")
    if sizes is not None and len(sizes) != len(indices):
        raise RuntimeError(
            "Expected devices and chunk_sizes to be of same length, but got "
            f"len(devices) = {len(indices)} and len(chunk_sizes) = {len(sizes)}"
        )
    axis = axis_of(dim, tensor.ndim)
    bounds = _equal_bounds(tensor, axis, len(indices)) if sizes is None else _bounds(tensor, axis, sizes)
    # As in torch, a device for which there is no part is not even checked.
    leaving = [part for part, index in enumerate(indices[: len(bounds)]) if index != home or index == HOST]
    for part in leaving:
        require_existing(indices[part])
        if streams:
            _check_stream(streams, part, indices[part])
    if streams:
        copies = []
        for part in leaving:
            with StreamContext(streams[part] if part < len(streams) else None):
                copies += _sent(tensor, axis, [bounds[part]], [indices[part]], home)
    else:
        copies = _sent(tensor, axis, [bounds[part] for part in leaving], [indices[part] for part in leaving], home)
    if len(copies) < len(bounds):  # views, which are made while the other parts are copied
        for part, index in enumerate(indices[: len(bounds)]):
            if index == home:
                copies.insert(part, part_of(tensor, axis, *bounds[part]))
    return tuple(copies)


def _sent(tensor: Any, axis: int, bounds: Sequence[tuple[int, int]], indices: Sequence[int], home: int) -> list[Any]:
    """Return copies of the parts of ``tensor`` between ``bounds`` on the devices ``indices``."""
    if not tensor.dtype.isnative or not has_whole_rows(tensor, axis):
        parts = [part_of(tensor, axis, *each) for each in bounds]
        targets = [empty_like(part, index) for part, index in zip(parts, indices, strict=True)]
        _copy(targets, parts, home)
        return targets
    (length, *row), dtype, empty = tensor.shape, tensor.dtype, backend.transfers().empty
    row_bytes = tensor.nbytes // max(length, 1)
    targets = [empty((end - begin, *row), dtype, index) for (begin, end), index in zip(bounds, indices, strict=True)]
    if home == HOST:
        host().upload_parts(targets, tensor, [begin * row_bytes for begin, _ in bounds])
        return targets
    hops = [Hop(0, place, begin * row_bytes, end * row_bytes, 0) for place, (begin, end) in enumerate(bounds, 1)]
    backend.transfers().relay([tensor, *targets], hops)
    return targets


def _scatter_to(targets: Sequence[Any], tensor: Any, dim: int, streams: Sequence[Stream | None]) -> None:
    home = place_of(tensor, "tensor")
    if not targets:
        raise RuntimeError("Expected at least one output tensor to scatter to")
    axis = axis_of(dim, tensor.ndim)
    places, sizes = [], []
    for number, target in enumerate(targets):
        place = place_of_output(target, number)
        shapes = [(*array.shape[:axis], *array.shape[axis + 1 :]) for array in (target, tensor)]
        if target.ndim != tensor.ndim or shapes[0] != shapes[1]:
            raise RuntimeError(
                f"Output tensor at index {number} has incorrect shape: {shape_text(target.shape)}. Expected same shape "
                f"except for scatter dim {axis} as the source tensor: {shape_text(tensor.shape)}"
            )
        places.append(place)
        sizes.append(target.shape[axis] if tensor.ndim else 1)
    length = tensor.shape[axis] if tensor.ndim else 1
    if sum(sizes) != length:
        raise RuntimeError(
            f"Total size for output tensors along scatter dim {axis} does not match the source tensor size at dim "
            f"{axis}. Expected {length}, but got total size {sum(sizes)}"
        )
    parts = [part_of(tensor, axis, *each) for each in _bounds(tensor, axis, sizes)]
    for part, place in enumerate(places):
        _check_stream(streams, part, place)
    for part, target in enumerate(targets):
        with StreamContext(streams[part] if part < len(streams) else None):
            _copy([target], [parts[part]], home)


def _copy(targets: Sequence[Any], parts: Sequence[Any], home: int) -> None:
    if home == HOST:
        for target, part in zip(targets, parts, strict=True):
            host().upload(target, part)
    else:
        copy(targets, parts)


def _equal_bounds(tensor: Any, axis: int, count: int) -> list[tuple[int, int]]:
    """Return the beginning and the end of the parts along ``axis`` into which ``torch.chunk`` cuts."""
    if not tensor.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    length = tensor.shape[axis]
    if not length:
        return [(0, 0)] * count
    size = -(-length // count)
    return [(begin, min(begin + size, length)) for begin in range(0, length, size)]


def _lengths(chunk_sizes: Iterable[int]) -> list[int]:
    """Return ``chunk_sizes`` as integers, which may be negative."""
    sizes = several(chunk_sizes, "chunk_sizes", "a sequence of integers")
    return [integer(size, "each of chunk_sizes", -MOST_BYTES, MOST_BYTES) for size in sizes]


def _bounds(tensor: Any, axis: int, sizes: list[int]) -> list[tuple[int, int]]:
    """Return the beginning and the end of each part of ``tensor`` along ``axis``; the parts have these lengths."""
    if not tensor.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if min(sizes) < 0:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={sizes}"
        )
    length = tensor.shape[axis]
    if sum(sizes) != length:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's size at dimension "
            f"{axis}), but got split_sizes={sizes}"
        )
    ends = list(itertools.accumulate(sizes))
    return list(zip([0, *ends], ends, strict=False))


def _checked_streams(streams: Iterable[StreamLike | None] | None) -> list[Stream | None]:
    """Return the streams.

    Raises:
        RuntimeError: An element of ``streams`` is neither a stream nor None.
        TypeError: ``streams`` is not iterable.
    """
    checked: list[Stream | None] = []
    if streams is None:
        return checked
    for stream in several(streams, "streams", "a sequence of streams and None"):
        if stream is None or isinstance(stream, Stream):
            checked.append(stream)
            continue
        try:
            handle_and_device(stream)
        except RuntimeError:
            raise RuntimeError(
                f"Unknown data type found in stream list. Need torch.cuda.Stream or None; got {a_kind(stream)}"
            ) from None
        checked.append(as_stream(stream))
    return checked


def _check_stream(streams: Sequence[Stream | None], part: int, index: int) -> None:
    stream = streams[part] if part < len(streams) else None
    if stream is not None and stream.device_index != index:
        raise RuntimeError(
            f"Expected the device associated with the stream at index {part} (was {stream.device_index}) to match the "
            f"device supplied at that index (expected {index})"
        )
