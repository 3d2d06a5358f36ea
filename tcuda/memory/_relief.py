"""The functions of the program that make room on a device before an allocation fails."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tcuda._base.arguments import function
from tcuda._device import mem_get_info
from tcuda._process.captures import captures
from tcuda._process.ledger import ledger

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import Self

    Callback = Callable[[int, int], bool]

_in_force: tuple[on_out_of_memory, ...] = ()
_lock = threading.RLock()  # the garbage collector may remove a callback anywhere


class _Thread(threading.local):
    """The state of a thread.

    Attributes:
        devices: The devices for which the thread is calling the callbacks.
    """

    devices: frozenset[int] = frozenset()


_thread = _Thread()


class on_out_of_memory:
    """Call ``callback`` when a device has no room for an allocation, and try the allocation again.

    RMM has such a callback as ``rmm.mr.FailureCallbackResourceAdaptor``. torch has ``FreeMemoryCallback`` in C++ only,
    and calls it before torch takes new memory from the driver. tcuda calls the callback later: the allocator has then
    waited for freed memory, and has given its cached memory back to the device.

    The callbacks are called in the order in which they were given, until one of them returns True. Then the allocation
    is tried again. If the allocation finds no room again, the callbacks are called again. If all callbacks return
    False, cyclic garbage is collected. If that frees nothing, :class:`tcuda.OutOfMemoryError` is raised. The error is
    also raised after 100 calls in a row that return True and free no memory of the device. An exception in ``callback``
    is raised by the allocation.

    The callback runs in the thread that allocates, and no lock of tcuda is held. Several threads may call the callback
    at the same time. The callback may allocate. If an allocation of the callback on the same device finds no room, the
    callbacks are not called for that allocation.

    While a graph is captured, no callback is called: memory that is freed then stays in use until the capture ends. No
    callback is called for more bytes than the device has, or than :func:`tcuda.set_per_process_memory_fraction` allows.

    If PyTorch allocates by :func:`tcuda.memory.torch_allocator`, the callback is called for tensors too, also in a
    thread of torch that runs no Python code. tcuda does not know the captures of torch, so the callback must not wait
    for a device during such a capture.

    The callback is called from now on, until :meth:`remove` or the end of the ``with`` statement.

    Args:
        callback: The function to call, with two arguments: the index of the device, and the requested size in bytes.
            The function returns True if the allocation is to be tried again.

    Raises:
        TypeError: ``callback`` cannot be called.

    Example:
        >>> tcuda.empty_cache()
        >>> room = 1 << 26  # bytes
        >>> tcuda.set_per_process_memory_fraction((tcuda.memory_reserved() + room) / tcuda.mem_get_info()[1])
        >>> cache = [xp.empty(room // 2, dtype="uint8")]
        >>> def drop_one(device, size):
        ...     if not cache:
        ...         return False  # nothing is left to drop
        ...     cache.pop()
        ...     return True
        >>> with tcuda.memory.on_out_of_memory(drop_one):
        ...     x = xp.empty(room // 4 * 3, dtype="uint8")
        >>> len(cache)
        0
        >>> tcuda.set_per_process_memory_fraction(1.0)
    """

    def __init__(self, callback: Callback) -> None:
        """Call the callback from now on."""
        global _in_force
        self._callback = function(callback, "callback")
        with _lock:
            _in_force = (*_in_force, self)

    def remove(self) -> None:
        """Call the callback no more. A second call does nothing.

        Example:
            >>> callback = tcuda.memory.on_out_of_memory(lambda device, size: False)
            >>> callback.remove()
        """
        global _in_force
        with _lock:
            _in_force = tuple(other for other in _in_force if other is not self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.remove()


def relieve(device: int, size: int) -> bool:
    """Call the callbacks until one returns True; return whether one did.

    Args:
        device: The index of the device that has no room.
        size: The requested size in bytes.
    """
    before = _thread.devices
    if not _in_force or captures or device in before or size > _most(device):
        return False
    _thread.devices = before | {device}
    try:
        return any(each._callback(device, size) for each in _in_force)
    finally:
        _thread.devices = before


def _most(device: int) -> int:
    """Return the bytes that this process may reserve on ``device``."""
    return int(ledger().memory_fraction(device) * mem_get_info(device)[1])


def why_nobody_was_called(device: int) -> str:
    """Return a sentence that says why :func:`relieve` calls no callback now; empty if there is no such reason."""
    if not _in_force:
        return ""
    if device in _thread.devices:
        return "A callback of on_out_of_memory() made this allocation, so no callback was called for the allocation."
    if captures:
        return "A graph is being captured, so no callback of on_out_of_memory() was called."
    return ""
