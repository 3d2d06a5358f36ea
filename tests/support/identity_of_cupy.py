"""Prints as JSON what objects call themselves: ``python identity_of_cupy.py NAME ...``, in a process with CuPy.

The names are whole names of CuPy, such as ``cupy.linalg.norm``.
"""

from __future__ import annotations

import importlib
import json
import sys
from types import ModuleType
from typing import Any


def identity(name: str) -> list[Any]:
    """Return the module and the name of the object with a name of CuPy."""
    owner, _, last = name.rpartition(".")
    found: Any
    try:
        found = importlib.import_module(name)
    except ModuleNotFoundError:
        found = getattr(importlib.import_module(owner), last)
    if isinstance(found, ModuleType):
        return [None, found.__name__]
    return [getattr(found, "__module__", None), getattr(found, "__qualname__", None) or found.__name__]


if __name__ == "__main__":
    print(json.dumps({name: identity(name) for name in sys.stdin.read().split()}))
