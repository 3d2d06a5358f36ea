"""Copies between arrays of any layout, on one device or on two."""

from __future__ import annotations

from typing import Any

from tcuda._device import device
from tcuda._process.lazy import backend
from tcuda.comm._arrays import axes_in_memory, contiguous
from tcuda.comm._order import join_captures

_LEAST_WIDTH = 256
"""The fewest bytes of a row for a copy of rows; a kernel is faster for shorter rows."""


def copy(target: Any, source: Any) -> None:
    """Copy ``source`` to ``target``, arrays of devices with the same shape and any layouts and dtypes.

    The elements are converted to the dtype of ``target`` on the device of ``source``.
    """
    if source.dtype == target.dtype and target.flags.c_contiguous and source.flags.c_contiguous:
        if target is not source:
            backend.transfers().copy(target, source)
        return
    if not source.size or target is source:
        return
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
        transfers.copy(target, source)
        return
    index = target.data.device_id
    (landed,) = transfers.send(source, [index])
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
