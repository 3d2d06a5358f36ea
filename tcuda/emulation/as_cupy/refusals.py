"""Refused imports of CuPy's modules and names: each is printed once on stderr, and kept for the summary of pytest.

A refusal is an ImportError. Many libraries take such an error for a machine without CuPy, and go on with NumPy without
a word. Tests of such a library then test NumPy only.
"""

from __future__ import annotations

import contextlib
import sys

from tcuda._base.user_code import calling_place

told: dict[str, str] = {}
"""The sentences about the refused imports of this process, by the name that was imported."""


def tell(name: str, reason: str) -> None:
    """Say that an import is refused, unless this was said before.

    Args:
        name: The name of the module, or of the member of a module.
        reason: The message of the error.
    """
    if name in told:
        return
    place = calling_place()
    at = "" if place is None else f" at {place}"
    told[name] = f"The import of {name}{at} was refused, so a library may have fallen back to NumPy: {reason}"
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # a closed stderr must not hide the error
            print(f"tcuda: {told[name]}", file=sys.stderr)


__all__ = ["tell", "told"]
