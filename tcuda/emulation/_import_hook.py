"""The names ``cupy`` and ``cupyx`` for the modules of emulated devices, in a process that has asked for these names."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_STAND_INS = {"cupy": "tcuda.emulation.xp", "cupyx": "tcuda.emulation.cupyx"}
"""The packages of CuPy that emulated devices have, and the modules that stand for them."""

_ABSENT = ("cupy_backends",)
"""The packages of CuPy that emulated devices do not have."""


class _Alias:
    """A loader that puts another module in the place of the module to load.

    Args:
        target: The other module.
    """

    def __init__(self, target: ModuleType) -> None:
        self._target = target

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python create a module, which :meth:`exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the other module in the place of ``module``."""
        if module.__name__ in _STAND_INS and not hasattr(self._target, "__path__"):
            # Python asks the finders for modules below a package only, and finds no files for them in an empty path.
            self._target.__path__ = []
        sys.modules[module.__name__] = self._target


class _Finder:
    """A finder that finds the modules of emulated devices under the names of CuPy's modules."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the module that stands for ``name``; None if no module does."""
        package, *parts = name.split(".")
        if package not in _STAND_INS:
            return None
        module: Any = importlib.import_module(_STAND_INS[package])
        for part in parts:
            module = _submodule(module, part)
            if module is None:
                return None
        return ModuleSpec(name, _Alias(module), is_package=True)  # type: ignore[arg-type]


def _submodule(module: ModuleType, name: str) -> ModuleType | None:
    """Return a module of a stand-in: a public attribute, or a private module in the folder of the stand-in."""
    found = getattr(module, name, None)
    if isinstance(found, ModuleType) and (name in dir(module) or found.__name__ == f"{module.__name__}.{name}"):
        return found
    return None


def install() -> None:
    """Let ``import cupy`` import the array namespace of emulated devices from now on, also if CuPy is installed.

    Raises:
        RuntimeError: CuPy has been imported already.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    if any(name in sys.modules for name in (*_STAND_INS, *_ABSENT)):
        raise RuntimeError("CuPy has been imported already. Start the program with python -m tcuda.emulation.")
    sys.meta_path.insert(0, _Finder())
    for name in _ABSENT:
        sys.modules[name] = None  # type: ignore[assignment]  # Python's mark of a module that cannot be imported
