"""Arrays and events in the pickles of ``multiprocessing``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._process.lazy import backend, cuda
from tcuda.multiprocessing import _connections, _messages
from tcuda.multiprocessing._leases import leases
from tcuda.multiprocessing._messages import Message
from tcuda.multiprocessing._server import server
from tcuda.streams import Event

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda.multiprocessing._wire import Address


class _SharedEvent:
    """An event that another process opens.

    Args:
        event: The event.
    """

    def __init__(self, event: Event) -> None:
        self.memory = event

    def descriptors(self, first: int, count: int) -> list[int]:
        """Return nothing: an event has no memory."""
        return []


def reduce_array(array: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the function that makes the array in another process, and its arguments.

    Raises:
        RuntimeError: Another process cannot open the memory of the array, or a stream that uses the memory is
            capturing.
    """
    pointer = array.data
    device = pointer.device_id
    if not array.size:
        return rebuild_empty, (cuda.name, _messages.uuids()[device], array.shape, array.dtype, array.strides)
    memory = pointer.mem
    backend.expose(memory.ptr, memory.size, backend.current_stream(device).ptr)
    message = _messages.send(memory, device)
    return rebuild_array, (tuple(message), array.shape, array.dtype, pointer.ptr - memory.ptr, array.strides)


def rebuild_array(message: tuple[Any, ...], shape: Any, dtype: Any, offset: int, strides: Any) -> Any:
    """Return the array of a message.

    Raises:
        RuntimeError: The sender has ended or has freed the memory, or this process cannot open the memory.
    """
    memory = _messages.receive(Message(*message))
    return backend.array_in(memory, offset, shape, dtype, strides)


def rebuild_empty(runtime: str, device: bytes, shape: Any, dtype: Any, strides: Any) -> Any:
    """Return an array without elements, which has no memory."""
    memory = backend.foreign_memory(None, 0, 0, _messages.device_of(runtime, device))
    return backend.array_in(memory, 0, shape, dtype, strides)


def reduce_event(event: Event) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the function that opens the event in another process, and its arguments.

    Raises:
        AcceleratorError: The event was not made with ``interprocess=True``.
    """
    handle = event.ipc_handle()
    device = event.device
    assert device is not None
    lease, number = leases.send(_SharedEvent(event), _nothing)
    own = server().address
    return rebuild_event, (cuda.name, _messages.uuids()[device.index], handle, own, lease, number)


def rebuild_event(runtime: str, device: bytes, handle: bytes, owner: Address, lease: int, number: int) -> Event:
    """Return the event of another process.

    Raises:
        RuntimeError: The sender has ended, or the device is not visible in this process.
    """
    index = _messages.device_of(runtime, device)
    if _messages.is_own(owner):
        event = leases.take_back(lease, number)
        if not isinstance(event, Event):
            raise RuntimeError("The event is gone: its message was received before, or was withdrawn.")
        return event
    connection, _ = _connections.claim(owner, lease, number)
    try:
        return Event.from_ipc_handle(index, handle)
    finally:
        connection.release({lease: 1})


def _nothing() -> None:
    """Do nothing when an event is received."""
