"""Pools that sleep: the arrays keep their addresses, and the device gets the memory back."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NoReturn

from tcuda._base.arguments import a_kind
from tcuda._base.errors import AcceleratorError, add_sentence
from tcuda._base.messages import in_one_line
from tcuda._process.asleep import COMMON_POOL, note
from tcuda._process.device_rules import OF_MEMORY, resolve
from tcuda._process.fork import call_in_child
from tcuda._process.ipc import shared_addresses
from tcuda._process.lazy import backend
from tcuda._process.ledger import ledger, source_name
from tcuda.memory._out_of_memory import size_text
from tcuda.memory._relief import relieve

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcuda._process.devices import DeviceArgument

PoolId = tuple[int, int]

_lock = threading.RLock()
"""The lock of all sleeps and wakes: a second call waits, and then finds nothing to do."""


def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


call_in_child(_renew_lock)


def sleep(device: DeviceArgument = None, keep: bool = True) -> None:
    """Give the memory of the default pool back to ``device``; the arrays keep their addresses.

    The call waits for the work of all devices, copies the contents of the arrays to page-locked memory, and gives the
    memory of the device back. After :func:`wake`, the arrays have the same bytes at the same addresses: arrays, views,
    captured graphs and tensors of torch are valid again. Between the calls, other programs can use the memory.

    The default pool has all arrays that are in no :class:`tcuda.MemPool`, and the memory of captured graphs. Until
    :func:`wake`, allocations from the pool raise an error, and nothing may use its arrays. A call for a pool that is
    asleep does nothing.

    Args:
        device: The device; the current device if None.
        keep: Whether to keep the contents. If False, the bytes of the arrays are undefined after :func:`wake`.

    Raises:
        AcceleratorError: The driver has no page-locked memory for the contents, or refuses a call.
        RuntimeError: ``device`` does not exist, a graph is being captured, another process may use memory of the pool,
            or the memory was not taken as expandable segments of the native allocator. Nothing has changed.
        TypeError: ``keep`` is not True or False.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> x = xp.arange(5)
        >>> tcuda.memory.sleep()
        >>> tcuda.memory.is_asleep()
        True
        >>> tcuda.memory.wake()
        >>> x
        array([0, 1, 2, 3, 4])
    """
    index, kept = resolve(device, OF_MEMORY), checked_keep(keep)
    put_to_sleep([index], COMMON_POOL, kept, "tcuda.memory.sleep()")


def wake(device: DeviceArgument = None) -> None:
    """Give the default pool of ``device`` memory again, with the contents that :func:`sleep` has kept.

    If the device lacks memory, the free memory of other pools goes back first, and the callbacks of
    :class:`on_out_of_memory` are asked for room. The page-locked memory of the contents goes back to the system. A call
    for a pool that is awake does nothing.

    Args:
        device: The device; the current device if None.

    Raises:
        AcceleratorError: The driver refuses a call. The pool is still asleep, with all contents.
        OutOfMemoryError: The device has too little memory. The pool is still asleep, with all contents, and the message
            says how much is missing.
        RuntimeError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> tcuda.memory.sleep()
        >>> tcuda.memory.wake()
        >>> tcuda.memory.is_asleep()
        False
    """
    wake_up([resolve(device, OF_MEMORY)], COMMON_POOL, "tcuda.memory.wake()")


def is_asleep(device: DeviceArgument = None) -> bool:
    """Return whether the default pool of ``device`` is asleep: see :func:`sleep`.

    Args:
        device: The device; the current device if None.

    Raises:
        RuntimeError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> tcuda.memory.is_asleep()
        False
    """
    return ledger().is_asleep(resolve(device, OF_MEMORY), COMMON_POOL)


def checked_keep(keep: bool) -> bool:
    """Return ``keep``; a number is refused, because a device in its place would drop all contents.

    Raises:
        TypeError: ``keep`` is not True or False.
    """
    if keep is not True and keep is not False:
        raise TypeError(f"keep must be True or False; got {a_kind(keep)}.")
    return keep


def put_to_sleep(devices: Iterable[int], pool: PoolId, keep: bool, call: str) -> None:
    """Put a pool to sleep on all ``devices``, or on none of them; the error says where a wake has failed.

    Args:
        devices: The devices.
        pool: The number of the pool.
        keep: Whether to keep the contents.
        call: The call of the program, for errors.
    """
    known = ledger()
    tried: list[int] = []
    with _lock:
        try:
            for device in devices:
                if known.is_asleep(device, pool):
                    continue
                tried.append(device)  # first, because a signal handler may raise after the call
                others = source_name() != "native" or not known.caching
                reason = (
                    "other source"
                    if others and pool == COMMON_POOL
                    else known.sleep(device, pool, keep, shared_addresses(device))
                )
                if reason:
                    _refuse(reason, device, call)
        except BaseException as error:
            wake_call = call.replace("sleep", "wake")
            failed = tried[-1:] if isinstance(error, AcceleratorError) else []
            for device in tried:
                if not known.is_asleep(device, pool):
                    continue
                why = "the driver has failed twice." if device in failed else _try_to_wake(device, pool, wake_call)
                if why:
                    text = f"The pool is still asleep on cuda:{device}, and {wake_call} can be called later: {why}"
                    add_sentence(error, text)
                if not keep:
                    add_sentence(error, f"The arrays of the pool on cuda:{device} have lost their contents.")
            raise
        finally:
            note(devices, pool)


def wake_up(devices: Iterable[int], pool: PoolId, call: str) -> None:
    """Wake a pool on all ``devices``; after a failure, the pool is still asleep on some of them.

    Args:
        devices: The devices.
        pool: The number of the pool.
        call: The call of the program, for errors.
    """
    with _lock:
        try:
            for device in devices:
                _wake(device, pool, call)
        finally:
            note(devices, pool)


def _wake(device: int, pool: PoolId, call: str) -> None:
    """Wake a pool on one device.

    Raises:
        AcceleratorError: The driver refuses a call. The pool is still asleep.
        OutOfMemoryError: The device has too little memory. The pool is still asleep.
        RuntimeError: The call has interrupted another sleep or wake of the pool.
    """
    known = ledger()
    while True:
        moving, needed, available, limited = known.wake(device, pool)
        if moving:
            _refuse("moving", device, call)
        if not needed:
            return
        if not relieve(device, needed - min(available, needed)):
            _raise_lack(device, needed, available, limited, call)


def _try_to_wake(device: int, pool: PoolId, call: str) -> str:
    """Wake a pool on one device, and return why the pool is still asleep; an empty text if the pool is awake."""
    try:
        _wake(device, pool, call)
    except Exception as failure:  # also of a callback of on_out_of_memory()
        return in_one_line(failure) or repr(failure)
    return ""


_REASONS = {
    "moving": "the pool is in the middle of another sleep or wake, which this call has interrupted. Call again later.",
    "capture": (
        "a graph is being captured. The call waits for the devices, which would end the capture. End the capture first."
    ),
    "shared": (
        "other processes may use arrays of the pool, and would lose them. Let the other processes drop the arrays, or "
        "call tcuda.multiprocessing.withdraw() for arrays that nobody has received."
    ),
    "other source": (
        "the memory of the pool comes from another source than the native allocator. tcuda cannot take such memory "
        "away and keep the addresses. Use TCUDA_ALLOC_CONF=backend:native, with the cache, and a MemPool without an "
        "allocator."
    ),
    "segments": (
        "the driver has given a part of the memory together with the addresses. A pool sleeps only if all its memory "
        "is in expandable segments: leave TCUDA_ALLOC_CONF=expandable_segments:True and no_split=False."
    ),
}


def _refuse(reason: str, device: int, call: str) -> NoReturn:
    raise RuntimeError(f"{call} cannot be done on cuda:{device}: {_REASONS[reason]}")


def _raise_lack(device: int, needed: int, available: int, limited: bool, call: str) -> NoReturn:
    place = "set_per_process_memory_fraction() leaves" if limited else "the device has"
    raise backend.OutOfMemoryError(
        f"CUDA out of memory. {call} needs {size_text(needed)} on GPU {device}, and {place} {size_text(available)}: "
        f"{size_text(needed - min(available, needed))} are missing. The pool is still asleep, and has lost "
        f"nothing. Free memory of the device, and call {call} again."
    )
