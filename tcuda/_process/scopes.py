"""The scopes of memory: the parts of the program that are open in this context, and what the core knows of them."""

from __future__ import annotations

import itertools
import os
from contextvars import ContextVar

from tcuda import _core

_VARIABLE = "TCUDA_MEMORY_SCOPES"
"""The environment variable by which NVTX ranges are scopes."""


class Part:
    """A part of the program that is open: a scope, or an NVTX range.

    Args:
        name: The name of the scope; an empty text for a range that is no scope.
        is_range: Whether the part is an NVTX range.
    """

    __slots__ = ("is_range", "name")

    def __init__(self, name: str, is_range: bool = False) -> None:
        self.name = name
        self.is_range = is_range


_open: ContextVar[tuple[int, tuple[Part, ...]]] = ContextVar("tcuda.memory.scope", default=(0, ()))
"""The number of the innermost scope, which is 0 outside of all scopes, and the open parts from the outermost on."""

_names: dict[str, int] = {}
_name_numbers = itertools.count()
_scopes: dict[tuple[int, str], int] = {}
"""The number of each scope, by the number of the scope around it and the name."""
_paths: dict[int, tuple[str, ...]] = {0: ()}
"""The names of each scope, from the outermost on, by the number of the scope."""


def names() -> dict[str, int]:
    """Return the names of all scopes that the process has opened, with the number of each name."""
    return _names


def begin(part: Part) -> None:
    """Open ``part`` inside the open parts of this context."""
    scope, parts = _open.get()
    _change(_within(scope, part.name), (*parts, part))


def end(part: Part) -> None:
    """Close ``part``; nothing happens if ``part`` is not open in this context."""
    parts = _open.get()[1]
    if part in parts:
        _close(parts.index(part), parts)


def end_range() -> None:
    """Close the innermost range of this context, if a range is open."""
    parts = _open.get()[1]
    place = max((place for place, part in enumerate(parts) if part.is_range), default=-1)
    if place >= 0:
        _close(place, parts)


def _close(place: int, parts: tuple[Part, ...]) -> None:
    rest = parts[:place] + parts[place + 1 :]
    scope = 0
    for part in rest:
        scope = _within(scope, part.name)
    _change(scope, rest)


def _change(scope: int, parts: tuple[Part, ...]) -> None:
    _open.set((scope, parts))
    _core.follow_scopes(_open, scope)


def _within(outer: int, name: str) -> int:
    """Return the number of the scope ``name`` in ``outer``: ``outer`` itself if that has the name already."""
    if not name or name in _paths[outer]:
        return outer
    if (known := _scopes.get((outer, name))) is None:
        number = _names.setdefault(name, next(_name_numbers))
        path = (*_paths[outer], name)
        made = _core.new_scope(outer, number, ".".join(path))
        _paths[made] = path  # before another thread can find the number
        known = _scopes.setdefault((outer, name), made)  # the first thread's scope counts
    return known


def ranges_are_scopes() -> bool:
    """Return whether the environment asks for scopes of NVTX ranges.

    Raises:
        ValueError: ``TCUDA_MEMORY_SCOPES`` has a value that the variable cannot have.
    """
    wanted = os.environ.get(_VARIABLE, "").strip()
    if wanted not in ("", "nvtx"):
        raise ValueError(f"{_VARIABLE} is {wanted!r}; write nvtx, or remove the variable.")
    return wanted == "nvtx"
