"""The names of calls of the CUDA runtime in errors."""

from __future__ import annotations

from typing import Any, TypeAlias

from tcuda._base.errors import AcceleratorError

Call: TypeAlias = tuple[Any, ...]
"""The text of a call with places for its arguments, and the arguments.

The text is put together only when the call fails, because most calls succeed.
"""


def failure(status: int, call: Call, details: str = "") -> AcceleratorError:
    """Return the error for the failure ``status`` of ``call``, with what is known of the cause."""
    text, *arguments = call
    return AcceleratorError(status, text.format(*arguments), details)
