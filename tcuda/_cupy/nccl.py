"""The protocol :class:`~tcuda._backend.nccl.Nccl` over CuPy's binding of NCCL.

CuPy loads the library at the import of ``cupy.cuda.nccl``, and finds the wheel of NVIDIA by itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import warnings
from typing import TYPE_CHECKING, Any

from tcuda._base.errors import NcclError, NcclNotFoundError
from tcuda._core import CallGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tcuda._backend.nccl import Ranks

_advice = "Install NCCL with `pip install nvidia-nccl-cu13`, or nvidia-nccl-cu12 for CUDA 12."


def load() -> Nccl:
    """Return NCCL.

    Raises:
        NcclNotFoundError: CuPy finds no library.
    """
    global _advice
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        from cupy.cuda import nccl
    if not nccl.available:
        if said:  # The warning, which only the first import gives, names the version that CuPy needs.
            _advice = " ".join(str(said[0].message).split())
        raise NcclNotFoundError(f"NCCL is not installed: {_advice}")
    return Nccl(nccl)


class Nccl:
    """NCCL.

    Args:
        binding: The module ``cupy.cuda.nccl``.
    """

    def __init__(self, binding: Any) -> None:
        self._binding = binding
        self._communicator = binding.NcclCommunicator
        self._run = CallGroup(binding.groupStart, binding.groupEnd).run

    def version(self) -> tuple[int, int, int]:
        """Return the version of the library."""
        # NCCL 2.8 and older have other numbers, and CuPy does not run with these.
        major, rest = divmod(self._binding.get_version(), 10_000)
        return major, rest // 100, rest % 100

    def unique_id(self) -> bytes:
        """Return 128 new bytes that name a clique of ranks."""
        with self._errors():
            made = self._binding.get_unique_id()
        return made if isinstance(made, bytes) else bytes(number & 0xFF for number in made)  # CuPy 13: a tuple

    def join(self, ranks: int, uid: bytes, rank: int) -> Any:
        """Join the current device to the clique ``uid`` as ``rank``."""
        with self._errors():
            try:
                made = self._communicator(ranks, uid, rank)
            except TypeError:  # CuPy 13 takes a tuple of signed numbers
                made = self._communicator(ranks, tuple(memoryview(uid).cast("b")), rank)
        return _immortal(made)

    def communicators(self, devices: Sequence[int]) -> Sequence[Any]:
        """Return the communicators of a new clique of ``devices``."""
        with self._errors():
            return [_immortal(made) for made in self._communicator.initAll(list(devices))]

    def all_reduce(self, ranks: Ranks, count: int, kind: int, op: int) -> None:
        """Reduce the elements of all ranks; every rank gets the result."""
        members, _, streams, sources, targets = ranks
        self._group(self._communicator.allReduce, (members, sources, targets, count, kind, op, streams))

    def reduce(self, ranks: Ranks, count: int, kind: int, op: int, root: int) -> None:
        """Reduce the elements of all ranks; the rank ``root`` gets the result."""
        members, _, streams, sources, targets = ranks
        self._group(self._communicator.reduce, (members, sources, targets, count, kind, op, root, streams))

    def broadcast(self, ranks: Ranks, count: int, kind: int, root: int) -> None:
        """Give every rank the elements of the rank ``root``."""
        members, _, streams, sources, targets = ranks
        self._group(self._communicator.broadcast, (members, sources, targets, count, kind, root, streams))

    def all_gather(self, ranks: Ranks, count: int, kind: int) -> None:
        """Give every rank the elements of each rank."""
        members, _, streams, sources, targets = ranks
        self._group(self._communicator.allGather, (members, sources, targets, count, kind, streams))

    def reduce_scatter(self, ranks: Ranks, count: int, kind: int, op: int) -> None:
        """Reduce the elements of all ranks, and give each rank a part of the result."""
        members, _, streams, sources, targets = ranks
        self._group(self._communicator.reduceScatter, (members, sources, targets, count, kind, op, streams))

    def _group(self, call: Callable[..., object], columns: tuple[Any, ...]) -> None:
        """Call ``call`` for each rank in one group; a column that is a tuple has an argument for each rank.

        The core starts, fills and ends the group. Between bytecodes of Python, the garbage collector or a signal
        handler could run, and could take or give back memory of a device, which an open group forbids; an exception of
        a signal handler would leave the group open.
        """
        try:
            self._run(call, columns)
        except self._binding.NcclError as error:
            raise NcclError(error.status) from error

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise CuPy's errors of NCCL as tcuda's error."""
        try:
            yield
        except self._binding.NcclError as error:
            raise NcclError(error.status) from error


def _immortal(communicator: Any) -> Any:
    """Return ``communicator``, which CuPy then never destroys: at the exit of a process, NCCL may hang."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(communicator))
    return communicator
