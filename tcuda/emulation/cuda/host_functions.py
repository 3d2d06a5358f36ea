"""Functions of the host that are called in the order of a stream."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda.emulation.runtime import EmulatedRuntime

_DURATION = 1_000
"""The nanoseconds that a function takes."""


def launch(runtime: EmulatedRuntime, stream: int, function: Callable[[], object]) -> None:
    """Call ``function`` after the work that a stream of the current device has now.

    An error of the function is reported as an error of a finalizer is, because no caller could handle the error.
    """
    work = _Reported(function)
    runtime.launchTogether(
        [(runtime.getDevice(), stream)], work, _DURATION, name="host function", addresses=(), nbytes=0
    )


class _Reported:
    """A function whose error is reported and ends nothing.

    Args:
        function: The function.
    """

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function

    def __call__(self) -> None:
        try:
            self._function()
        except BaseException as error:
            sys.unraisablehook(
                cast(
                    "Any",
                    SimpleNamespace(
                        exc_type=type(error),
                        exc_value=error,
                        exc_traceback=error.__traceback__,
                        err_msg=None,
                        object=self._function,
                    ),
                )
            )
