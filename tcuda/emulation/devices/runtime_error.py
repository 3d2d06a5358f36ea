"""The error of CuPy's CUDA runtime."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tcuda._base import statuses
from tcuda._base.errors import AcceleratorError

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


class CUDARuntimeError(AcceleratorError):
    """A call to the CUDA runtime failed (``cupy.cuda.runtime.CUDARuntimeError``).

    Args:
        status: The status of the call.

    Attributes:
        status: The status of the call.
    """

    __module__ = "tcuda.emulation.cuda.runtime"

    def __init__(self, status: int) -> None:
        self.status = self.error_code = int(status)
        self.call = self.details = ""
        RuntimeError.__init__(self, f"{statuses.name(status)}: {statuses.text(status)}")

    def __reduce__(self) -> Any:
        return CUDARuntimeError, (self.status,)


def with_cupys_error(call: F) -> F:
    """Return ``call`` with CuPy's error for a call to the CUDA runtime that fails."""

    @functools.wraps(call)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except CUDARuntimeError:
            raise
        except AcceleratorError as error:
            # CuPy's text has the status only. What tcuda knows of the cause is in the error before it.
            raise CUDARuntimeError(error.error_code) from (error if error.details else None)

    return cast("F", wrapper)
