"""The lines of the program that capture the nodes of graphs: whether the runtime records the lines."""

from __future__ import annotations

import os

VARIABLE = "TCUDA_GRAPH_LINES"
"""The environment variable by which the lines are recorded."""

_checked = False
"""Whether a race detector watches the process."""


def are_asked_for() -> bool:
    """Return whether the environment asks for the lines.

    Raises:
        ValueError: The variable is neither 0 nor 1.
    """
    value = os.environ.get(VARIABLE, "")
    if value not in ("", "0", "1"):
        raise ValueError(f"{VARIABLE} is {value!r}; it can be '0' or '1'.")
    return value == "1"


def are_recorded() -> bool:
    """Return whether the next captures record the lines: the environment asks for the lines, or a check is on.

    Raises:
        ValueError: The variable is neither 0 nor 1.
    """
    return are_asked_for() or _checked


def check(*, on: bool) -> None:
    """Let the next captures record the lines while a race detector watches."""
    global _checked
    _checked = on
