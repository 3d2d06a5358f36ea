"""Calls of listeners after each import of an extension module."""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from types import ModuleType

CreateModule = Callable[[ExtensionFileLoader, ModuleSpec], ModuleType]


class _Wrapper:
    """A wrapper of the import of extension modules, which is there while there are listeners."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[], object]] = []
        self.lock = threading.Lock()
        self._before: CreateModule = ExtensionFileLoader.create_module
        self._ours: CreateModule | None = None

    def wrap(self) -> None:
        """Call the listeners after each import of an extension module."""
        before: CreateModule = ExtensionFileLoader.create_module

        def create_module(self: ExtensionFileLoader, spec: ModuleSpec) -> ModuleType:
            module = before(self, spec)
            for listener in list(_wrapper.listeners):
                listener()
            return module

        self._before, self._ours = before, create_module
        # mypy refuses each replacement of a method, by another error in each version of the stubs.
        ExtensionFileLoader.create_module = create_module  # type: ignore[assignment, method-assign, unused-ignore]

    def unwrap(self) -> None:
        """Take the wrapper away, unless the program has wrapped the method since."""
        if ExtensionFileLoader.create_module is self._ours:
            ExtensionFileLoader.create_module = self._before  # type: ignore[assignment, method-assign, unused-ignore]
        self._ours = None


_wrapper = _Wrapper()


def listen(listener: Callable[[], object]) -> None:
    """Call ``listener`` after each import of an extension module, which may have loaded shared libraries."""
    with _wrapper.lock:
        _wrapper.listeners.append(listener)
        if len(_wrapper.listeners) == 1:
            _wrapper.wrap()


def stop_listening(listener: Callable[[], object]) -> None:
    """Undo one call of :func:`listen`; without such a call, do nothing."""
    with _wrapper.lock:
        if listener not in _wrapper.listeners:
            return
        _wrapper.listeners.remove(listener)
        if not _wrapper.listeners:
            _wrapper.unwrap()
