"""The variable that a program has for an array, read off the source: the array itself is gone when a race is found."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING, NamedTuple

from tcuda.sanitizer._page.sources import lines_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda.sanitizer._stacks import Frame


class Use(NamedTuple):
    """A use of an array in a program.

    Attributes:
        name: The variable or the attribute that has the array there; None without a known name.
        place: The frame of the use, in the function that has the variable.
        makes_array: Whether the statement of the use makes the array, which does not exist before.
    """

    name: str | None
    place: Frame
    makes_array: bool


def use_of(allocated: Sequence[Frame], used: Sequence[Frame], *, writes: bool) -> Use | None:
    """Return how a program names an array where the program uses the array.

    Args:
        allocated: The frames of the program at the allocation of the array, innermost first.
        used: The frames of the program at the use, innermost first.
        writes: Whether the use writes the array. In `x = x + 1`, the read is one of the earlier array.

    Returns:
        None if no frame of the use is known.
    """
    variable = _assigned(allocated)
    if variable is not None:
        name, owner = variable
        for frame in used:
            if not _has_variable(frame, owner, name):
                continue
            if writes and _is_same_statement(frame, owner) and _makes_one_array(owner):
                return Use(name, frame, True)
            if name in _read_in(frame):
                return Use(name, frame, False)
    if not used:
        return None
    return Use(None, used[0], any(_is_same_statement(frame, used[0]) for frame in allocated))


def _assigned(stack: Sequence[Frame]) -> tuple[str, Frame] | None:
    """Return the variable or the attribute that gets what the innermost function makes, and the frame that has it."""
    for frame in stack:
        statement = _statement(frame)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            is_named = len(targets) == 1 and isinstance(targets[0], (ast.Name, ast.Attribute))
            return (ast.unparse(targets[0]), frame) if is_named else None
        if not isinstance(statement, ast.Return):
            return None
    return None


def _read_in(frame: Frame) -> set[str]:
    """Return the variables and the attributes that the statement of a frame reads."""
    nodes = ast.walk(_statement(frame) or ast.Module([], []))
    named = (node for node in nodes if isinstance(node, (ast.Name, ast.Attribute)))
    return {ast.unparse(node) for node in named if isinstance(node.ctx, ast.Load)}


def _makes_one_array(frame: Frame) -> bool:
    """Return whether the statement of a frame has one call or operation, so that the array is no temporary array."""
    nodes = ast.walk(_statement(frame) or ast.Module([], []))
    return sum(isinstance(node, (ast.Call, ast.BinOp)) for node in nodes) == 1


def _has_variable(frame: Frame, owner: Frame, name: str) -> bool:
    """Return whether ``name`` means the same in two frames: in one function, or for `self` in one class."""
    if frame.filename != owner.filename:
        return False
    return frame.name == owner.name or (name.startswith("self.") and _class_of(frame) == _class_of(owner))


def _class_of(frame: Frame) -> int | None:
    """Return the first line of the innermost class that has the line of a frame."""
    around = [node.lineno for node in _around(frame) if isinstance(node, ast.ClassDef)]
    return max(around, default=None)


def _is_same_statement(one: Frame, other: Frame) -> bool:
    if (one.filename, one.name) != (other.filename, other.name):
        return False
    first, second = _statement(one), _statement(other)
    if first is None or second is None:
        return one.line == other.line
    return (first.lineno, first.end_lineno) == (second.lineno, second.end_lineno)


def _statement(frame: Frame) -> ast.stmt | None:
    """Return the innermost statement that has the line of a frame; None if the source is not known."""
    return max(_around(frame), key=lambda node: node.lineno, default=None)


def _around(frame: Frame) -> list[ast.stmt]:
    """Return the statements that have the line of a frame."""
    return [
        node
        for node in ast.walk(_tree(tuple(lines_of(frame.filename))))
        if isinstance(node, ast.stmt) and node.lineno <= frame.line <= (node.end_lineno or node.lineno)
    ]


@functools.lru_cache(maxsize=8)
def _tree(lines: tuple[str, ...]) -> ast.Module:
    try:
        return ast.parse("".join(lines))
    except (SyntaxError, ValueError, RecursionError):  # such as the magic commands of a notebook
        return ast.Module([], [])


__all__ = ["Use", "use_of"]
