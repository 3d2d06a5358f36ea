"""Errors that Python drops because they were raised in a destructor, or because they ended a thread.

While a check is active, hooks note such errors, so that the check can raise them at its end.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


class _Noting:
    """A hook of Python that notes the errors of the sanitizer, and then calls the hook of the program.

    Args:
        module: The module that has the hook.
        name: The name of the hook.
    """

    def __init__(self, module: ModuleType, name: str) -> None:
        self._module = module
        self._name = name
        self._before: Callable[[Any], object] | None = None
        self._ours: Callable[[Any], object] = self._note

    def begin(self) -> None:
        """Note the errors from now on."""
        if getattr(self._module, self._name) is not self._ours:
            self._before = getattr(self._module, self._name)
            setattr(self._module, self._name, self._ours)

    def end(self) -> None:
        """Give the hook back, unless the program has replaced it meanwhile."""
        if getattr(self._module, self._name) is self._ours:
            setattr(self._module, self._name, self._before)
            self._before = None

    def _note(self, dropped: Any) -> None:
        note = getattr(dropped.exc_value, "_note_lost", None)
        if note is not None:
            note(dropped.exc_value)
        before = self._before if self._before is not None else getattr(self._module, f"__{self._name}__")
        before(dropped)


_HOOKS = (_Noting(sys, "unraisablehook"), _Noting(threading, "excepthook"))


def note_lost_errors() -> None:
    """Note the errors of the sanitizer that Python drops from now on."""
    for hook in _HOOKS:
        hook.begin()


def stop_noting() -> None:
    """Give the hooks back, unless the program has replaced them meanwhile."""
    for hook in _HOOKS:
        hook.end()
