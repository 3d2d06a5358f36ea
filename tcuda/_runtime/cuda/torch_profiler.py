"""The starts of torch's profiler, which needs CUPTI for itself."""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_MODULE = "torch.autograd.profiler"

_STARTS = ("_prepare_profiler", "_enable_profiler")
"""The names in the module of the functions that start the profiler.

``torch.profiler.profile`` and ``torch.autograd.profiler.profile`` call both with a set of activities. The first profile
of a process initialises CUPTI, whatever its activities are, and a failure holds for all later profiles.
"""


class ProfilerStarts:
    """Calls ``before`` when torch's profiler is about to start, from :meth:`begin` to :meth:`end`.

    The program may import torch before or after the begin, or never. In a torch that lacks one of the two functions,
    nothing is replaced.

    Args:
        before: The function. Each start calls it.
    """

    def __init__(self, before: Callable[[], None]) -> None:
        self._before = before
        self._on = False
        self._lock = threading.Lock()  # of the members below
        self._module: ModuleType | None = None
        self._originals: dict[str, Any] = {}
        self._replacements: dict[str, Any] = {}

    def begin(self) -> None:
        """Wait for starts of the profiler from now on."""
        self._on = True
        sys.meta_path.insert(0, self)
        if sys.modules.get(_MODULE) is not None:
            self._replace(importlib.import_module(_MODULE))  # the call waits while another thread imports the module

    def end(self) -> None:
        """Let the profiler and the imports be as before; nothing happens after the first call.

        A function that the program has replaced since stays.
        """
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        with self._lock:
            self._on = False
            module, self._module = self._module, None
            for name, replacement in self._replacements.items():
                if getattr(module, name, None) is replacement:
                    setattr(module, name, self._originals[name])
            self._replacements = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module spec of the other finders, with a loader that replaces the functions at its end."""
        if name != _MODULE:
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
            self._replace(module)

        loader.exec_module = exec_module

    def _replace(self, module: ModuleType) -> None:
        starts = {name: getattr(module, name, None) for name in _STARTS}
        with self._lock:
            if not self._on or self._module is not None or not all(callable(start) for start in starts.values()):
                return
            self._module, self._originals = module, starts
            self._replacements = {name: self._announced(start) for name, start in starts.items()}
            for name, replacement in self._replacements.items():
                setattr(module, name, replacement)

    def _announced(self, start: Any) -> Callable[..., Any]:
        @functools.wraps(start)
        def announced(config: Any, activities: Any, *rest: Any) -> Any:
            if self._on and activities:  # emit_nvtx and emit_itt have no activities, and need no CUPTI
                self._before()
            return start(config, activities, *rest)

        return announced
