"""Arrays in other processes, by ``multiprocessing``; the import makes arrays shareable (``torch.multiprocessing``).

After ``import tcuda.multiprocessing``, an array that goes through a queue or a pipe of ``multiprocessing``, or that is
an argument of a spawned process, arrives as an array of the same memory. No element is copied. The process that
receives the array needs no import.

A sender keeps a lease for all memory that the sender has sent. A lease ends when no message is on the way, and no
process holds the memory.
"""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any

from tcuda._base.public_names import public_names
from tcuda._process.ipc import collect_with, share_with
from tcuda._process.lazy import _lazy_call, backend
from tcuda.multiprocessing import _events, _mappings
from tcuda.multiprocessing._arrays import reduce_array, reduce_event
from tcuda.multiprocessing._connections import connections
from tcuda.multiprocessing._leases import leases
from tcuda.multiprocessing._received import returns
from tcuda.multiprocessing._segments import SharedBlock
from tcuda.multiprocessing._server import server_if_any
from tcuda.streams import Event

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["unreceived", "withdraw"]
__dir__ = public_names(__name__)


def unreceived() -> int:
    """Return the number of messages of this process that no process has received yet.

    Each message is about one array, and keeps the memory of the array.

    Example:
        >>> import multiprocessing
        >>> import tcuda.multiprocessing
        >>> receiver, sender = multiprocessing.Pipe(duplex=False)
        >>> sender.send(tcuda.xp.ones(1000))
        >>> tcuda.multiprocessing.unreceived()
        1
        >>> tcuda.multiprocessing.withdraw()
        1
    """
    return leases.on_the_way()


def withdraw(array: Any = None) -> int:
    """Stop keeping memory for messages that no process has received yet, and return the number of these messages.

    Call the function when messages are lost: after a queue was closed before it was empty, or after the process died
    that was to receive them. A process that loads such a message later gets an error.

    Args:
        array: An array that was sent; all arrays if None.

    Raises:
        TypeError: ``array`` is not an array on a device.

    Example:
        >>> import multiprocessing
        >>> import tcuda.multiprocessing
        >>> receiver, sender = multiprocessing.Pipe(duplex=False)
        >>> x = tcuda.xp.ones(1000)
        >>> sender.send(x)
        >>> receiver.close()  # the message is lost
        >>> tcuda.multiprocessing.withdraw(x)
        1
    """
    if array is None:
        return leases.withdraw()
    memory = getattr(getattr(array, "data", None), "mem", None)
    if memory is None:
        raise TypeError(f"withdraw() takes an array of tcuda.xp, or None; got {type(array).__name__}.")
    return leases.withdraw(memory)


def _rebuild(rebuild: Callable[..., Any], *arguments: Any) -> Any:
    """Return the object of a message. A process that unpickles the message imports this module, and so can send too."""
    return rebuild(*arguments)


def _reduce_array(array: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    rebuild, arguments = reduce_array(array)
    return _rebuild, (rebuild, *arguments)


def _reduce_event(event: Event) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    rebuild, arguments = reduce_event(event)
    return _rebuild, (rebuild, *arguments)


def _register() -> None:
    ForkingPickler.register(backend.array_type(), _reduce_array)


def _collect() -> None:
    """Finish all returns of memory, and close what is no longer needed."""
    returns.settle()
    _mappings.close_idle(also_young=True)
    for connection in connections():
        connection.close_if_unused()
    running = server_if_any()
    if running is not None:
        running.settle()
    _events.destroy_unused()


def _shared_addresses(device: int) -> list[int]:
    """Return the addresses of the blocks of ``device`` that other processes use or will receive."""
    return [shared.memory.ptr for shared in leases.all() if isinstance(shared, SharedBlock) and shared.device == device]


collect_with(_collect)
share_with(_shared_addresses)
ForkingPickler.register(Event, _reduce_event)
_lazy_call(_register)  # arrays exist only after initialisation, and only then is their type settled
