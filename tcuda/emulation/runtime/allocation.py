"""Allocations: device memory that is given back when no object refers to the allocation any more."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tcuda._core import finalizing

if TYPE_CHECKING:
    from collections.abc import Callable


class Allocation:
    """Memory that is given back when this object dies.

    Args:
        ptr: The address.
        release: A function that gives the memory at an address back.

    Attributes:
        ptr: The address.
    """

    __slots__ = ("__weakref__", "_release", "ptr")

    def __init__(self, ptr: int, release: Callable[[int], object]) -> None:
        self.ptr = ptr
        self._release = release

    @finalizing
    def __del__(self, _exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        if not _exiting():
            self._release(self.ptr)
