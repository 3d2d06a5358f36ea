"""The protocol :class:`~tcuda._backend.nccl.Nccl` on emulated devices.

A clique of devices of this process computes at once. Ranks that join one by one meet in the process of rank 0, and the
host waits in a collective until all ranks have called it.
"""

from __future__ import annotations

import ctypes
import functools
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tcuda._base.errors import NcclError
from tcuda.emulation.backend.nccl.member import Member, exchange
from tcuda.emulation.backend.nccl.operation import Operation
from tcuda.emulation.backend.nccl.wire import INVALID_USAGE
from tcuda.emulation.runtime.accesses import READ, READ_AND_WRITE, WRITE, span
from tcuda.emulation.runtime.moves import Movable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from tcuda._backend.nccl import Ranks
    from tcuda.emulation.runtime import EmulatedRuntime
    from tcuda.emulation.runtime.accesses import Access
    from tcuda.emulation.runtime.unwritten import Region, Unwritten

_VERSION = 2, 28, 9
_UNIQUE_ID_BYTES = 128


class _Local(NamedTuple):
    """A rank of a clique of devices of this process.

    Attributes:
        rank: The number of the rank.
        ranks: The number of ranks.
    """

    rank: int
    ranks: int


class _Rank(NamedTuple):
    """The part of one device in a collective; :class:`~tcuda._backend.nccl.Ranks` documents the fields."""

    communicator: Any
    device: int
    stream: int
    source: int
    target: int


class EmulatedNccl:
    """The emulated counterpart of NCCL.

    Args:
        runtime: The runtime.
    """

    def __init__(self, runtime: EmulatedRuntime) -> None:
        self._runtime = runtime

    def version(self) -> tuple[int, int, int]:
        """Return the version of NCCL that is emulated."""
        return _VERSION

    def unique_id(self) -> bytes:
        """Return 128 random bytes, from which the ranks know where to meet."""
        return os.urandom(_UNIQUE_ID_BYTES)

    def join(self, ranks: int, uid: bytes, rank: int) -> Member:
        """Join the current device to the clique ``uid`` as ``rank``."""
        return Member(ranks, uid, rank, self._runtime.getDevice())

    def communicators(self, devices: Sequence[int]) -> Sequence[_Local]:
        """Return the communicators of a new clique of ``devices``."""
        return [_Local(rank, len(devices)) for rank in range(len(devices))]

    def all_reduce(self, ranks: Ranks, count: int, kind: int, op: int) -> None:
        """Reduce the elements of all ranks; every rank gets the result."""
        self._launch(ranks, Operation("all_reduce", count, kind, op))

    def reduce(self, ranks: Ranks, count: int, kind: int, op: int, root: int) -> None:
        """Reduce the elements of all ranks; the rank ``root`` gets the result."""
        self._launch(ranks, Operation("reduce", count, kind, op, root))

    def broadcast(self, ranks: Ranks, count: int, kind: int, root: int) -> None:
        """Give every rank the elements of the rank ``root``."""
        self._launch(ranks, Operation("broadcast", count, kind, root=root))

    def all_gather(self, ranks: Ranks, count: int, kind: int) -> None:
        """Give every rank the elements of each rank."""
        self._launch(ranks, Operation("all_gather", count, kind))

    def reduce_scatter(self, ranks: Ranks, count: int, kind: int, op: int) -> None:
        """Reduce the elements of all ranks, and give each rank a part of the result."""
        self._launch(ranks, Operation("reduce_scatter", count, kind, op))

    def _launch(self, given_ranks: Ranks, operation: Operation) -> None:
        ranks = [_Rank(*rank) for rank in zip(*given_ranks, strict=True)]
        if len({self._runtime.captureOf(rank.device, rank.stream) for rank in ranks}) > 1:
            raise NcclError(
                INVALID_USAGE,
                "The streams of a collective must either all be in one capture, or none may capture. Let the other "
                "streams wait for an event of the stream on which the capture began.",
            )
        members = [rank.communicator for rank in ranks]
        size = members[0].ranks
        given, got = operation.given(size), operation.got(size)
        parts = [
            _Part(
                communicator.rank,
                _memory(rank.source, given, operation.dtype),
                _memory(rank.target, got, operation.dtype) if operation.gets(communicator.rank) else None,
            )
            for communicator, rank in zip(members, ranks, strict=True)
        ]
        work: Callable[[], None] = functools.partial(_compute, operation, parts)
        if self._runtime.contents.unwritten is not None:
            work = _PassingMarks(self._runtime.contents.unwritten, operation, parts)
        meets = isinstance(members[0], Member)
        if meets:
            work = functools.partial(_meet, operation, parts, members)
        self._runtime.launchTogether(
            [(rank.device, rank.stream) for rank in ranks],
            work,
            operation.duration(size),
            name=f"nccl_{operation.collective}",
            addresses=[address for rank in ranks for address in (rank.source, rank.target) if address],
            nbytes=(given + got) * operation.dtype.itemsize * len(ranks),
            accesses=functools.partial(_accesses, operation, ranks, size),
            meets=meets,
        )


