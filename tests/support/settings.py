"""The settings of this process that a test must leave as found, because later tests have the same process."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

_OF_MODULES = {
    "the callbacks of on_out_of_memory()": ("tcuda.memory._relief", "_in_force"),
    "the checks of the race detector": ("tcuda.sanitizer._checks", "_active"),
    "the watcher of waits": ("tcuda._process.waits", "_watcher"),
}

_VARIABLES = ("CUDA_", "CUPY_", "PYTORCH_", "TCUDA_")
"""How the names of the variables begin that must not change. Libraries such as Dask set variables of their own."""

_OF_TORCH = "CUDA_MODULE_LOADING"
"""The variable that torch sets when a test uses torch on a GPU for the first time in the process."""


def settings() -> dict[str, Any]:
    """Return the settings by their names; those of tcuda only once tcuda is initialised."""
    found: dict[str, Any] = {
        "the environment": {
            name: value for name, value in os.environ.items() if name.startswith(_VARIABLES) and name != _OF_TORCH
        },
        "the folder": os.getcwd(),  # noqa: PTH109
        "the handler of SIGINT": signal.getsignal(signal.SIGINT),
    }
    lazy = sys.modules.get("tcuda._process.lazy")
    if lazy is None or not lazy.is_initialized():
        return found
    import tcuda
    from tcuda._process.ledger import conf, ledger

    found["the memory that the process may reserve"] = [
        tcuda.get_per_process_memory_fraction(device) for device in range(tcuda.device_count())
    ]
    found["the debug mode of waits"] = tcuda.get_sync_debug_mode()
    found["the settings of the allocator"] = conf()
    found["the cache of the allocator"] = ledger().caching
    for name, (module, attribute) in _OF_MODULES.items():
        if module in sys.modules:
            found[name] = getattr(sys.modules[module], attribute)
    return found


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return a sentence for each setting of ``before`` that has another value in ``after``."""
    return [
        f"{name[:1].upper()}{name[1:]} changed: {_difference(value, after[name])}."
        for name, value in before.items()
        if name in after and after[name] != value
    ]


def _difference(before: Any, after: Any) -> str:
    if isinstance(before, dict):
        names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        return ", ".join(f"{name} was {before.get(name)!r} and is {after.get(name)!r}" for name in names)
    return f"{before!r} before the test, and {after!r} now"


__all__ = ["changes", "settings"]
