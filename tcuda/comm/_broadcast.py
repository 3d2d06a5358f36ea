"""Copies of one array on several devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._base.arguments import several
from tcuda._process.device_rules import device_count
from tcuda._process.lazy import backend
from tcuda.comm._arrays import HOST, arrays_text, contiguous, place_of, place_of_output, shape_text
from tcuda.comm._copies import copy
from tcuda.comm._devices import device_indices, require_existing
from tcuda.comm._order import join_captures
from tcuda.comm._routes import SMALL, route

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcuda._process.devices import DeviceArgument

SAME_DTYPE = "all inputs and outputs must be of the same Tensor dtype"
"""torch's words for arrays of two dtypes."""


def broadcast(
    tensor: Any, devices: Iterable[DeviceArgument] | None = None, *, out: Sequence[Any] | None = None
) -> list[Any]:
    """Copy an array to several devices (``torch.cuda.comm.broadcast``).

    Args:
        tensor: An array of a device, or a NumPy array.
        devices: The devices.
        out: Arrays of devices, in place of ``devices``, to which ``tensor`` is copied.

    Returns:
        An array for each device, in the order of ``devices``: ``tensor`` itself for its own device, and new arrays in
        C order for the others. With ``out``, the arrays of ``out``.

    Raises:
        RuntimeError: Neither or both of ``devices`` and ``out`` are given, or an array of ``out`` has another shape or
            dtype than ``tensor``, or an index of a device is negative.
        TypeError: ``tensor`` or an element of ``out`` is not an array, or ``devices`` or ``out`` is not iterable.
        ValueError: One of ``devices`` is not a CUDA device.
        AcceleratorError: One of ``devices`` does not exist.

    Example:
        >>> x = xp.arange(3)
        >>> first, second = tcuda.comm.broadcast(x, [0, 1])
        >>> first is x, second.device.id
        (True, 1)
    """
    if devices is not None and out is None:
        made = backend.transfers().broadcast(tensor, devices, SMALL)
        if made is not None:
            return made
        return replicas(tensor, device_indices(devices))
    if devices is not None or out is None:
        raise RuntimeError(
            "Exactly one of 'devices' and 'out' must be specified, but got "
            f"devices={devices} and out={None if out is None else arrays_text(out)}"
        )
    targets = list(several(out, "out", "a sequence of arrays"))
    _check_out(tensor, targets)
    _copy_to_all(tensor, targets)
    return targets


def replicas(tensor: Any, indices: Sequence[int]) -> list[Any]:
    """Return an array with the elements of ``tensor`` for each device: ``tensor`` itself for its own device."""
    transfers = backend.transfers()
    home = tensor.data.device_id if isinstance(tensor, transfers.array) else place_of(tensor, "tensor")
    count, others = device_count(), []
    for index in indices:
        if not 0 <= index < count:
            require_existing(index)
        if index != home:
            others.append(index)
    if not others:
        return [tensor] * len(indices)
    if home == HOST:
        return _uploaded(tensor, others)
    copies = copies_on(tensor if tensor.flags.c_contiguous else contiguous_for(tensor, others), others)
    if len(others) == len(indices):
        return copies
    new = iter(copies)
    return [tensor if index == home else next(new) for index in indices]


def contiguous_for(array: Any, others: Sequence[int]) -> Any:
    """Return ``array`` in C order, for copies to the devices ``others``."""
    if array.flags.c_contiguous:
        return array
    join_captures(array.data.device_id, others)
    return contiguous(array)


def copies_on(source: Any, indices: Sequence[int]) -> list[Any]:
    """Return a copy of ``source``, which is in C order, for each of other devices, copied by the fastest route."""
    transfers = backend.transfers()
    if len(indices) <= 1 or source.nbytes < SMALL:
        return transfers.send(source, indices)
    hops = route(len(indices) + 1, source.nbytes)
    if hops[-1].source == 0:  # flat
        return transfers.send(source, indices)
    targets = [transfers.empty(source.shape, source.dtype, index) for index in indices]
    transfers.relay([source, *targets], hops)
    return targets


def _uploaded(source: Any, indices: Sequence[int]) -> list[Any]:
    from tcuda.comm._host import upload  # here, because `import tcuda` imports no NumPy

    transfers, dtype = backend.transfers(), source.dtype.newbyteorder("=")
    targets = [transfers.empty(source.shape, dtype, index) for index in indices]
    for target in targets:
        upload(target, source)
    return targets


def _check_out(tensor: Any, targets: Sequence[Any]) -> None:
    place_of(tensor, "tensor")
    for number, target in enumerate(targets):
        place_of_output(target, number)
        if target.shape != tensor.shape:
            raise RuntimeError(
                f"Expected all output tensors to have same shape as the source tensor {shape_text(tensor.shape)}, but "
                f"output tensor at index {number} has shape {shape_text(target.shape)}"
            )
        if target.dtype != tensor.dtype:
            raise RuntimeError(
                f"{SAME_DTYPE}; the source is {tensor.dtype}, and the output at index {number} is {target.dtype}"
            )


def _copy_to_all(tensor: Any, targets: Sequence[Any]) -> None:
    """Copy ``tensor`` to ``targets``: by a route to plain arrays of other devices, one by one to the other arrays."""
    home = place_of(tensor, "tensor")
    if home == HOST:
        from tcuda.comm._host import upload

        for target in targets:
            upload(target, tensor)
        return
    away = [each for each in targets if each.data.device_id != home and each.flags.c_contiguous]
    if away and tensor.size:
        source = contiguous_for(tensor, [each.data.device_id for each in away])
        backend.transfers().relay([source, *away], route(len(away) + 1, source.nbytes))
    for target in targets:
        if target.data.device_id == home or not target.flags.c_contiguous:
            copy(target, tensor)
