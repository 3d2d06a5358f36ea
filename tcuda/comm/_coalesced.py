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
_ALL = 1 << 62
"""The number of bytes of a buffer that is never full."""


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
    if not others:
        return [list(_for_one_buffer(originals, 0, home, _ALL))]
    join_captures(home, others)
    results: list[list[Any]] = [[] for _ in others]
    while len(results[0]) < len(originals):
        copies = _copied(originals, len(results[0]), home, others, buffer_size)
        for made, each in zip(results, copies, strict=True):
            made += each
    return [originals, *results]


def _copied(
    originals: Sequence[Any], begin: int, home: int, others: Sequence[int], buffer_size: int
) -> list[list[Any]]:
    """Return copies for each of ``others`` of the arrays from ``begin`` on that one buffer takes.

    The device ``home`` may be among ``others``.
    """
    arrays, transfers, full = originals[begin:], backend.transfers(), min(buffer_size, _ALL)
    packed = transfers.pack(arrays, home, full)
    if packed is None:
        arrays = [contiguous(array) for array in _for_one_buffer(originals, begin, home, buffer_size)]
        if len(arrays) == 1:
            return [[each] for each in copies_on(arrays[0], others)]
        packed = transfers.pack(arrays, home, full)
        assert packed is not None
    flat, offsets = packed
    copies = iter(copies_on(flat, [index for index in others if index != home]))
    flats = [flat if index == home else next(copies) for index in others]
    return [transfers.views(each, arrays[: len(offsets)], offsets) for each in flats]


def _for_one_buffer(originals: Sequence[Any], begin: int, home: int, buffer_size: int) -> Sequence[Any]:
    """Return the arrays from ``begin`` on that one buffer takes, or refuse one that is not on the device ``home``."""
    filled = 0
    for number in range(begin, len(originals)):
        array = originals[number]
        if place_of(array, f"tensors[{number}]") != home:
            raise RuntimeError(f"All tensors must be on devices[0]: {home}")
        filled += _sizes([array])[0]
        if filled >= buffer_size:
            return originals[begin : number + 1]
    return originals[begin:]


def _sizes(arrays: Sequence[Any]) -> list[int]:
    """Return the bytes that each of ``arrays`` takes in a buffer."""
    return [(array.nbytes + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT for array in arrays]


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
    if len(rows) > 1 and _are_alike(rows):
        sums: list[Any] = [None] * len(rows[0])
        for places in _groups_of_one_dtype(rows[0], buffer_size):
            made = _sums([[row[place] for place in places] for row in rows], root)
            if made is None:
                break
            for place, each in zip(places, made, strict=True):
                sums[place] = each
        else:
            return tuple(sums)
    columns = [checked_inputs(column, root) for column in zip(*rows, strict=True)]
    return tuple([total(column) for column in columns])


def _are_alike(rows: Sequence[Sequence[Any]]) -> bool:
    """Return whether ``rows`` have arrays with the same shapes and dtypes."""
    kind = backend.transfers().array
    if not all(issubclass(each, kind) for row in rows for each in set(map(type, row))):
        return False
    first, *others = [[array.dtype for array in row] + [array.shape for array in row] for row in rows]
    return all(other == first for other in others)


def _sums(rows: Sequence[Sequence[Any]], root: int) -> list[Any] | None:
    """Return the sums of the columns of ``rows``, which have one dtype, on the device ``root``.

    The result is None if a row has arrays of several devices, or if no row has arrays of the device ``root``.
    """
    if len(rows[0]) == 1:
        column = checked_inputs([row[0] for row in rows], root)
        return [total([contiguous_for(array, [root]) for array in column])]
    own = [place for place, row in enumerate(rows) if row[0].data.device_id == root]
    if not own:
        return None
    flats = []
    for row in [rows[own[-1]], *rows[: own[-1]], *rows[own[-1] + 1 :]]:
        index = row[0].data.device_id
        join_captures(index, [root])
        packed = _packed(row, index)
        if packed is None:
            return None
        flat, offsets = packed
        flats.append(flat.view(row[0].dtype))
    return backend.transfers().views(total(flats).view("B"), rows[own[-1]], offsets)


def _packed(arrays: Sequence[Any], index: int) -> tuple[Any, list[int]] | None:
    """Return an array of bytes with the contents of ``arrays`` on the device ``index``, and the place of each.

    The result is None if an array is on another device.
    """
    pack = backend.transfers().pack
    made = pack(arrays, index, _ALL)
    if made is None and all(array.data.device_id == index for array in arrays):
        made = pack([contiguous(array) for array in arrays], index, _ALL)
    return made


def _groups_of_one_dtype(arrays: Sequence[Any], buffer_size: int) -> Iterator[Sequence[int]]:
    """Yield the places of the arrays of each group, which ends before the array that would exceed the buffer."""
    sizes, dtypes = _sizes(arrays), [array.dtype for array in arrays]
    if sum(sizes) <= buffer_size and dtypes.count(dtypes[0]) == len(dtypes):  # the common case
        yield range(len(arrays))
        return
    open_groups: dict[Any, tuple[list[int], int]] = {}
    for place, (dtype, size) in enumerate(zip(dtypes, sizes, strict=True)):
        group, filled = open_groups.get(dtype, ([], 0))
        if group and filled + size > buffer_size:
            yield group
            group, filled = [], 0
        group.append(place)
        open_groups[dtype] = group, filled + size
    for group, _ in open_groups.values():
        yield group


def _check_buffer_size(function: str, buffer_size: int) -> None:
    if not isinstance(buffer_size, int) or buffer_size < 0:
        got = buffer_size if isinstance(buffer_size, int) else a_kind(buffer_size)
        raise TypeError(f"{function}(): buffer_size must be a number of bytes from 0 on; got {got}.")
