"""The calls of the runtime that the scopes of the core make for ``with device(0):`` and ``with stream(s):``."""

from __future__ import annotations

from typing import Any

from tcuda import _core
from tcuda._process.fork import call_in_child
from tcuda._process.lazy import _lazy_init, backend, cuda, is_initialized


def _find_calls() -> tuple[tuple[Any, ...], bool]:
    """Initialise tcuda, and return the calls, and whether the core may keep them."""
    _lazy_init()
    calls = (
        cuda.getDevice,
        cuda.setDevice,
        backend.current_stream,
        backend.use_stream,
        backend.enter_stream,
        backend.exit_stream,
        backend.default_stream,
    )
    return calls, is_initialized()


_core.find_calls_by(_find_calls)
call_in_child(_core.forget_scopes)
