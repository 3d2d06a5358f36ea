"""The translation of CuPy's exceptions to :class:`tcuda.AcceleratorError`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda._core import translated

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


def translating(
    failure: type[Exception] | tuple[type[Exception], ...],
    name: str,
    function: Callable[..., Any],
    otherwise: int = Status.UNKNOWN,
) -> Callable[..., Any]:
    """Return a callable that calls ``function``, and raises :class:`tcuda.AcceleratorError` for CuPy's ``failure``.

    The callable is made by the core, because every call of the runtime takes this path, and a Python frame would cost
    20 to 40 ns.

    Args:
        failure: The exception of CuPy, or several exceptions.
        name: The name of the function in the CUDA runtime, without its prefix.
        function: The function.
        otherwise: The status to report for an exception without a status.
    """

    def raise_translated(error: Exception, *args: Any) -> NoReturn:
        status = getattr(error, "status", otherwise)
        call = f"cuda{name[0].upper()}{name[1:]}({', '.join(map(repr, args))})"
        raise AcceleratorError(status, call) from error

    return translated(function, failure, raise_translated)
