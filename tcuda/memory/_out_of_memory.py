"""The text of the error for lack of memory, and the observers that are called before the error is raised."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from tcuda._device._nvml import process_memory
from tcuda._process.lazy import backend
from tcuda.memory._relief import why_nobody_was_called

if TYPE_CHECKING:
    from collections.abc import Callable

    Observer = Callable[[int, int, int, int], object]

_observers: list[Observer] = []


def attach_observer(observer: Observer) -> None:
    """Call ``observer(device, size, total, free)`` whenever memory runs out, before the error is raised."""
    _observers.append(observer)


def raise_out_of_memory(
    device: int,
    requested: int,
    total: int,
    free: int,
    limit: int | None,
    allocated: int,
    reserved: int,
    largest_free: int,
    rejected: bool,
) -> NoReturn:
    """Raise :class:`tcuda.OutOfMemoryError` with the figures of the core. All sizes are in bytes.

    Args:
        device: The index of the device.
        requested: The size of the allocation.
        total: The total memory of the device.
        free: The free memory of the device.
        limit: The memory that the process may reserve; None if the process may reserve all memory.
        allocated: The memory of arrays and buffers.
        reserved: The memory that the allocator holds.
        largest_free: The size of the largest free block in the reserved memory.
        rejected: Whether the allocation was refused without a call of the driver, by ``throw_on_cudamalloc_oom``. As in
            torch, no observer is called then.
    """
    if not rejected:
        for observer in _observers:
            observer(device, requested, total, free)
    used = process_memory(device)
    unallocated = max(0, reserved - allocated)
    sentences = [
        "CUDA out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction "
        f"limit. Requested size: {size_text(requested)}."
        if rejected
        else f"CUDA out of memory. {tried_to_allocate(requested)}.",
        f"GPU {device} has a total capacity of {size_text(total)} of which {size_text(free)} is free.",
        f"This process has {size_text(used)} memory in use." if used is not None else "",
        f"This process may reserve at most {size_text(limit)}, as set by set_per_process_memory_fraction()."
        if limit is not None
        else "",
        f"Arrays and buffers use {size_text(allocated)} of the reserved memory, and {size_text(unallocated)} is "
        f"reserved but unallocated. The largest free block has {size_text(largest_free)}.",
        backend.memory_hint,
        "" if rejected else why_nobody_was_called(device),
        _advice(requested, total, limit, free, unallocated),
    ]
    raise backend.OutOfMemoryError(" ".join(filter(None, sentences)))


def _advice(requested: int, total: int, limit: int | None, free: int, unallocated: int) -> str:
    """Return the advice for the most likely cause of the error."""
    if requested > total:
        return "No device of this kind has that much: allocate less at a time."
    if limit is not None and requested <= free:
        return "Raise the limit, or drop arrays that are no longer needed."
    if unallocated >= requested:
        return (
            "Much is reserved but unallocated, so the memory is fragmented: call tcuda.empty_cache(), or set "
            "TCUDA_ALLOC_CONF=expandable_segments:True if it is off."
        )
    if free >= requested:
        return "The device has enough free memory, but refused to give it: close other programs, or allocate less."
    return "Drop arrays that are no longer needed; tcuda.memory_summary() and tcuda.memory_snapshot() show the memory."


def tried_to_allocate(size: int) -> str:
    """Return the start of the message for ``size`` bytes, in the words of torch, which programs look for."""
    if size < 1 << 60:
        return f"Tried to allocate {size_text(size)}"
    return f"Tried to allocate more than 1EB memory, {size_text(size)}"


def size_text(size: int) -> str:
    """Return ``size`` in bytes for people to read, with the units of torch's message."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.2f} {name}"
    return f"{size} bytes"
