"""Collectives with plain arguments, which are read in one pass.

Arguments are plain if :meth:`~tcuda._backend.transfers.Transfers.places` reads the arrays, no array is empty, the sizes
fit, the streams are the current streams, and the communicators are those that an earlier call for the devices has made.
A function returns False, with nothing done, if the arguments are not plain. :class:`~tcuda.nccl._plan.Plan` then does
the work, or raises the error that names the wrong argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._process.lazy import backend
from tcuda.nccl._communicators import cliques
from tcuda.nccl._elements import OPS, moved, reduced

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tcuda._backend.nccl import AnyRanks


def all_reduce(inputs: Any, outputs: Any, op: Any) -> bool:
    """Reduce the arrays of all devices, and give every device the result."""
    if type(op) is not int or op not in OPS or (plain := _plain(inputs, outputs)) is None:
        return False
    dtype, size, room, ranks, lock = plain
    if room != size:
        return False
    kind, parts, number = reduced(dtype, op)
    with lock:
        backend.nccl().all_reduce(ranks, size * parts, kind, number)
    return True


def reduce(inputs: Any, output: Any, root: Any, op: Any) -> bool:
    """Reduce the arrays of all devices, and give one device the result."""
    if type(op) is not int or op not in OPS or (plain := _plain(inputs, None)) is None:
        return False
    dtype, size, _, ranks, lock = plain
    if type(root) is not int or not 0 <= root < len(ranks[0]):
        return False
    if output is not None:
        written = backend.transfers().places((output,), None)
        members, devices, streams, sources, _ = ranks
        if written is None or written[:3] != ((devices[root],), dtype, size):
            return False
        targets = *sources[:root], *written[4], *sources[root + 1 :]  # only the target of the root is used
        ranks = members, devices, streams, sources, targets
    kind, parts, number = reduced(dtype, op)
    with lock:
        backend.nccl().reduce(ranks, size * parts, kind, number, root)
    return True


def broadcast(inputs: Any, root: Any) -> bool:
    """Copy the array of one device into the arrays of all others."""
    plain = _plain(inputs, None)
    if plain is None:
        return False
    dtype, size, _, ranks, lock = plain
    if type(root) is not int or not 0 <= root < len(ranks[0]):
        return False
    kind, parts = moved(dtype)
    with lock:
        backend.nccl().broadcast(ranks, size * parts, kind, root)
    return True


def all_gather(inputs: Any, outputs: Any) -> bool:
    """Put the arrays of all devices one after the other, on every device."""
    plain = _plain(inputs, outputs)
    if plain is None:
        return False
    dtype, size, room, ranks, lock = plain
    if room != size * len(ranks[0]):
        return False
    kind, parts = moved(dtype)
    with lock:
        backend.nccl().all_gather(ranks, size * parts, kind)
    return True


def reduce_scatter(inputs: Any, outputs: Any, op: Any) -> bool:
    """Reduce the arrays of all devices, and give each device a part of the result."""
    if type(op) is not int or op not in OPS or (plain := _plain(inputs, outputs)) is None:
        return False
    dtype, size, room, ranks, lock = plain
    if room * len(ranks[0]) != size:
        return False
    kind, parts, number = reduced(dtype, op)
    with lock:
        backend.nccl().reduce_scatter(ranks, room * parts, kind, number)
    return True


def _plain(inputs: Any, outputs: Any) -> tuple[Any, int, int, AnyRanks, AbstractContextManager[object]] | None:
    """Return the dtype, the elements of an input and of an output, the ranks, and the lock of their communicators."""
    if not cliques:  # tcuda may not be initialised, and wrong arguments are refused without a device
        return None
    places = backend.transfers().places(inputs, outputs)
    if places is None:
        return None
    devices, dtype, size, target_size, sources, targets = places
    known = cliques.get(devices)
    if known is None or not size:
        return None
    current_stream = backend.current_stream
    streams = tuple([current_stream(device).ptr for device in devices])  # a list is faster than a generator
    return dtype, size, target_size, (known[0], devices, streams, sources, targets), known[1]