class _Part(NamedTuple):
    """The part of one rank in a collective, without arrays that keep memory alive.

    Attributes:
        rank: The number of the rank.
        source: The elements that the rank gives.
        target: The elements that the rank gets; None if the rank gets none.
    """

    rank: int
    source: npt.NDArray[Any]
    target: npt.NDArray[Any] | None


def _accesses(operation: Operation, ranks: Sequence[_Rank], size: int) -> list[Access]:
    """Return what the kernels of ``ranks`` read and write, in a clique of ``size`` ranks."""
    bytes_given, bytes_got = (count(size) * operation.dtype.itemsize for count in (operation.given, operation.got))
    accesses = []
    for communicator, *_, source, target in ranks:
        rank = communicator.rank
        gives, gets = operation.gives(rank), operation.gets(rank)
        if gives and gets and source == target and bytes_given == bytes_got:
            accesses.append(span(target, bytes_got, READ_AND_WRITE, "recvbuff"))
            continue
        if gives:
            accesses.append(span(source, bytes_given, READ, "sendbuff"))
        if gets:
            accesses.append(span(target, bytes_got, WRITE, "recvbuff"))
    return accesses


def _memory(address: int, count: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return ``count`` elements of ``dtype`` at ``address`` as an array that does not keep the memory alive."""
    memory: Any = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    elements: npt.NDArray[Any] = np.frombuffer(memory, dtype)
    return elements


def _compute(operation: Operation, parts: Sequence[_Part]) -> None:
    """Do the work of all ranks of a clique, which are ``parts`` in their order."""
    for part, result in zip(parts, operation.results([part.source for part in parts]), strict=True):
        if part.target is not None:
            part.target[...] = result


class _PassingMarks(Movable):
    """The work of all ranks of a clique, which passes on which elements come from memory that nothing has written."""

    passes_marks = True

    def __init__(self, unwritten: Unwritten, operation: Operation, parts: Sequence[_Part]) -> None:
        self._unwritten = unwritten
        self._operation = operation
        self._parts = parts

    def __call__(self) -> None:
        marks = [self._unwritten.marks(_region(part.source)) for part in self._parts]
        given = [
            np.zeros(part.source.shape, np.uint8) if found is None else found.max(-1)
            for found, part in zip(marks, self._parts, strict=True)
        ]
        _compute(self._operation, self._parts)
        for part, result in zip(self._parts, self._operation.of_marks().results(given), strict=True):
            if part.target is not None:
                self._unwritten.store(_region(part.target), result[..., None])


def _region(array: npt.NDArray[Any]) -> Region:
    return array.ctypes.data, array.itemsize, array.shape, array.strides


def _meet(operation: Operation, parts: Sequence[_Part], members: Sequence[Member]) -> None:
    """Do the work of the ranks ``parts`` of a clique together with the other ranks."""
    given = [part.source.data.cast("B") if operation.gives(part.rank) else b"" for part in parts]
    for part, result in zip(parts, exchange(members, operation, given), strict=True):
        if part.target is not None:
            part.target[...] = np.frombuffer(result, operation.dtype)
