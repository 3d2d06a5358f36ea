"""A hook that prints each allocation and each free as a line of JSON."""

from __future__ import annotations

import json
import sys
from typing import Any, TextIO

from tcuda.emulation.cuda.memory_hook import MemoryHook


class DebugPrintHook(MemoryHook):
    """A hook that prints the arguments of the other hooks (``cupy.cuda.memory_hooks.DebugPrintHook``).

    Args:
        file: The text file to which the lines are written; the standard output of now if None.
        flush: Whether the file is flushed after each line.
    """

    __module__ = "tcuda.emulation.cuda.memory_hooks"

    name = "DebugPrintHook"

    def __init__(self, file: TextIO | None = None, flush: bool = True) -> None:
        self.file = sys.stdout if file is None else file
        self.flush = flush

    def alloc_postprocess(self, **kwargs: Any) -> None:
        """Print that a pool took memory of the device."""
        self._print("alloc", kwargs)

    def malloc_postprocess(self, **kwargs: Any) -> None:
        """Print that a pool handed out memory."""
        self._print("malloc", kwargs)

    def free_postprocess(self, **kwargs: Any) -> None:
        """Print that a pool got memory back."""
        self._print("free", kwargs)

    def _print(self, event: str, facts: dict[str, int]) -> None:
        shown = {name: hex(value) if name == "pmem_id" else value for name, value in facts.items()}
        print(json.dumps({"hook": event, **shown}, separators=(",", ":")), file=self.file, flush=self.flush)


__all__ = ["DebugPrintHook"]
