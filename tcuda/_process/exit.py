"""The exit of the process, after which no call of CUDA is made, because the driver may be gone already."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tcuda._core import finalizing
from tcuda._process.lazy import is_initialized

if TYPE_CHECKING:
    from collections.abc import Callable


# The two functions are default arguments, because at exit Python may have cleared the names of this module.
def may_call_cuda(
    _exiting: Callable[[], bool] = sys.is_finalizing, _initialized: Callable[[], bool] = is_initialized
) -> bool:
    """Return whether an object that dies now may call CUDA, which is forbidden at exit and in a forked child."""
    return not _exiting() and _initialized()


def finalizer(release: Callable[[Any], object]) -> Callable[[Any], None]:
    """Return a ``__del__`` that calls ``release(self)`` if :func:`may_call_cuda` is true.

    Ctrl-C in the middle raises ``KeyboardInterrupt`` right after the ``__del__``, where Python does not drop it.
    """

    @finalizing
    def __del__(self: object, _allowed: Callable[[], bool] = may_call_cuda) -> None:  # noqa: N807
        if _allowed():
            release(self)

    return __del__
