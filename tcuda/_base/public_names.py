"""The names that ``dir()`` of a public module shows: an editor and a shell complete these names."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def public_names(module: str) -> Callable[[], list[str]]:
    """Return the function ``__dir__`` of a module: its ``__all__``, without what the module imports for its own use.

    Names that begin with an underscore are listed too, because torch has such names, and because tools look for names
    of Python, such as ``__file__``.

    Args:
        module: The name of the module.
    """

    def names() -> list[str]:
        found = vars(sys.modules[module])
        return sorted({*found["__all__"], *(name for name in found if name.startswith("_"))})

    return names


__all__ = ["public_names"]
