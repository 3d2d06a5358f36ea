"""The starts of torch's profiler, which needs CUPTI for itself."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

from tcuda._base.imports import FollowedImport

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_MODULE = "torch.autograd.profiler"

_STARTS = ("_prepare_profiler", "_enable_profiler")
"""The names in the module of the functions that start the profiler.

``torch.profiler.profile`` and ``torch.autograd.profiler.profile`` call both with a set of activities. The first profile
of a process initialises CUPTI, whatever its activities are, and a failure holds for all later profiles.
"""


class ProfilerStarts:
    """Calls ``before`` when torch's profiler is about to start, from :meth:`begin` to :meth:`end`.

    The program may import torch before or after the start, or never. In a torch that lacks one of the two functions,
    nothing is replaced.

    Args:
        before: The function. Each start calls it.
    """

    def __init__(self, before: Callable[[], None]) -> None:
        self._before = before
        self._on = False
        self._import = FollowedImport(_MODULE, self._replace)
        self._lock = threading.Lock()  # of the members below
        self._module: ModuleType | None = None
        self._originals: dict[str, Any] = {}
        self._replacements: dict[str, Any] = {}

    def begin(self) -> None:
        """Wait for starts of the profiler from now on."""
        self._on = True
        self._import.begin()

    def end(self) -> None:
        """Let the profiler and the imports be as before; nothing happens after the first call.

        A function that the program has replaced since stays.
        """
        self._import.end()
        with self._lock:
            self._on = False
            module, self._module = self._module, None
            for name, replacement in self._replacements.items():
                if getattr(module, name, None) is replacement:
                    setattr(module, name, self._originals[name])
            self._replacements = {}

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
