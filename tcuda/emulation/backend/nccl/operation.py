"""The collectives: the elements that each rank gives and gets, and the time that the links take."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.numbers.bfloat16 import named_bfloat16
from tcuda.emulation.numbers.floating_point import quietly
from tcuda.emulation.runtime import costs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

_DTYPES = {
    number: np.dtype(name)
    for number, name in enumerate(
        ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")
    )
}
"""The dtypes by their numbers in ``ncclDataType_t``."""

_BFLOAT16 = 9
_BYTE = 1
_SUM, _MAXIMUM, _AVERAGE = 0, 2, 4
# As on a device, a number is preferred to NaN.
_UFUNCS: dict[int, np.ufunc] = {_SUM: np.add, 1: np.multiply, _MAXIMUM: np.fmax, 3: np.fmin}
"""The functions by their numbers in ``ncclRedOp_t``."""


@dataclass(frozen=True)
class Operation:
    """A collective, without the addresses of the ranks.

    Args:
        collective: The name of the method of :class:`~tcuda._backend.nccl.Nccl`.
        count: The number of elements that the method is told.
        kind: The number of the type of the elements.
        op: The number of the operation.
        root: The rank of the root.
    """

    collective: str
    count: int
    kind: int
    op: int = _SUM
    root: int = 0

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return named_bfloat16() if self.kind == _BFLOAT16 else _DTYPES[self.kind]

    def given(self, ranks: int) -> int:
        """Return the number of elements that each of ``ranks`` ranks gives."""
        return self.count * ranks if self.collective == "reduce_scatter" else self.count

    def got(self, ranks: int) -> int:
        """Return the number of elements that each of ``ranks`` ranks gets."""
        return self.count * ranks if self.collective == "all_gather" else self.count

    def gives(self, rank: int) -> bool:
        """Return whether ``rank`` gives elements."""
        return self.collective != "broadcast" or rank == self.root

    def gets(self, rank: int) -> bool:
        """Return whether ``rank`` gets elements."""
        return self.collective != "reduce" or rank == self.root

    def results(self, given: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        """Return the elements that each rank gets, if the ranks give ``given``.

        The sum is ``((x0 + x1) + x2) + ...`` in the dtype of the elements, in the order of the ranks.
        """
        return _RESULTS[self.collective](self, given)

    def of_marks(self) -> Operation:
        """Return the collective that moves a mark for each element, in which the largest mark of a sum counts."""
        return replace(self, kind=_BYTE, op=_MAXIMUM)

    def duration(self, ranks: int) -> int:
        """Return the nanoseconds that the kernels of ``ranks`` ranks take."""
        time = {"all_reduce": costs.ring_and_back, "all_gather": costs.ring, "reduce_scatter": costs.ring}
        whole = max(self.given(ranks), self.got(ranks)) * self.dtype.itemsize
        return time.get(self.collective, costs.pipeline)(whole, ranks)

    def _reduced(self, given: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        if self.op != _AVERAGE:
            return functools.reduce(_UFUNCS[self.op], given)
        # NCCL multiplies floating-point numbers before the sum, and divides integers after the sum, towards zero.
        if self.dtype.kind == "f" or self.kind == _BFLOAT16:
            part = self.dtype.type(1 / len(given))
            return functools.reduce(np.add, [array * part for array in given])
        total = functools.reduce(np.add, given)
        count = self.dtype.type(len(given))
        whole: npt.NDArray[Any] = (total - np.fmod(total, count)) // count
        return whole


def _to_all(operation: Operation, given: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    return [quietly(operation._reduced, given)] * len(given)


def _copied(operation: Operation, given: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    return [given[operation.root]] * len(given)


def _gathered(operation: Operation, given: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    return [np.concatenate(given)] * len(given)


def _scattered(operation: Operation, given: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    return np.split(quietly(operation._reduced, given), len(given))


_RESULTS: dict[str, Callable[[Operation, Sequence[npt.NDArray[Any]]], list[npt.NDArray[Any]]]] = {
    "all_reduce": _to_all,
    "reduce": _to_all,
    "broadcast": _copied,
    "all_gather": _gathered,
    "reduce_scatter": _scattered,
}
