"""The names that ``dir()`` of a public module shows: an editor and a shell complete these names."""

from __future__ import annotations

import sys
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def public_names(module: str) -> Callable[[], list[str]]:
    """Return the function ``__dir__`` of a module: its ``__all__``, without what the module imports for its own use.

    Names of Python, such as ``__file__``, are listed too, because tools look for them, and so are functions whose names
    begin with an underscore, because programs of torch call such functions.

    Args:
        module: The name of the module.
    """

    def names() -> list[str]:
        found = vars(sys.modules[module])
        return sorted({*found["__all__"], *filter(lambda name: is_listed(name, found[name]), found)})

    return names


def is_listed(name: str, value: object) -> bool:
    """Return whether ``dir()`` shows a name that begins with an underscore."""
    return name.startswith("__") or (name.startswith("_") and isinstance(value, FunctionType | BuiltinFunctionType))


__all__ = ["is_listed", "public_names"]
