"""Hooks that are called when a program takes memory of a pool or gives memory back (``cupy.cuda.memory_hook``)."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Self


class _Hooks(threading.local):
    def __init__(self) -> None:
        self.by_name: dict[str, MemoryHook] = {}


_hooks = _Hooks()

changed: list[Callable[[int], object]] = []
"""Called with 1 before a hook is registered, and with -1 after a hook was removed."""


def get_memory_hooks() -> dict[str, MemoryHook]:
    """Return the hooks of this thread, by name."""
    return _hooks.by_name


class MemoryHook:
    """The base class of hooks (``cupy.cuda.MemoryHook``). A hook is registered for this thread in a ``with`` block.

    Attributes:
        name: The name. No two hooks of a thread have the same name.
    """

    __module__ = "tcuda.emulation.cuda"

    name = "MemoryHook"

    def __enter__(self) -> Self:
        if self.name in _hooks.by_name:
            raise KeyError(f"memory hook {self.name} already exists")
        _tell(1)
        _hooks.by_name[self.name] = self
        return self

    def __exit__(self, *error: object) -> None:
        del _hooks.by_name[self.name]
        _tell(-1)

    def alloc_preprocess(self, **kwargs: Any) -> None:
        """Called before a pool takes memory of the device, with ``device_id`` and ``mem_size``."""

    def alloc_postprocess(self, **kwargs: Any) -> None:
        """Called after a pool took memory of the device, with ``mem_ptr`` too, which is 0 after an error."""

    def malloc_preprocess(self, **kwargs: Any) -> None:
        """Called before a pool hands out memory, with ``device_id``, ``size`` and ``mem_size``, the rounded size."""

    def malloc_postprocess(self, **kwargs: Any) -> None:
        """Called after a pool handed out memory, with ``mem_ptr`` and ``pmem_id`` too, which are 0 after an error."""

    def free_preprocess(self, **kwargs: Any) -> None:
        """Called before a pool gets memory back, with ``device_id``, ``mem_size``, ``mem_ptr`` and ``pmem_id``."""

    def free_postprocess(self, **kwargs: Any) -> None:
        """Called after a pool got memory back, with the same arguments as :meth:`free_preprocess`."""


@contextlib.contextmanager
def around(event: str, facts: dict[str, int], results: dict[str, int]) -> Iterator[dict[str, int]]:
    """Call the hooks of this thread before and after a scope.

    Args:
        event: ``"alloc"``, ``"malloc"`` or ``"free"``.
        facts: The arguments of the hooks before and after.
        results: More arguments of the hooks after the scope. The scope can change them.
    """
    hooks = list(_hooks.by_name.values())
    for hook in hooks:
        getattr(hook, f"{event}_preprocess")(**facts)
    try:
        yield results
    finally:
        for hook in hooks:
            getattr(hook, f"{event}_postprocess")(**facts, **results)


def _tell(change: int) -> None:
    for function in changed:
        function(change)


__all__ = ["MemoryHook", "get_memory_hooks"]
