"""Copies and sums of many small arrays: the arrays are packed, so that few transfers have many bytes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from tcuda._base.arguments import a_kind, several
from tcuda._device import device
from tcuda._process.captures import captures
from tcuda._process.lazy import backend
from tcuda.comm._arrays import contiguous, place_of
from tcuda.comm._broadcast import copies_on
from tcuda.comm._devices import device_indices, require_existing
from tcuda.comm._order import join_captures
from tcuda.comm._reduce import checked_inputs, destination_index, total
from tcuda.comm._routes import SMALL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tcuda._process.devices import DeviceArgument

_BUFFER_SIZE = 10485760


def broadcast_coalesced(
    tensors: Iterable[Any], devices: Iterable[DeviceArgument], buffer_size: int = _BUFFER_SIZE
) -> list[list[Any]]:
    """Copy many arrays to several devices (``torch.cuda.comm.broadcast_coalesced``).

    The arrays are packed into buffers, and each buffer is copied at once. The copies of the arrays of one buffer share
    the memory of a buffer on their device.

    Args:
        tensors: Arrays of the first of ``devices``, of any dtypes and shapes.
        devices: The devices.
        buffer_size: The number of bytes at which a buffer is full; a full buffer takes no more arrays.

    Returns:
        A list for each device: ``tensors`` themselves for the first device, and new arrays in C order for the others.

    Raises:
        RuntimeError: An array is not on the first device, there is no device, or an index of a device is negative.
        TypeError: ``tensors`` or ``devices`` is not iterable, an element of ``tensors`` is not an array, or
            ``buffer_size`` is not an integer, or is negative.
        ValueError: One of ``devices`` is not a CUDA device.
        AcceleratorError: One of ``devices`` does not exist.

    Example:
        >>> arrays = [xp.arange(3), xp.ones((2, 2))]
        >>> first, second = tcuda.comm.broadcast_coalesced(arrays, [0, 1])
        >>> [array.shape for array in second]
        [(3,), (2, 2)]
    """
    made = backend.transfers().broadcast_coalesced(tensors, devices, buffer_size, SMALL)
    if made is not None:
        return made
    indices = device_indices(devices)
    originals = list(several(tensors, "tensors", "a sequence of arrays"))
    _check_buffer_size("broadcast_coalesced", buffer_size)
    if not indices:
        raise RuntimeError("Expected at least one device to broadcast to")
    for index in indices:
        require_existing(index)
    home, others = indices[0], indices[1:]
    arrays, sizes = _packable(originals, home, others)
    results: list[list[Any]] = [[] for _ in others]
    if not others:
        return [originals]
    for begin, end in _full_groups(sizes, buffer_size):
        for made, copies in zip(results, _copied(arrays[begin:end], sizes[begin:end], home, others), strict=True):
            made += copies
    return [originals, *results]


def _packable(originals: list[Any], home: int, others: Sequence[int]) -> tuple[list[Any], list[int]]:
    """Return ``originals`` in C order, and the bytes of each.

    Raises:
        RuntimeError: An array is not on the device ``home``.
    """
    transfers = backend.transfers()
    sizes = transfers.sizes(originals, home)
    if sizes is not None:
        return originals, sizes
    for number, array in enumerate(originals):
        if place_of(array, f"tensors[{number}]") != home:
            raise RuntimeError(f"All tensors must be on devices[0]: {home}")
    join_captures(home, others)
    arrays = [contiguous(array) for array in originals]
    return arrays, _sizes(arrays, home)


def _sizes(arrays: Sequence[Any], index: int) -> list[int]:
    """Return the bytes that each of ``arrays``, which are in C order on the device ``index``, takes in a buffer."""
    sizes = backend.transfers().sizes(arrays, index)
    assert sizes is not None
    return sizes


def _copied(arrays: Sequence[Any], sizes: Sequence[int], home: int, others: Sequence[int]) -> list[list[Any]]:
    """Return copies of ``arrays`` for each of ``others``, by one buffer; ``home`` may be among ``others``."""
    if captures:
        join_captures(home, others)
    transfers = backend.transfers()
    if len(arrays) == 1 and home not in others:
        return [[each] for each in copies_on(arrays[0], others)]
    flat, offsets = packed(arrays, sizes, home)
    away = [index for index in others if index != home]
    copies = iter(copies_on(flat, away) if away else [])
    flats = [flat if index == home else next(copies) for index in others]
    return [transfers.views(each, arrays, offsets) for each in flats]


def packed(arrays: Sequence[Any], sizes: Sequence[int], index: int) -> tuple[Any, list[int]]:
    """Return an array of bytes with the contents of ``arrays`` of the device ``index``, and the place of each."""
    *offsets, end = itertools.accumulate(sizes, initial=0)
    transfers = backend.transfers()
    flat = transfers.empty((end,), "B", index)
    with device(index):
        transfers.pack(arrays, flat, offsets)
    return flat, offsets


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Any]], destination: DeviceArgument = None, buffer_size: int = _BUFFER_SIZE
) -> tuple[Any, ...]:
    """Add many arrays over several devices (``torch.cuda.comm.reduce_add_coalesced``).

    The arrays of each device are packed into buffers, and the buffers are added as :func:`reduce_add` adds arrays.

    Args:
        inputs: A sequence of arrays for each device. The arrays at the same place of all sequences have the same shape
            and dtype.
        destination: The device of the sums, which has one of the sequences; the current device if None.
        buffer_size: The most bytes of a buffer. A larger array has a buffer of its own.

    Returns:
        The sum of the arrays at each place. The sums may share memory. If there is only one sequence, its arrays.

    Raises:
        ValueError: The sequences have different lengths, arrays at the same place have different shapes, or
            ``destination`` is not a CUDA device.
        RuntimeError: Arrays at the same place have different dtypes, or no array is on ``destination``.
        AssertionError: An array is on the host.
        TypeError: ``inputs`` does not have sequences of arrays, or ``buffer_size`` is not an integer or is negative.

    Example:
        >>> arrays = [xp.arange(3), xp.ones(2)]
        >>> inputs = tcuda.comm.broadcast_coalesced(arrays, [0, 1])
        >>> tcuda.comm.reduce_add_coalesced(inputs, destination=0)
        (array([0, 2, 4]), array([2., 2.]))
    """
    made = backend.transfers().reduce_add_coalesced(inputs, destination, buffer_size, SMALL)
    if made is not None:
        return made
    root = destination_index(destination)
    _check_buffer_size("reduce_add_coalesced", buffer_size)
    what = "a sequence of arrays for each device"
    rows = [list(several(row, f"inputs[{number}]", what)) for number, row in enumerate(several(inputs, "inputs", what))]
    if not rows or not any(rows):
        return ()
    found = backend.transfers().alike(rows)
    if found is None or root not in found:
        columns = [checked_inputs(column, root) for column in zip(*rows, strict=True)]
        rows = [list(row) for row in zip(*columns, strict=True)]
        found = _made_contiguous(rows, root)
        if found is None:
            return tuple(total(column) for column in columns)
    else:
        own = len(found) - 1 - found[::-1].index(root)
        rows.insert(0, rows.pop(own))
        found.insert(0, found.pop(own))
    if len(rows) == 1:
        return tuple(rows[0])
    return tuple(_sums(rows, found, buffer_size))


def _made_contiguous(rows: list[list[Any]], root: int) -> list[int] | None:
    """Put copies in C order in the places of other arrays of ``rows``, and return the device of each row.

    The result is None if the arrays of a row are on several devices.
    """
    found = []
    for row in rows:
        index = row[0].data.device_id
        if any(array.data.device_id != index for array in row):
            return None
        found.append(index)
    for row, index in zip(rows, found, strict=True):
        join_captures(index, [root])
        row[:] = [contiguous(array) for array in row]
    return found


def _sums(rows: Sequence[Sequence[Any]], indices: Sequence[int], buffer_size: int) -> list[Any]:
    """Return the sums of the columns of ``rows``, whose arrays are in C order on the devices ``indices``."""
    sizes = _sizes(rows[0], indices[0])
    sums: list[Any] = [None] * len(sizes)
    for places in _groups_of_one_dtype(rows[0], sizes, buffer_size):
        group = [[row[place] for place in places] for row in rows]
        if len(places) == 1:
            sums[places[0]] = total([row[0] for row in group])
            continue
        dtype, flats = group[0][0].dtype, []
        for row, index in zip(group, indices, strict=True):
            join_captures(index, indices[:1])
            flat, offsets = packed(row, [sizes[place] for place in places], index)
            flats.append(flat.view(dtype))
        made = backend.transfers().views(total(flats).view("B"), group[0], offsets)
        for place, each in zip(places, made, strict=True):
            sums[place] = each
    return sums


def _full_groups(sizes: Sequence[int], buffer_size: int) -> Iterator[tuple[int, int]]:
    """Yield the beginning and the end of each group, which ends with the array that fills the buffer."""
    if sum(sizes) < buffer_size:  # the common case
        if sizes:
            yield 0, len(sizes)
        return
    begin = filled = 0
    for place, size in enumerate(sizes):
        filled += size
        if filled >= buffer_size:
            yield begin, place + 1
            begin, filled = place + 1, 0
    if begin < len(sizes):
        yield begin, len(sizes)


def _groups_of_one_dtype(arrays: Sequence[Any], sizes: Sequence[int], buffer_size: int) -> Iterator[list[int]]:
    """Yield the places of the arrays of each group, which ends before the array that would exceed the buffer."""
    open_groups: dict[Any, tuple[list[int], int]] = {}
    for place, (array, size) in enumerate(zip(arrays, sizes, strict=True)):
        group, filled = open_groups.get(array.dtype, ([], 0))
        if group and filled + size > buffer_size:
            yield group
            group, filled = [], 0
        group.append(place)
        open_groups[array.dtype] = group, filled + size
    for group, _ in open_groups.values():
        yield group


def _check_buffer_size(function: str, buffer_size: int) -> None:
    if not isinstance(buffer_size, int) or buffer_size < 0:
        got = buffer_size if isinstance(buffer_size, int) else a_kind(buffer_size)
        raise TypeError(f"{function}(): buffer_size must be a number of bytes from 0 on; got {got}.")
