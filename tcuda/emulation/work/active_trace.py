"""The trace in progress: what operations on arrays call in place of work on a device, while a function is traced."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from typing_extensions import Self


class Trace(Protocol):
    """The record of the operations of a function that is traced."""

    def call_ufunc(self, function: np.ufunc, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Record the call of a universal function."""

    def call_function(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Record the call of another function of the namespace."""

    def call_method(self, name: str, placeholder: Any, **kwargs: Any) -> Any:
        """Record the call of a method of an array."""

    def cast(self, placeholder: Any, dtype: np.dtype[Any]) -> Any:
        """Record the conversion of an array or scalar to another type."""

    def index(self, placeholder: Any, index: Any) -> Any:
        """Record a view of an array."""

    def assign(self, target: Any, value: Any) -> None:
        """Record an assignment to all elements of an array."""


class Placeholder:
    """The base class of the objects that a traced function gets in place of arrays and scalars."""

    __slots__ = ()


class _State(threading.local):
    trace: Trace | None = None


state = _State()
"""The state of this thread, for frequent calls; other calls ask :func:`current`."""


def current() -> Trace | None:
    """Return the trace in progress in this thread; None if there is none."""
    return state.trace


in_progress: list[Trace] = []
"""The traces of all threads, for the core."""


class tracing:
    """Context manager during which the operations of this thread are recorded in ``trace``."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __enter__(self) -> Self:
        in_progress.append(self._trace)
        state.trace = self._trace
        return self

    def __exit__(self, *error: object) -> None:
        state.trace = None
        in_progress.remove(self._trace)
