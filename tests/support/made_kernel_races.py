"""Races inside kernels that a test makes up: a launch that tells of them, and the lines of its library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pytest

    Index = tuple[int, int, int]


@dataclass
class MadeAccess:
    """An access of a race. ``code`` is the number of the line."""

    kind: str
    code: int
    thread: Index = (0, 0, 0)
    block: Index = (0, 0, 0)
    size: int = 4


@dataclass
class MadeRace:
    """A race of a launch."""

    address: int
    first: MadeAccess
    second: MadeAccess
    missing: str = "barrier"
    size: int = 4
    same_value: bool = False
    count: int = 1
    shared: bool = False
    without_fence: str = "both"


class _Core:
    """The core with launches that tell of races that a function makes up."""

    def __init__(self, made: Callable[[], Sequence[MadeRace]], left_out: int) -> None:
        self._made = made
        self._left_out = left_out

    def EmulatedLaunch(self, *args: Any, races: bool = False, **options: Any) -> Any:
        return _Launch(_core.EmulatedLaunch(*args, **options), self._made, self._left_out)


class _Launch:
    def __init__(self, launch: _core.EmulatedLaunch, made: Callable[[], Sequence[MadeRace]], left_out: int) -> None:
        self._launch = launch
        self._made = made
        self.races_left_out = left_out

    def races(self) -> list[MadeRace]:
        return [*self._made()]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._launch, name)


def make_up(
    monkeypatch: pytest.MonkeyPatch,
    made: Callable[[], Sequence[MadeRace]],
    *,
    left_out: int = 0,
    file: str = "kernel.cu",
) -> None:
    """Let each launch find the races that ``made()`` returns, instead of its own."""
    from tcuda.emulation.kernels import function, module

    def lines(library: bytes, offsets: Sequence[int]) -> list[tuple[str, int] | None]:
        return [(file, offset) if offset else None for offset in offsets]

    monkeypatch.setattr(function, "_core", _Core(made, left_out))
    monkeypatch.setattr(module, "source_lines", lines)
