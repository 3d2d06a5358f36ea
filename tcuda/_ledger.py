"""The ledger through which arrays get their memory: made at initialisation, and what it says when it cannot.

The ledger itself is in the core. Here it gets the driver of the runtime in use and the allocator that the settings
name.
"""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING, NoReturn

from tcuda import _core
from tcuda._alloc_conf import AllocConf, from_environment
from tcuda._errors import AcceleratorError, AllocatorSettingsError
from tcuda._lazy import _lazy_init, cuda
from tcuda._nvml import process_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    Observer = Callable[[int, int, int, int], object]

_NO_CACHING = ("TCUDA_NO_MEMORY_CACHING", "PYTORCH_NO_CUDA_MEMORY_CACHING")
"""Variables that turn the cache off, so that compute-sanitizer sees every array by itself."""

_ledger: _core.Ledger | None = None
_conf: AllocConf | None = None
_DEFAULT_BACKEND = "native"
_settled: str | None = None
"""The backend that the settings named when the ledger was made, from when on it stays."""
_limited_by_conf: set[int] = set()
"""The devices whose memory fraction is that of the settings: a fraction that the program has set itself is not."""
_chosen: tuple[str, _core.Source] | None = None
_observers: list[Observer] = []


def ledger() -> _core.Ledger:
    """Return the ledger of all devices; initialises tcuda if that was not done."""
    return _ledger or _initialized_ledger()


def _initialized_ledger() -> _core.Ledger:
    _lazy_init()
    if _ledger is None:  # a finalizer has come here in the middle of initialisation
        make_ledger()
    assert _ledger is not None
    return _ledger


def ledger_if_any() -> _core.Ledger | None:
    """Return the ledger, or None before tcuda is initialised."""
    return _ledger


def conf() -> AllocConf:
    """Return the settings in force.

    Raises:
        AllocatorSettingsError: An option in the environment variable is unknown, or has a value that it cannot have.
    """
    global _conf
    if _conf is None:
        _conf = from_environment(os.environ)
    return _conf


def change_conf(changed: AllocConf) -> None:
    """Go by other settings from now on; settings that name no backend leave the one in use.

    Raises:
        AllocatorSettingsError: They name another backend than the one in use.
    """
    global _conf
    if _settled is not None and changed.backend not in (None, _settled):
        raise AllocatorSettingsError(
            f"The backend is {_settled!r}, and cannot become {changed.backend!r} any more: it is settled when tcuda is "
            "initialised. Set TCUDA_ALLOC_CONF before that."
        )
    if _ledger is not None:
        _ledger.change_settings(changed.settings())
        _limit(_ledger, changed)
    _conf = changed


def set_memory_fraction(device: int, fraction: float) -> None:
    """Let the program decide how much of a device's memory may be held, until settings name a share."""
    ledger().set_memory_fraction(device, fraction)
    _limited_by_conf.discard(device)


def backend() -> str:
    """Return the name of the source that memory comes from."""
    return _chosen[0] if _chosen is not None else _settled or conf().backend or _DEFAULT_BACKEND


def choose(name: str, source: _core.Source) -> bool:
    """Take all memory from ``source``; return False if memory has already been taken from another source."""
    global _chosen
    # The choice is made known before the ledger is looked for, and the ledger before the choice: no choice gets lost.
    before, _chosen = _chosen, (name, source)
    if _ledger is not None and not _ledger.change_source(source):
        _chosen = before
        return False
    return True


def chosen_source() -> _core.Source | None:
    """Return the source that :func:`choose` was given, if any."""
    return _chosen[1] if _chosen is not None else None


def attach_observer(observer: Observer) -> None:
    """Call ``observer(device, size, total, free)`` at every lack of memory, before the error is raised."""
    _observers.append(observer)


def make_ledger() -> None:
    """Make the ledger, if there is none."""
    global _ledger, _settled
    if _ledger is not None:
        return
    made = _core.Ledger(cuda.memoryDriver(), cuda.getDeviceCount(), conf().settings(), _fail_memory, _fail_driver)
    source = chosen_source()
    named = conf().backend or _DEFAULT_BACKEND
    if source is None and named != _DEFAULT_BACKEND:
        source = cuda.memorySource(named, made)
    if source is not None:
        made.change_source(source)
    _limit(made, conf())
    made.caching = not any(os.environ.get(name) for name in _NO_CACHING)
    if _ledger is None:  # else a finalizer has made it meanwhile
        _ledger, _settled = made, named
        atexit.register(made.close)
    if _chosen is not None and _chosen[1] is not source:
        _ledger.change_source(_chosen[1])


def _limit(changed: _core.Ledger, by: AllocConf) -> None:
    """Let devices hold the share that the settings name or, where earlier ones did and these do not, all."""
    if by.memory_fraction is None:
        fraction, devices = 1.0, list(_limited_by_conf)
        _limited_by_conf.clear()
    else:
        fraction, devices = by.memory_fraction, list(range(cuda.getDeviceCount()))
        _limited_by_conf.update(devices)
    for device in devices:
        changed.set_memory_fraction(device, fraction)


def _after_fork_in_child() -> None:
    global _ledger, _settled
    if _ledger is not None:
        _ledger.abandon()
        _ledger = _settled = None


os.register_at_fork(after_in_child=_after_fork_in_child)


def _fail_driver(status: int, call: str) -> NoReturn:
    raise AcceleratorError(status, call)


def _fail_memory(
    device: int,
    requested: int,
    total: int,
    free: int,
    limit: int | None,
    allocated: int,
    reserved: int,
    largest_free: int,
) -> NoReturn:
    for observer in _observers:
        observer(device, requested, total, free)
    used = process_memory(device)
    unallocated = max(0, reserved - allocated)
    sentences = [
        f"CUDA out of memory. Tried to allocate {size_text(requested)}.",
        f"GPU {device} has a total capacity of {size_text(total)} of which {size_text(free)} is free.",
        f"This process has {size_text(used)} memory in use." if used is not None else "",
        f"{size_text(limit)} is the most that it may reserve, by set_per_process_memory_fraction()."
        if limit is not None
        else "",
        f"Of the reserved memory, {size_text(allocated)} is allocated, and {size_text(unallocated)} is reserved but "
        f"unallocated, the largest free block of it {size_text(largest_free)}.",
        cuda.moreMemory,
        _advice(requested, total, limit, free, unallocated),
    ]
    raise cuda.OutOfMemoryError(" ".join(filter(None, sentences)))


def _advice(requested: int, total: int, limit: int | None, free: int, unallocated: int) -> str:
    """Return what to try, by what stands in the way."""
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
        return "The device has room for it, but nothing gave it: close other programs, or allocate less."
    return "Drop arrays that are no longer needed; tcuda.memory_summary() and tcuda.memory_snapshot() tell of them."


def size_text(size: int) -> str:
    """Return ``size`` in bytes for people to read, with the units of torch's message."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.2f} {name}"
    return f"{size} bytes"
