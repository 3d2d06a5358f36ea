"""The libraries with which CuPy is to compute (``cupy._core._accelerator``). Emulated devices only keep the choice."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ACCELERATOR_CUB, ACCELERATOR_CUTENSOR, ACCELERATOR_CUTENSORNET = 1, 2, 3
_NUMBERS = {"cub": ACCELERATOR_CUB, "cutensor": ACCELERATOR_CUTENSOR, "cutensornet": ACCELERATOR_CUTENSORNET}
_chosen: dict[str, list[int]] = {}


def _choose(operations: str, accelerators: Iterable[str | int]) -> None:
    numbers = []
    for accelerator in accelerators:
        if not isinstance(accelerator, int) and accelerator not in _NUMBERS:
            raise ValueError(f"Unknown accelerator: {accelerator}; the accelerators are {', '.join(_NUMBERS)}.")
        numbers.append(accelerator if isinstance(accelerator, int) else _NUMBERS[accelerator])
    _chosen[operations] = numbers


def set_elementwise_accelerators(accelerators: Iterable[str | int]) -> None:
    """Choose the libraries for universal functions.

    Raises:
        ValueError: There is no such library.
    """
    _choose("elementwise", accelerators)


def set_reduction_accelerators(accelerators: Iterable[str | int]) -> None:
    """Choose the libraries for kernels that reduce arrays.

    Raises:
        ValueError: There is no such library.
    """
    _choose("reduction", accelerators)


def set_routine_accelerators(accelerators: Iterable[str | int]) -> None:
    """Choose the libraries for functions such as ``sum``.

    Raises:
        ValueError: There is no such library.
    """
    _choose("routine", accelerators)


def get_elementwise_accelerators() -> list[int]:
    """Return the numbers of the libraries for universal functions."""
    return _chosen["elementwise"]


def get_reduction_accelerators() -> list[int]:
    """Return the numbers of the libraries for kernels that reduce arrays."""
    return _chosen["reduction"]


def get_routine_accelerators() -> list[int]:
    """Return the numbers of the libraries for functions such as ``sum``."""
    return _chosen["routine"]


for _operations in ("elementwise", "reduction", "routine"):
    _choose(_operations, filter(None, os.environ.get("CUPY_ACCELERATORS", "cub").split(",")))

__all__ = [
    "ACCELERATOR_CUB",
    "ACCELERATOR_CUTENSOR",
    "ACCELERATOR_CUTENSORNET",
    "get_elementwise_accelerators",
    "get_reduction_accelerators",
    "get_routine_accelerators",
    "set_elementwise_accelerators",
    "set_reduction_accelerators",
    "set_routine_accelerators",
]
