"""Collectives with plain arguments, which are read in one pass.

Arguments are plain if :meth:`~tcuda._backend.transfers.Transfers.places` reads the arrays, the sizes fit, the streams
are the current streams, and the communicators are those of the devices. A function returns False, with nothing done, if
the arguments are not plain. :class:`~tcuda.nccl._plan.Plan` then does the work, or raises the error that names the
wrong argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._process.lazy import backend, is_initialized
from tcuda.nccl._communicators import clique
from tcuda.nccl._elements import OPS, moved, reduced

if TYPE_CHECKING:
    from tcuda._backend.transfers import Places


def all_reduce(inputs: Any, outputs: Any, op: Any) -> bool:
    """Reduce the arrays of all devices, and give every device the result."""
    if type(op) is not int or op not in OPS or (places := _places(inputs, outputs)) is None:
        return False
    devices, dtype, size, room, sources, targets = places
    if room != size:
        return False
    kind, parts, number = reduced(dtype, op)
    _run("all_reduce", devices, sources, targets, size * parts, kind, number)
    return True


def reduce(inputs: Any, output: Any, root: Any, op: Any) -> bool:
    """Reduce the arrays of all devices, and give one device the result."""
    if type(op) is not int or op not in OPS or (places := _places(inputs, None)) is None:
        return False
    devices, dtype, size, _, sources, _ = places
    if type(root) is not int or not 0 <= root < len(devices):
        return False
    target = sources[root]
    if output is not None:
        written = _places((output,), None)
        if written is None or written[:3] != ((devices[root],), dtype, size):
            return False
        [target] = written[4]
    kind, parts, number = reduced(dtype, op)
    targets = tuple([target if place == root else 0 for place in range(len(devices))])
    _run("reduce", devices, sources, targets, size * parts, kind, number, root)
    return True


def broadcast(inputs: Any, root: Any) -> bool:
    """Copy the array of one device into the arrays of all others."""
    places = _places(inputs, None)
    if places is None or type(root) is not int or not 0 <= root < len(places[0]):
        return False
    devices, dtype, size, _, sources, targets = places
    kind, parts = moved(dtype)
    _run("broadcast", devices, sources, targets, size * parts, kind, root)
    return True


def all_gather(inputs: Any, outputs: Any) -> bool:
    """Put the arrays of all devices one after the other, on every device."""
    places = _places(inputs, outputs)
    if places is None:
        return False
    devices, dtype, size, room, sources, targets = places
    if room != size * len(devices):
        return False
    kind, parts = moved(dtype)
    _run("all_gather", devices, sources, targets, size * parts, kind)
    return True


def reduce_scatter(inputs: Any, outputs: Any, op: Any) -> bool:
    """Reduce the arrays of all devices, and give each device a part of the result."""
    if type(op) is not int or op not in OPS or (places := _places(inputs, outputs)) is None:
        return False
    devices, dtype, size, room, sources, targets = places
    if room * len(devices) != size:
        return False
    kind, parts, number = reduced(dtype, op)
    _run("reduce_scatter", devices, sources, targets, room * parts, kind, number)
    return True


def _places(inputs: Any, outputs: Any) -> Places | None:
    # A wrong argument is refused without a device, so the arrays are no reason to initialise tcuda.
    return backend.transfers().places(inputs, outputs) if is_initialized() else None


def _run(
    collective: str,
    devices: tuple[int, ...],
    sources: tuple[int, ...],
    targets: tuple[int, ...],
    count: int,
    *arguments: int,
) -> None:
    """Call ``collective`` of the library with the current stream of each device."""
    library, current_stream = backend.nccl(), backend.current_stream
    handles, lock = clique(library, devices)
    if count:
        streams = tuple([current_stream(device).ptr for device in devices])  # a list is faster than a generator
        with lock:
            getattr(library, collective)((handles, devices, streams, sources, targets), count, *arguments)
