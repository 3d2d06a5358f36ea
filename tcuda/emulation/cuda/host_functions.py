"""Functions of the host that are called in the order of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda.emulation.runtime import EmulatedRuntime

_DURATION = 1_000
"""The nanoseconds that a function takes."""


def launch(runtime: EmulatedRuntime, stream: int, function: Callable[[], object]) -> None:
    """Call ``function`` after the work that a stream of the current device has now.

    An error of the function is reported as an error of a finalizer is, because no caller could handle the error. Ctrl-C
    ends the program at its next line.
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
        _core.call_reported(self._function)
