"""The names of CuPy that emulated devices lack: what they are in CuPy, and why they are not here."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from types import ModuleType
from typing import NoReturn

_TABLE = Path(__file__).with_name("absent_names.json")
"""The names with their reasons. ``tests/support/cupy_tables.py`` writes the file from the tables of CuPy's names."""


def about(name: str) -> str:
    """Return what ``name`` is in CuPy, and why emulated devices lack the name; nothing for a name that CuPy lacks too.

    Args:
        name: The whole name, such as ``cupyx.cutensor``.
    """
    if ".__" in name:  # Python and its tools ask for many of these names
        return ""
    kind, reason = _absent().get(name, ("", ""))
    return f". {name} is {_with_article(kind)} of CuPy that emulated devices lack. {reason}" if kind else ""


def tell_reasons(module: ModuleType, path: str) -> None:
    """Let a module, and the modules in it, say why a missing name is missing.

    Args:
        module: The module of emulated devices. A module with a function ``__getattr__`` tells its reasons itself.
        path: The name of CuPy's module.
    """
    if "__getattr__" not in vars(module):

        def refuse(name: str) -> NoReturn:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}{about(f'{path}.{name}')}")

        module.__getattr__ = refuse  # type: ignore[method-assign]
    is_listed = "__dir__" in vars(module)  # Other modules also have modules that they only import.
    home = "tcuda.emulation." if is_listed else f"{module.__name__}."
    for name in dir(module):
        inner = vars(module).get(name)
        if isinstance(inner, ModuleType) and inner.__name__.startswith(home) and "__getattr__" not in vars(inner):
            tell_reasons(inner, f"{path}.{name}")


@functools.cache
def _absent() -> dict[str, tuple[str, str]]:
    """Return, by name, what the name is in CuPy, and the reason."""
    rows = json.loads(_TABLE.read_text(encoding="utf-8"))["rows"]
    return {
        name: (kind, row["reason"]) for row in rows for kind, names in row["names"].items() for name in names.split()
    }


def _with_article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
