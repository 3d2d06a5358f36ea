"""CUDA statuses of failed calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda import AcceleratorError

if TYPE_CHECKING:
    from collections.abc import Callable


def status_of(call: Callable[[], object]) -> int:
    """Return the CUDA status with which ``call`` fails; 0 if ``call`` succeeds."""
    try:
        call()
    except AcceleratorError as error:
        return error.error_code
    return 0
