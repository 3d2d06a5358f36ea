"""Calls of the runtime that fail."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.devices import allocated
from support.statuses import status_of
from tcuda._base.statuses import Status
from tcuda._process import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NEVER_FAILING = {"getDevice", "setDevice", "getDeviceCount", "nvml", "name", "capturing", "defers", "poison"}
"""The members of the runtime that only ask, that restore the state after a failure, or that make no call of CUDA."""


def refused_calls(action: Callable[[], Any], release: Callable[[], object] = lambda: None) -> list[str]:
    """Run ``action`` again and again, and let another call of the runtime fail each time, until no call fails.

    The function checks after each failure that the error reaches the caller, that the current device and the current
    streams are the same as before, and that no more memory is allocated.

    Args:
        action: The calls.
        release: A function that gives back what ``action`` has kept. The function is called after each run, and none of
            its calls fails.

    Returns:
        The names of the calls that failed.
    """
    refused: list[str] = []
    before = _state()
    while True:
        with _refusing(len(refused)) as made:
            status = status_of(action)
        release()
        assert _state() == before, made
        if not status:
            return refused
        assert status == Status.UNKNOWN, made
        refused.append(made[-1])


def _state() -> tuple[Any, ...]:
    devices = range(tcuda.device_count())
    return tcuda.current_device(), [tcuda.current_stream(device) for device in devices], allocated()


@contextlib.contextmanager
def _refusing(number: int) -> Iterator[list[str]]:
    """Let the call of this number fail, counted from 0; yield the list of the names of the calls until then."""
    made: list[str] = []

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if len(made) <= number:
                made.append(name)
                if len(made) == number + 1:
                    raise tcuda.AcceleratorError(Status.UNKNOWN, name)
            return function(*arguments, **options)

        return call

    with pytest.MonkeyPatch.context() as patched:
        for name, function in list(vars(lazy.cuda).items()):
            if callable(function) and name not in _NEVER_FAILING:
                patched.setitem(vars(lazy.cuda), name, counted(name, function))
        yield made
