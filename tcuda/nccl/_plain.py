"""Collectives with plain arguments, which are read in one pass.

Arguments are plain if :meth:`~tcuda._backend.transfers.Transfers.places` reads the arrays, no array is empty, the sizes
fit, the streams are the current streams, and the communicators are those of the devices. A function returns False, with
nothing done, if the arguments are not plain. :class:`~tcuda.nccl._plan.Plan` then does the work, or raises the error
that names the wrong argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._process.lazy import backend, is_initialized
from tcuda.nccl._communicators import clique
from tcuda.nccl._elements import OPS, moved, reduced

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tcuda._backend.nccl import AnyRanks, Nccl
    from tcuda._backend.transfers import Places


def all_reduce(inputs: Any, outputs: Any, op: Any) -> bool:
    """Reduce the arrays of all devices, and give every device the result."""
    if type(op) is not int or op not in OPS or (places := _places(inputs, outputs)) is None:
        return False
    devices, dtype, size, room, sources, targets = places
    if room != size or not size:
        return False
    kind, parts, number = reduced(dtype, op)
    library, ranks, lock = _ranks(devices, sources, targets)
    with lock:
        library.all_reduce(ranks, size * parts, kind, number)
    return True


def reduce(inputs: Any, output: Any, root: Any, op: Any) -> bool:
    """Reduce the arrays of all devices, and give one device the result."""
    if type(op) is not int or op not in OPS or (places := _places(inputs, None)) is None:
        return False
    devices, dtype, size, _, sources, targets = places
    if type(root) is not int or not 0 <= root < len(devices) or not size:
        return False
    if output is not None:
        written = _places((output,), None)
        if written is None or written[:3] != ((devices[root],), dtype, size):
            return False
        targets = (*sources[:root], *written[4], *sources[root + 1 :])  # only the target of the root is used
    kind, parts, number = reduced(dtype, op)
    library, ranks, lock = _ranks(devices, sources, targets)
    with lock:
        library.reduce(ranks, size * parts, kind, number, root)
    return True


def broadcast(inputs: Any, root: Any) -> bool:
    """Copy the array of one device into the arrays of all others."""
    places = _places(inputs, None)
    if places is None:
        return False
    devices, dtype, size, _, sources, targets = places
    if type(root) is not int or not 0 <= root < len(devices) or not size:
        return False
    kind, parts = moved(dtype)
    library, ranks, lock = _ranks(devices, sources, targets)
    with lock:
        library.broadcast(ranks, size * parts, kind, root)
    return True


def all_gather(inputs: Any, outputs: Any) -> bool:
    """Put the arrays of all devices one after the other, on every device."""
    places = _places(inputs, outputs)
    if places is None:
        return False
    devices, dtype, size, room, sources, targets = places
    if room != size * len(devices) or not size:
        return False
    kind, parts = moved(dtype)
    library, ranks, lock = _ranks(devices, sources, targets)
    with lock:
        library.all_gather(ranks, size * parts, kind)
    return True


def reduce_scatter(inputs: Any, outputs: Any, op: Any) -> bool:
    """Reduce the arrays of all devices, and give each device a part of the result."""
    if type(op) is not int or op not in OPS or (places := _places(inputs, outputs)) is None:
        return False
    devices, dtype, size, room, sources, targets = places
    if room * len(devices) != size or not size:
        return False
    kind, parts, number = reduced(dtype, op)
    library, ranks, lock = _ranks(devices, sources, targets)
    with lock:
        library.reduce_scatter(ranks, room * parts, kind, number)
    return True


def _places(inputs: Any, outputs: Any) -> Places | None:
    # A wrong argument is refused without a device, so the arrays are no reason to initialise tcuda.
    return backend.transfers().places(inputs, outputs) if is_initialized() else None


def _ranks(
    devices: tuple[int, ...], sources: tuple[int, ...], targets: tuple[int, ...]
) -> tuple[Nccl, AnyRanks, AbstractContextManager[object]]:
    """Return the library, the ranks on the current stream of each device, and the lock of their communicators."""
    library, current_stream = backend.nccl(), backend.current_stream
    handles, lock = clique(library, devices)
    streams = tuple([current_stream(device).ptr for device in devices])  # a list is faster than a generator
    return library, (handles, devices, streams, sources, targets), lock
