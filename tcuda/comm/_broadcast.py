"""Copies of one array on several devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._base.arguments import several
from tcuda._process.lazy import backend
from tcuda.comm._arguments import (
    HOST,
    arrays_text,
    device_indices,
    host,
    place_of,
    place_of_output,
    require_existing,
    shape_text,
)
from tcuda.comm._copies import contiguous_for, copies_on, copy, empty_like
from tcuda.comm._routes import route

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
        return _replicas(tensor, device_indices(devices))
    if devices is not None or out is None:
        raise RuntimeError(
            "Exactly one of 'devices' and 'out' must be specified, but got "
            f"devices={devices} and out={None if out is None else arrays_text(out)}"
        )
    targets = list(several(out, "out", "a sequence of arrays"))
    _check_out(tensor, targets)
    _copy_to_all(tensor, targets)
    return targets


def _replicas(tensor: Any, indices: Sequence[int]) -> list[Any]:
    """Return an array with the elements of ``tensor`` for each device: ``tensor`` itself for its own device."""
    home = place_of(tensor, "tensor")
    for index in indices:
        require_existing(index)
    others = [index for index in indices if index != home]
    if not others:
        return [tensor] * len(indices)
    if home == HOST:
        copies = [empty_like(tensor, index) for index in others]
        for each in copies:
            host().upload(each, tensor)
    else:
        copies = copies_on(contiguous_for(tensor, others), others)
    new = iter(copies)
    return [tensor if index == home else next(new) for index in indices]


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
    """Copy ``tensor`` to ``targets``: by a route to dense arrays of other devices, one by one to the other arrays."""
    home = place_of(tensor, "tensor")
    if home == HOST:
        for target in targets:
            host().upload(target, tensor)
        return
    away = [each for each in targets if each.data.device_id != home and each.flags.c_contiguous]
    if away and tensor.size:
        source = contiguous_for(tensor, [each.data.device_id for each in away])
        backend.transfers().relay([source, *away], route(len(away) + 1, source.nbytes))
    for target in targets:
        if target.data.device_id == home or not target.flags.c_contiguous:
            copy([target], [tensor])
