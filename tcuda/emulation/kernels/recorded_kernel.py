"""Kernels in the form whose launches note what the kernels read and write."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tcuda import _core


class RecordedKernel(NamedTuple):
    """A kernel in the form whose launches note what the kernel reads and writes.

    Attributes:
        host: The kernel.
        complete: Whether every access has a check. If not, the check of a write after a read may be missing.
        variables: The name, the beginning and the end of each global variable of the module, by address.
    """

    host: _core.EmulatedFunction
    complete: bool
    variables: list[tuple[str, int, int]]
