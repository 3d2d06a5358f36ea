"""A stand-in for a race detector, which writes down what the runtime tells."""

from __future__ import annotations

import contextlib
import gc
import itertools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcuda.emulation.runtime.runtime import EmulatedRuntime

READ, WRITE, BOTH = 1, 2, 3


class RaceRecorder:
    """A detector that finds nothing.

    Attributes:
        told: The calls, each as the name and the arguments.
    """

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self._stacks = itertools.count(1)

    def __getattr__(self, name: str) -> Callable[..., None]:
        def tell(*arguments: Any) -> None:
            self.told.append((name, *arguments))

        return tell

    def watch_host(self) -> None:
        """Watch nothing: the host's accesses are no calls of the runtime."""

    def end_watch_of_host(self) -> None:
        """End nothing."""

    def note_stack(self) -> int:
        """Return a new number."""
        return next(self._stacks)

    def graph(self, nodes: Any) -> Any:
        """Return the nodes themselves."""
        self.told.append(("graph", nodes))
        return nodes

    def take(self) -> list[tuple[Any, ...]]:
        """Return the calls since the last time."""
        told, self.told = self.told, []
        return told

    def operations(self) -> list[tuple[str, list[Any]]]:
        """Return the name and the accesses of the operations since the last time."""
        return [(call[3], list(call[4])) for call in self.take() if call[0] == "work"]


@contextlib.contextmanager
def recorded(runtime: EmulatedRuntime) -> Iterator[RaceRecorder]:
    """Let a recorder watch ``runtime``.

    The garbage collector rests meanwhile, because it may destroy streams of earlier tests, which the recorder would
    note.
    """
    recorder = RaceRecorder()
    collecting = gc.isenabled()
    gc.disable()
    try:
        runtime.watchRaces(recorder)  # type: ignore[arg-type]
        recorder.take()
        yield recorder
    finally:
        runtime.watchRaces(None)
        if collecting:
            gc.enable()


def whole(array: Any, kind: int, label: str) -> tuple[Any, ...]:
    """Return the access of all elements of ``array``."""
    return array.data.ptr, array.itemsize, array.shape, array.strides, kind, label


def span(address: int, size: int, kind: int, label: str) -> tuple[Any, ...]:
    """Return the access of ``size`` bytes."""
    return address, 1, (size,), (1,), kind, label
