"""Sums of arrays of several devices.

Every sum adds the arrays in the same order, for any size and route: the array of the destination, plus the sum of the
others, from the last to the first. So the bits of a sum depend only on the arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._base.arguments import several
from tcuda._device import device
from tcuda._process.lazy import backend
from tcuda.comm._arguments import device_index, place_of
from tcuda.comm._broadcast import SAME_DTYPE
from tcuda.comm._copies import axes_in_memory, contiguous_for, copies_on, inverse
from tcuda.comm._order import join_captures
from tcuda.comm._routes import best_sum, cuts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcuda._process.devices import DeviceArgument


def reduce_add(inputs: Iterable[Any], destination: DeviceArgument = None) -> Any:
    """Add arrays of several devices (``torch.cuda.comm.reduce_add``).

    The sum is ``d + (a + (b + ...))``, where ``d`` is the last array on ``destination``, and ``a``, ``b`` and so on are
    the other arrays in their order.

    Args:
        inputs: Arrays of devices, with the same shape and dtype.
        destination: The device of the sum, which has one of the arrays; the current device if None.

    Returns:
        A new array on ``destination``, whose axes have the same order in memory as those of ``d``; ``inputs[0]`` itself
        if there is only one array.

    Raises:
        IndexError: ``inputs`` is empty.
        AssertionError: An array is on the host.
        ValueError: The shapes differ, or ``destination`` is not a CUDA device.
        RuntimeError: The dtypes differ, or no array is on ``destination``.
        TypeError: ``inputs`` is not iterable, or an element is not an array.

    Example:
        >>> inputs = tcuda.comm.broadcast(xp.arange(3), [0, 1])
        >>> tcuda.comm.reduce_add(inputs, destination=0)
        array([0, 2, 4])
    """
    root = device_index(destination, optional=True)
    return total(checked_inputs(list(several(inputs, "inputs", "a sequence of arrays")), root))


def checked_inputs(inputs: Sequence[Any], root: int) -> Sequence[Any]:
    """Return ``inputs`` with the last array of the device ``root`` first.

    Raises:
        IndexError: ``inputs`` is empty.
        AssertionError: An array is on the host.
        ValueError: The shapes differ.
        RuntimeError: The dtypes differ, or no array is on the device ``root``.
        TypeError: An element of ``inputs`` is not an array.
    """
    if not inputs:
        raise IndexError("list index out of range: reduce_add expects at least one input")
    kind = backend.transfers().array
    own, shape, dtype = -1, None, None
    for number, array in enumerate(inputs):
        if not isinstance(array, kind):
            place_of(array, f"inputs[{number}]")
            raise AssertionError(f"reduce_add expects all inputs to be on GPUs, but input {number} is on CPU")
        if array.data.device_id == root:
            own = number
        if shape is None:
            shape, dtype = array.shape, array.dtype
        elif array.shape != shape:
            got, expected = ("x".join(map(str, each)) for each in (array.shape, shape))
            raise ValueError(f"input {number} has invalid size: got {got}, but expected {expected}")
    if own < 0:
        raise RuntimeError(
            "reduce_add expects destination to be on the same GPU with one of the tensors; there is none on "
            f"cuda:{root}"
        )
    if any(array.dtype != dtype for array in inputs):
        dtypes = sorted({str(array.dtype) for array in inputs})
        raise RuntimeError(f"{SAME_DTYPE}; got {', '.join(dtypes)}")
    return inputs if own == 0 else [inputs[own], *inputs[:own], *inputs[own + 1 :]]


def total(inputs: Sequence[Any]) -> Any:
    """Return the sum of ``inputs`` on the device of the first; the array itself if there is only one."""
    first = inputs[0]
    if len(inputs) == 1:
        return first
    axes = None if first.flags.c_contiguous else axes_in_memory(first)
    if axes is not None:
        return total([array.transpose(axes) for array in inputs]).transpose(inverse(axes))
    transfers, root = backend.transfers(), first.data.device_id
    out = transfers.empty(first.shape, first.dtype, root)
    if not out.size:
        return out
    arrays = [contiguous_for(array, [root]) for array in inputs]
    way = best_sum(len(arrays), out.nbytes)
    if way.kind == "flat":
        _add(out, arrays)
    else:
        _add_in_chain(out, arrays, way.pieces)
    return out


def _add_in_chain(out: Any, arrays: Sequence[Any], pieces: int) -> None:
    """Set ``out`` to the sum of ``arrays``: each device adds its array to the sum that it reads from the next device.

    The devices work on different pieces at the same time.
    """
    transfers = backend.transfers()
    for array in arrays[1:-1]:
        join_captures(array.data.device_id, [out.data.device_id])
    sums = [out, *(transfers.empty(out.shape, out.dtype, array.data.device_id) for array in arrays[1:-1]), arrays[-1]]
    sums, arrays = ([array.reshape(-1) for array in each] for each in (sums, arrays))
    for begin, end in cuts(out.size, pieces):
        part = slice(begin, end)
        for place in reversed(range(len(sums) - 1)):
            terms = arrays[place][part], sums[place + 1][part]
            _add(sums[place][part], terms, release=end == out.size)


def _add(out: Any, inputs: Sequence[Any], *, release: bool = True) -> None:
    """Set ``out`` to the sum: by a kernel that reads the inputs where they are, or else by copies of the inputs."""
    transfers = backend.transfers()
    if transfers.add(out, inputs, release=release):
        return
    here = out.data.device_id
    with device(here):
        local = [each if each.data.device_id == here else copies_on(each, [here])[0] for each in inputs]
        total = local.pop()
        while local:
            transfers.xp.add(local.pop(), total, out=out)
            total = out
