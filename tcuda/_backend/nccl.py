"""NCCL, the library of collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    Ranks: TypeAlias = tuple[tuple[Any, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    """The parts of several devices in a collective: the communicators, the indices of the devices, the ``cudaStream_t``
    on which the collective runs, and the addresses of the elements that each device gives and gets. Each tuple has an
    item for each device."""


class Nccl(Protocol):
    """NCCL, or the emulated counterpart of NCCL.

    The types of elements and the operations are the numbers of ``ncclDataType_t`` and ``ncclRedOp_t``. A method that
    takes ranks is one NCCL group: from the start to the end of the group, the thread runs no Python code, so that no
    finalizer and no signal handler can take or give back memory of a device.
    """

    def version(self) -> tuple[int, int, int]:
        """Return the version of the library."""

    def unique_id(self) -> bytes:
        """Return 128 new bytes that name a clique of ranks."""

    def join(self, ranks: int, uid: bytes, rank: int) -> Any:
        """Join the current device to the clique ``uid`` as ``rank``, and return the communicator.

        The call returns when all ranks have joined.

        Raises:
            NcclError: The ranks cannot make a clique.
        """

    def communicators(self, devices: Sequence[int]) -> Sequence[Any]:
        """Return the communicators of a new clique of ``devices``, which are different devices of this process.

        Raises:
            NcclError: The devices cannot make a clique.
        """

    def all_reduce(self, ranks: Ranks, count: int, kind: int, op: int) -> None:
        """Reduce ``count`` elements of type ``kind`` of all ranks with ``op``; every rank gets the result."""

    def reduce(self, ranks: Ranks, count: int, kind: int, op: int, root: int) -> None:
        """Reduce ``count`` elements of all ranks with ``op``; the rank ``root`` gets the result."""

    def broadcast(self, ranks: Ranks, count: int, kind: int, root: int) -> None:
        """Give every rank the ``count`` elements of the rank ``root``."""

    def all_gather(self, ranks: Ranks, count: int, kind: int) -> None:
        """Give every rank the ``count`` elements of each rank, in the order of the ranks."""

    def reduce_scatter(self, ranks: Ranks, count: int, kind: int, op: int) -> None:
        """Reduce the elements of all ranks with ``op``, and give each rank its ``count`` elements of the result."""
