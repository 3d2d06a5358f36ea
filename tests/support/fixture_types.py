"""The types of the fixtures of ``conftest.py`` that are functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import contextlib
    import subprocess
    from collections.abc import Callable


class RunPython(Protocol):
    def __call__(self, code: str, **environment: str | None) -> subprocess.CompletedProcess[str]: ...


class OutputOf(Protocol):
    def __call__(self, code: str, **environment: str | None) -> str: ...


class Changes(Protocol):
    def __call__(self, device: int | None = None) -> contextlib.AbstractContextManager[dict[str, int]]: ...


class Captured(Protocol):
    def __call__(self, function: Callable[[], Any]) -> tuple[Any, Callable[[], None]]: ...


class HoldAtMost(Protocol):
    def __call__(self, more: int, device: int = 0) -> contextlib.AbstractContextManager[int]: ...


class CompiledCpp(Protocol):
    def __call__(self, name: str, *options: str) -> str: ...
