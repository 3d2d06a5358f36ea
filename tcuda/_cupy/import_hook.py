"""The hook by which the first use of CuPy initialises tcuda, in a program that imports both.

The program may import CuPy before tcuda, after tcuda, or not at all. So the hook waits for the import of CuPy.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from tcuda._backend import backend_of
from tcuda._cupy import takeover
from tcuda._process.lazy import _lazy_init, is_initialized
from tcuda._runtime import runtime

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_CUPY = "cupy"


class _ImportHook:
    """A finder of modules that waits for the import of CuPy, and finds no module by itself."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module spec of the other finders, with a loader that watches CuPy after the module has run."""
        if name != _CUPY:
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
            self.end(module)

        loader.exec_module = exec_module

    def end(self, module: ModuleType) -> None:
        """Watch ``module``, which is CuPy, and wait for no more imports."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            takeover.watch(module, _initialize)


def _initialize() -> None:
    """Initialise tcuda if CuPy makes the arrays of the runtime in use, and a device exists.

    Without a device, CuPy raises its own error.
    """
    if is_initialized():
        return
    in_use = runtime()
    if backend_of(in_use).array_module == _CUPY and in_use.visibleDeviceCount():
        _lazy_init()


def watch_cupy() -> None:
    """Let the first use of CuPy initialise tcuda, whether CuPy is imported already or later."""
    hook = _ImportHook()
    sys.meta_path.insert(0, hook)
    if sys.modules.get(_CUPY) is not None:
        hook.end(importlib.import_module(_CUPY))  # the call waits while another thread is importing CuPy
