"""Copies and sums of many small arrays: the arrays are packed, so that few transfers have many bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._base.arguments import a_kind, several
from tcuda._process.lazy import backend
from tcuda.comm._arguments import device_index, device_indices, place_of, require_existing
from tcuda.comm._copies import contiguous, contiguous_for, copies_on
from tcuda.comm._order import join_captures
from tcuda.comm._reduce import checked_inputs, total

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tcuda._process.devices import DeviceArgument

_BUFFER_SIZE = 10485760
_ALIGNMENT = 16
"""The places of packed arrays are multiples of this number of bytes."""


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
    indices = device_indices(devices)
    originals = list(several(tensors, "tensors", "a sequence of arrays"))
    _check_buffer_size("broadcast_coalesced", buffer_size)
    if not indices:
        raise RuntimeError("Expected at least one device to broadcast to")
    for index in indices:
        require_existing(index)
    home, others = indices[0], indices[1:]
    kind = backend.transfers().array
    for number, array in enumerate(originals):
        if not isinstance(array, kind) or array.data.device_id != home:
            place_of(array, f"tensors[{number}]")
            raise RuntimeError(f"All tensors must be on devices[0]: {home}")
    if not others:
        return [originals]
    join_captures(home, others)
    results: list[list[Any]] = [[] for _ in others]
    for begin, end in _full_groups(originals, buffer_size):
        for made, copies in zip(results, _copied(originals[begin:end], home, others), strict=True):
            made += copies
    return [originals, *results]


def _sizes(arrays: Sequence[Any]) -> list[int]:
    """Return the bytes that each of ``arrays`` takes in a buffer."""
    return [(array.nbytes + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT for array in arrays]


def _copied(arrays: Sequence[Any], home: int, others: Sequence[int]) -> list[list[Any]]:
    """Return copies of ``arrays`` for each of ``others``, by one buffer; ``home`` may be among ``others``."""
    if len(arrays) == 1 and home not in others:
        return [[each] for each in copies_on(contiguous(arrays[0]), others)]
    flat, offsets = _packed(arrays, home)
    copies = iter(copies_on(flat, [index for index in others if index != home]))
    flats = [flat if index == home else next(copies) for index in others]
    return [backend.transfers().views(each, arrays, offsets) for each in flats]


def _packed(arrays: Sequence[Any], index: int) -> tuple[Any, list[int]]:
    """Return an array of bytes with the contents of ``arrays`` of the device ``index``, and the place of each."""
    pack = backend.transfers().pack
    made = pack(arrays, index) or pack([contiguous(array) for array in arrays], index)
    assert made is not None
    return made


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
    root = device_index(destination, optional=True)
    _check_buffer_size("reduce_add_coalesced", buffer_size)
    what = "a sequence of arrays for each device"
    rows = [list(several(row, f"inputs[{number}]", what)) for number, row in enumerate(several(inputs, "inputs", what))]
    if not rows or not any(rows):
        return ()
    columns = [checked_inputs(column, root) for column in zip(*rows, strict=True)]
    indices = _devices(columns[0])
    if len(indices) == 1 or any(_devices(column) != indices for column in columns):
        return tuple(total(column) for column in columns)
    sums: list[Any] = [None] * len(columns)
    for places in _groups_of_one_dtype(columns, buffer_size):
        made = _sums([columns[place] for place in places], indices)
        for place, each in zip(places, made, strict=True):
            sums[place] = each
    return tuple(sums)


def _devices(arrays: Sequence[Any]) -> list[int]:
    return [array.data.device_id for array in arrays]


def _sums(columns: Sequence[Sequence[Any]], indices: Sequence[int]) -> list[Any]:
    """Return the sums of ``columns`` of one dtype, whose arrays are on the devices ``indices``."""
    if len(columns) == 1:
        return [total([contiguous_for(array, indices[:1]) for array in columns[0]])]
    flats = []
    for index, row in zip(indices, zip(*columns, strict=True), strict=True):
        join_captures(index, indices[:1])
        flat, offsets = _packed(row, index)
        flats.append(flat.view(row[0].dtype))
    return backend.transfers().views(total(flats).view("B"), [column[0] for column in columns], offsets)


def _full_groups(arrays: Sequence[Any], buffer_size: int) -> Iterator[tuple[int, int]]:
    """Yield the beginning and the end of each group, which ends with the array that fills the buffer."""
    if sum([array.nbytes + _ALIGNMENT for array in arrays]) < buffer_size:  # the common case
        if arrays:
            yield 0, len(arrays)
        return
    sizes = _sizes(arrays)
    begin = filled = 0
    for place, size in enumerate(sizes):
        filled += size
        if filled >= buffer_size:
            yield begin, place + 1
            begin, filled = place + 1, 0
    if begin < len(sizes):
        yield begin, len(sizes)


def _groups_of_one_dtype(columns: Sequence[Sequence[Any]], buffer_size: int) -> Iterator[list[int]]:
    """Yield the places of the columns of each group, which ends before the column that would exceed the buffer."""
    arrays = [column[0] for column in columns]
    open_groups: dict[Any, tuple[list[int], int]] = {}
    for place, (array, size) in enumerate(zip(arrays, _sizes(arrays), strict=True)):
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
