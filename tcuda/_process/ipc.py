"""The function that finishes what is under way between processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._process.lazy import _lazy_init

if TYPE_CHECKING:
    from collections.abc import Callable

_collectors: list[Callable[[], None]] = []


def collect_with(collect: Callable[[], None]) -> None:
    """Let :func:`ipc_collect` call ``collect``: this process can share arrays from now on."""
    _collectors.append(collect)


_sharers: list[Callable[[int], list[int]]] = []


def share_with(addresses: Callable[[int], list[int]]) -> None:
    """Let :func:`shared_addresses` ask ``addresses``, which takes a device."""
    _sharers.append(addresses)


def shared_addresses(device: int) -> list[int]:
    """Return where the allocations of ``device`` begin that other processes may use."""
    return [address for addresses in _sharers for address in addresses(device)]


def ipc_collect() -> None:
    """Finish the returns of shared memory now (``torch.cuda.ipc_collect``).

    The call waits until the memory of received arrays that are gone is back at its owners, and until all memory that
    other processes have given back is free in this process. Then the call closes what is no longer needed: mappings,
    connections, and the events of messages. All this also happens by itself. Use the call before a measurement of
    memory, or when a process stops to send arrays.

    A message that no process has received yet keeps its memory: see :func:`tcuda.multiprocessing.withdraw`.

    Example:
        >>> tcuda.ipc_collect()
        >>> reserved = tcuda.memory_reserved()  # without memory that other processes have given back
    """
    _lazy_init()
    for collect in _collectors:  # none if this process has neither sent nor received an array
        collect()
