"""Changes of elements in place, once for each index (``cupyx.scatter_add`` and others)."""

from __future__ import annotations

from typing import Any

from tcuda.emulation.arrays.functions import FUNCTIONS


def scatter_add(a: Any, slices: Any, value: Any) -> None:
    """Add ``value`` to the elements of ``a`` at ``slices``, as often as an index occurs."""
    FUNCTIONS["add"].at(a, slices, value)


def scatter_max(a: Any, slices: Any, value: Any) -> None:
    """Replace the elements of ``a`` at ``slices`` by ``value`` where ``value`` is larger."""
    FUNCTIONS["maximum"].at(a, slices, value)


def scatter_min(a: Any, slices: Any, value: Any) -> None:
    """Replace the elements of ``a`` at ``slices`` by ``value`` where ``value`` is smaller."""
    FUNCTIONS["minimum"].at(a, slices, value)
