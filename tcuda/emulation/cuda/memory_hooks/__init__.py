"""Hooks that print or count the memory that a program uses (``cupy.cuda.memory_hooks``)."""

from __future__ import annotations

from tcuda.emulation.cuda.memory_hooks import debug_print, line_profile
from tcuda.emulation.cuda.memory_hooks.debug_print import DebugPrintHook
from tcuda.emulation.cuda.memory_hooks.line_profile import LineProfileHook

__all__ = ["DebugPrintHook", "LineProfileHook", "debug_print", "line_profile"]
