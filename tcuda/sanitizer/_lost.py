"""Errors that Python drops because they were raised in a destructor.

While a check is active, a hook notes such errors, so that the check can raise them at its end.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_before: Callable[[Any], object] | None = None
"""The hook of the program, which is called too; None while no hook is installed."""


def note_lost_errors() -> None:
    """Note the errors of the sanitizer that Python drops from now on."""
    global _before
    if sys.unraisablehook is not _hook:
        _before = sys.unraisablehook
        sys.unraisablehook = _hook


def stop_noting() -> None:
    """Give ``sys.unraisablehook`` back, unless the program has replaced it meanwhile."""
    global _before
    if sys.unraisablehook is _hook and _before is not None:
        sys.unraisablehook = _before
        _before = None


def _hook(unraisable: Any) -> None:
    note = getattr(unraisable.exc_value, "_note_lost", None)
    if note is not None:
        note(unraisable.exc_value)
    before = _before if _before is not None else sys.__unraisablehook__
    before(unraisable)
