"""Code that is in no file, as reports name the code: cells of a notebook, and strings of which kernels are made.

IPython gives the code of cells names such as ``614166370.py``.
"""

from __future__ import annotations

import linecache
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_SHELL = re.compile(r"[/\\](?:IPython|ipykernel)[/\\]")
_RUNS_CELLS = re.compile(r"[/\\]IPython[/\\]core[/\\]interactiveshell\.py$")
_NUMBERED = re.compile(r"<ipython-input-(\d+)-")
_NAME = re.compile(r"cell \[\d+\]")
_PART = re.compile(r"(\w+): (after_loop|loop_prep|map_expr|operation|preamble)")
"""The name of a string of a kernel, such as ``step: operation``, as the messages of the compiler have the name."""


def shown(filename: str) -> str:
    """Return the name of a cell, such as ``cell [3]``; the name of another file stays as it is.

    :mod:`linecache` knows the lines of the cell by both names afterwards.

    Args:
        filename: The name that the code has for Python.
    """
    number = _number(filename)
    if number is None:
        return filename
    name = f"cell [{number}]"
    if name not in linecache.cache:
        lines = linecache.getlines(filename)
        linecache.cache[name] = sum(map(len, lines)), None, lines, name  # without a time, the lines are kept
    return name


def line_in(filename: str, line: int) -> str | None:
    """Return a line of no file in words: ``cell [3], line 2``, or ``line 1 of the operation of step``; else None."""
    if _NAME.fullmatch(filename):
        return f"{filename}, line {line}"
    part = _PART.fullmatch(filename)
    return f"line {line} of the {part[2]} of {part[1]}" if part else None


def is_shell(filename: str) -> bool:
    """Return whether a file belongs to IPython."""
    return bool(_SHELL.search(filename))


def runs_cells(name: str, filename: str) -> bool:
    """Return whether a function of IPython runs the code of cells, so that its callers are no part of a program."""
    return name == "run_code" and bool(_RUNS_CELLS.search(filename))


def is_outside(frame: FrameType) -> bool:
    """Return whether a frame runs cells, so that it and its callers are no part of a program."""
    return runs_cells(frame.f_code.co_name, frame.f_code.co_filename)


def _number(filename: str) -> str | None:
    """Return the number of a cell, as IPython counts it."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    named = None if shell is None else shell.compile.format_code_name(filename)
    if named is not None:  # such as ("Cell", "In[3]")
        return str(named[1]).removeprefix("In[").removesuffix("]")
    numbered = _NUMBERED.match(filename)
    return None if numbered is None else numbered[1]
