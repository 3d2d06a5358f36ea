"""Waits of the host that a program forbids in a scope (``cupyx.allow_synchronize``)."""

from __future__ import annotations

import contextlib
import threading
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class DeviceSynchronized(RuntimeError):
    """The host would wait for a device in a scope that forbids the wait (``cupyx.DeviceSynchronized``)."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or "Device synchronization was detected while disallowed.")


class _State(threading.local):
    allowed = True


_state = _State()


@contextlib.contextmanager
def allow_synchronize(allow: bool) -> Iterator[None]:
    """Allow or forbid this thread to wait for a device in a scope (``cupyx.allow_synchronize``).

    As in CuPy, the scope knows the waits for a whole device and for the contents of an array, and no waits for a stream
    or for an event.

    Args:
        allow: Whether the waits are allowed.
    """
    warnings.warn(
        "cupyx.allow_synchronize will be removed in future releases as it is not possible to reliably detect "
        "synchronizations.",
        stacklevel=3,
    )
    before = _state.allowed
    _state.allowed = allow
    try:
        yield
    finally:
        _state.allowed = before


def declare() -> None:
    """Report that the host is about to wait for a device.

    Raises:
        DeviceSynchronized: The scope of :func:`allow_synchronize` forbids the wait.
    """
    if not _state.allowed:
        raise DeviceSynchronized
