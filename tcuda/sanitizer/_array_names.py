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
        name: The variable that has the array there; None without a known name.
        place: The frame of the use, in the function that has the variable.
    """

    name: str | None
    place: Frame


def use_of(allocated: Sequence[Frame], used: Sequence[Frame]) -> Use | None:
    """Return how a program names an array where the program uses the array.

    Args:
        allocated: The frames of the program at the allocation of the array, innermost first.
        used: The frames of the program at the use, innermost first.

    Returns:
        None if no frame of the use is known.
    """
    variable = _assigned(allocated)
    if variable is not None:
        name, owner = variable
        for frame in used:
            if (frame.filename, frame.name) == (owner.filename, owner.name) and name in _read_in(frame):
                return Use(name, frame)
    return Use(None, used[0]) if used else None


def _assigned(stack: Sequence[Frame]) -> tuple[str, Frame] | None:
    """Return the variable to which a statement assigns what the innermost function makes, and the frame that has it."""
    for frame in stack:
        statement = _statement(frame)
        if isinstance(statement, ast.Assign):
            targets = statement.targets
            return (targets[0].id, frame) if len(targets) == 1 and isinstance(targets[0], ast.Name) else None
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            return statement.target.id, frame
        if not isinstance(statement, ast.Return):
            return None
    return None


def _read_in(frame: Frame) -> set[str]:
    """Return the variables that the statement of a frame reads."""
    nodes = ast.walk(_statement(frame) or ast.Module([], []))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _statement(frame: Frame) -> ast.stmt | None:
    """Return the innermost statement that has the line of a frame; None if the source is not known."""
    around = [
        node
        for node in ast.walk(_tree(tuple(lines_of(frame.filename))))
        if isinstance(node, ast.stmt) and node.lineno <= frame.line <= (node.end_lineno or node.lineno)
    ]
    return max(around, key=lambda node: node.lineno, default=None)


@functools.lru_cache(maxsize=8)
def _tree(lines: tuple[str, ...]) -> ast.Module:
    try:
        return ast.parse("".join(lines))
    except (SyntaxError, ValueError, RecursionError):  # such as the magic commands of a notebook
        return ast.Module([], [])


__all__ = ["Use", "use_of"]
