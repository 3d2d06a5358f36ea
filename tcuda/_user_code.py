"""The rule that tells the code of the user's program from the code of the libraries that the program calls.

The rule reads names of files only, because a stack may come from another machine.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_PACKAGE = f"{Path(__file__).parent}{os.sep}"  # The folder of tcuda, which may be outside of site-packages.
_EXAMPLE = f"demo{os.sep}"  # The example program, which is a user of tcuda like any other program.
_MACHINERY = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]"
    r"(?:(?:cupy|cupyx|cupy_backends|numpy|torch)[/\\]|tcuda[/\\](?!demo[/\\]))"
    r"|[/\\][Ll]ib(?:64)?[/\\]python3[^/\\]*[/\\](?!(?:site|dist)-packages[/\\])"
)
_PYTHON = re.compile(r"\.pyw?$|^<(?!frozen |unknown)")  # <stdin>, <ipython-input-1-...>


def is_python(filename: str) -> bool:
    """Return whether a file has Python code, and neither native code nor the start of the interpreter."""
    return bool(_PYTHON.search(filename))


def is_user_code(filename: str) -> bool:
    """Return whether a file has Python code of a program that uses tcuda, or of an installed program.

    Python's own modules, tcuda, CuPy, NumPy and torch are no such programs. The demo of tcuda is one.
    """
    if filename.startswith(_PACKAGE):
        return filename.startswith(_EXAMPLE, len(_PACKAGE))
    return is_python(filename) and not _MACHINERY.search(filename)


__all__ = ["is_python", "is_user_code"]
