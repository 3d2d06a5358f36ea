"""The hook by which the first use of CuPy initialises tcuda, in a program that imports both.

The program may import CuPy before tcuda, after tcuda, or not at all. So the hook waits for the import of CuPy.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tcuda._backend import backend_of
from tcuda._base.imports import FollowedImport
from tcuda._cupy import takeover
from tcuda._process.lazy import _lazy_init, is_initialized
from tcuda._runtime import runtime

if TYPE_CHECKING:
    from types import ModuleType

_CUPY = "cupy"


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

    def watch(module: ModuleType) -> None:
        # Emulated devices may have taken the place of the module while it was imported.
        if sys.modules.get(_CUPY) is module and hook.end():
            takeover.watch(module, _initialize)

    hook = FollowedImport(_CUPY, watch)
    hook.begin()
