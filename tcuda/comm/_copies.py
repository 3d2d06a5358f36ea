"""Copies between arrays of any layout, on one device or on several, and their layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._backend.transfers import Hop
from tcuda._device import device
from tcuda._process.lazy import backend
from tcuda.comm._order import join_captures
from tcuda.comm._routes import route

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LEAST_WIDTH = 256
"""The fewest bytes of a row for a copy of rows; a kernel is faster for shorter rows."""


def copies_on(source: Any, indices: Sequence[int]) -> list[Any]:
    """Return a copy of ``source``, which is in C order, for each of other devices, copied by the fastest route."""
    transfers = backend.transfers()
    targets = [transfers.empty(source.shape, source.dtype, index) for index in indices]
    if targets:
        transfers.relay([source, *targets], route(len(targets) + 1, source.nbytes))
    return targets


def copy(targets: Iterable[Any], sources: Iterable[Any]) -> None:
    """Copy each of ``sources`` to the target at its place, an array with the same shape and any layout and dtype.

    The elements are converted to the dtype of the target on the device of the source. Arrays that need no conversion
    are copied first, at the same time. The targets have no memory in common with the sources, unless there is only one.
    """
    direct: list[tuple[Any, Any]] = []
    others: list[tuple[Any, Any]] = []
    for pair in zip(targets, sources, strict=True):
        target, source = pair
        if target is source or not source.size:
            continue
        is_direct = source.dtype == target.dtype and target.flags.c_contiguous and source.flags.c_contiguous
        (direct if is_direct else others).append(pair)
    # Copies within a device first: they need not wait for those that arrive.
    direct.sort(key=lambda pair: pair[0].data.device_id != pair[1].data.device_id)
    if direct:
        hops = [Hop(2 * place + 1, 2 * place, 0, source.nbytes, 0) for place, (_, source) in enumerate(direct)]
        backend.transfers().relay([array for pair in direct for array in pair], hops)
    for target, source in others:
        _convert(target, source)


def _convert(target: Any, source: Any) -> None:
    here, there = source.data.device_id, target.data.device_id
    if here == there:
        with device(here):
            target[...] = source if source.dtype == target.dtype else source.astype(target.dtype)
        return
    join_captures(here, [there])
    if source.dtype != target.dtype:
        with device(here):
            source = source.astype(target.dtype)
    _move(target, source)


def _move(target: Any, source: Any) -> None:
    """Copy ``source`` to ``target``, arrays of two devices with the same shape and dtype."""
    transfers = backend.transfers()
    if not target.flags.c_contiguous or not source.flags.c_contiguous:
        axes = axes_in_memory(target)
        if axes is not None:
            target, source = target.transpose(axes), source.transpose(axes)
        rows = _common_rows(target, source)
        if rows is not None:
            transfers.copy_rows(target, rows[0], source, rows[1], *rows[2:])
            return
        source = contiguous(source)
    if target.flags.c_contiguous:
        copy([target], [source])
        return
    index = target.data.device_id
    (landed,) = copies_on(source, [index])
    with device(index):
        target[...] = landed


def _common_rows(target: Any, source: Any) -> tuple[int, int, int, int] | None:
    """Return the pitch of ``target``, the pitch of ``source``, the bytes of a row, and the number of rows.

    The result is None if both arrays are contiguous, or are not made of rows of the same length.
    """
    for axis in range(1, source.ndim + 1):
        pitches = _pitch(target, axis), _pitch(source, axis)
        if None not in pitches:
            width = source.itemsize
            for length in source.shape[axis:]:
                width *= length
            if width < _LEAST_WIDTH:
                return None
            assert pitches[0] is not None
            assert pitches[1] is not None
            return pitches[0], pitches[1], width, source.nbytes // width
    return None


def _pitch(array: Any, axis: int) -> int | None:
    """Return the bytes from one row to the next, where a row has the elements of the axes from ``axis`` on.

    The result is None if the elements of a row have gaps between them, or if the rows have no common distance.
    """
    shape, strides = array.shape, array.strides
    width = array.itemsize
    for each in reversed(range(axis, array.ndim)):
        if shape[each] != 1 and strides[each] != width:
            return None
        width *= shape[each]
    pitch = 0
    for each in reversed(range(axis)):
        if shape[each] == 1:
            continue
        if not pitch:
            pitch = rows = strides[each]
            if pitch < width:
                return None
        elif strides[each] != rows:
            return None
        rows *= shape[each]
    return pitch or width


def has_whole_rows(array: Any, axis: int) -> bool:
    """Return whether each part of ``array`` along ``axis`` is one range of its bytes, behind the part before it."""
    return axis == 0 and bool(array.flags.c_contiguous)


def part_of(array: Any, axis: int, begin: int, end: int) -> Any:
    """Return the view of ``array`` from ``begin`` to ``end`` along ``axis``."""
    return array[(slice(None),) * axis + (slice(begin, end),)]


def contiguous(array: Any) -> Any:
    """Return ``array`` in C order; a copy is made on the device of ``array``, by its current stream."""
    if array.flags.c_contiguous:
        return array
    with device(array.data.device_id):
        return array.copy(order="C")


def contiguous_for(array: Any, others: Iterable[int]) -> Any:
    """Return ``array`` in C order, for work with the devices ``others``; a copy takes part in their captures."""
    if array.flags.c_contiguous:
        return array
    join_captures(array.data.device_id, others)
    return contiguous(array)


def axes_in_memory(array: Any) -> tuple[int, ...] | None:
    """Return the axes of ``array`` from the longest stride to the shortest; None if this is the order of the axes."""
    strides: Sequence[int] = array.strides
    axes = sorted(range(len(strides)), key=lambda axis: -abs(strides[axis]))
    return None if axes == list(range(len(strides))) else tuple(axes)


def inverse(axes: Sequence[int]) -> tuple[int, ...]:
    """Return the axes that undo ``transpose(axes)``."""
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


def native(dtype: Any) -> Any:
    """Return ``dtype`` in the byte order of the machine, which all arrays of devices have."""
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def empty_like(array: Any, index: int) -> Any:
    """Return a new array on the device ``index`` without gaps, whose axes have the order of those of ``array``."""
    transfers, dtype = backend.transfers(), native(array.dtype)
    axes = None if array.flags.c_contiguous else axes_in_memory(array)
    if axes is None:
        return transfers.empty(array.shape, dtype, index)
    return transfers.empty([array.shape[axis] for axis in axes], dtype, index).transpose(inverse(axes))
