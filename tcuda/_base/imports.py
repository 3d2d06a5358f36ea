"""Waiting for the import of a module that the program may import at any time, or never."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class FollowedImport:
    """A finder of modules that waits for the import of one module, and finds no module by itself.

    Args:
        name: The full name of the module.
        imported: The function that is called with the module after the module has run, each time the module runs.
    """

    def __init__(self, name: str, imported: Callable[[ModuleType], object]) -> None:
        self._name = name
        self._imported = imported

    def begin(self) -> None:
        """Wait for imports of the module from now on; if the module is imported already, call the function at once."""
        sys.meta_path.insert(0, self)
        if sys.modules.get(self._name) is not None:
            self._imported(importlib.import_module(self._name))  # waits while another thread imports the module

    def end(self) -> bool:
        """Wait for no more imports, and return whether the finder waited until now."""
        if self not in sys.meta_path:
            return False
        sys.meta_path.remove(self)
        return True

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module spec of the other finders, with a loader that calls the function at its end."""
        if name != self._name:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        found = (finder.find_spec(name, path, target) for finder in others if hasattr(finder, "find_spec"))
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            self._follow(spec.loader)
        return spec

    def _follow(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            self._imported(module)

        loader.exec_module = exec_module
