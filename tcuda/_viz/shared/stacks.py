"""Numbered stacks, each stored once, and the allocation site of each stack."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from tcuda._base.cells import shown
from tcuda._base.user_code import is_python, is_user_code

if TYPE_CHECKING:
    from collections.abc import Sequence


class Frame(NamedTuple):
    """A frame of a stack, in Python or native code."""

    name: str
    filename: str
    line: int


NO_STACK = 0

_ALLOCATORS = re.compile(r"unwind|CapturedTraceback|gather_with_cpp|Allocator")  # innermost frames of native stacks


class Stacks:
    """The stacks of a page, each with the innermost frame first. The number 0 means that no stack was recorded.

    A stack in two scopes of memory has two numbers, so that the number tells the scope too.
    """

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.stacks: list[tuple[int, ...]] = [()]
        self.scopes: list[str] = [""]
        """The scope of each stack; an empty text outside of all scopes."""
        self._number_of_frame: dict[Frame, int] = {}
        self._number_of_stack: dict[tuple[tuple[int, ...], str], int] = {((), ""): NO_STACK}
        self._number_by_id: dict[int, int] = {}
        # A list of a million frames may be the stack of every allocation, so each list is converted once. The lists are
        # stored, because only the id() of a live object is unique.
        self._stack_by_id: dict[tuple[int, str], tuple[Sequence[dict[str, Any]], int]] = {}
        self._shown_file: dict[str, str] = {}
        self._kind_of_file: dict[str, tuple[bool, bool]] = {}
        self._sites: list[int | None] = [None]

    def number(self, frames: Sequence[dict[str, Any]], scope: str = "") -> int:
        """Return the number of a stack. The dicts in ``frames`` must stay alive, because ``id()`` identifies them."""
        known = self._stack_by_id.get((id(frames), scope))
        if known is not None:
            return known[1]
        stack = tuple([self._frame(frame) for frame in frames])
        if (stack, scope) not in self._number_of_stack:
            self._number_of_stack[stack, scope] = len(self.stacks)
            self.stacks.append(stack)
            self.scopes.append(scope)
            self._sites.append(self._find_site(stack))
        number = self._number_of_stack[stack, scope]
        self._stack_by_id[id(frames), scope] = frames, number
        return number

    def site(self, stack: int) -> int | None:
        """Return the frame that is the allocation site of ``stack``, as a number; None for the empty stack."""
        return self._sites[stack]

    def is_user(self, frame: int) -> bool:
        """Return whether a frame is in the code of the user's program, or of an installed program."""
        return self._kind(frame)[1]

    def _kind(self, frame: int) -> tuple[bool, bool]:
        """Return whether a frame is in Python code, and whether this code is the user's."""
        filename = self.frames[frame].filename
        kind = self._kind_of_file.get(filename)
        if kind is None:
            kind = self._kind_of_file[filename] = is_python(filename), is_user_code(filename)
        return kind

    def _frame(self, frame: dict[str, Any]) -> int:
        number = self._number_by_id.get(id(frame))
        if number is None:
            key = Frame(frame["name"], self._shown(frame["filename"]), frame["line"])
            number = self._number_of_frame.setdefault(key, len(self.frames))
            if number == len(self.frames):
                self.frames.append(key)
            self._number_by_id[id(frame)] = number
        return number

    def _shown(self, filename: str) -> str:
        """Return the name of a file, or of a cell if the file is one of this notebook."""
        name = self._shown_file.get(filename)
        if name is None:
            name = self._shown_file[filename] = shown(filename)
        return name

    def _find_site(self, stack: tuple[int, ...]) -> int | None:
        """Return the innermost frame of user code, or else of Python code, or else the caller of the allocator."""
        users = (frame for frame in stack if self.is_user(frame))
        pythons = (frame for frame in stack if self._kind(frame)[0])
        callers = (frame for frame in stack if not _ALLOCATORS.search(self.frames[frame].name))
        return next(itertools.chain(users, pythons, callers, stack), None)


def packed(stacks: Stacks) -> dict[str, Any]:
    """Return the stacks as data of a page, in which each name and each file is stored once."""
    names: dict[str, int] = {}
    frames = [
        (
            names.setdefault(frame.name, len(names)),
            names.setdefault(frame.filename, len(names)),
            frame.line,
            int(stacks.is_user(number)),
        )
        for number, frame in enumerate(stacks.frames)
    ]
    sites = [stacks.site(stack) for stack in range(len(stacks.stacks))]
    return {"texts": list(names), "frames": frames, "stacks": stacks.stacks, "siteOfStack": sites}


__all__ = ["NO_STACK", "Frame", "Stacks", "packed"]
