"""A hook that counts the memory that each line of a program uses."""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING, Any, TextIO

from tcuda._base.user_code import is_library, is_own
from tcuda.emulation.cuda.memory_hook import MemoryHook

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_UNITS = "KMGTPE"


class _Calls:
    """The bytes that calls have taken, and the calls that they made, by file, line and function."""

    def __init__(self) -> None:
        self.used = self.acquired = 0
        self.inner: dict[tuple[str, int, str], _Calls] = {}

    def add(self, used: int, acquired: int, stack: Iterable[tuple[str, int, str]]) -> None:
        """Count bytes for these calls and for the calls of ``stack``, from the outermost call on."""
        calls = self
        calls._count(used, acquired)
        for place in stack:
            calls = calls.inner.setdefault(place, _Calls())
            calls._count(used, acquired)

    def _count(self, used: int, acquired: int) -> None:
        self.used += used
        self.acquired += acquired

    def lines(self, name: str, depth: int = 0) -> Iterator[str]:
        """Yield the lines of a report on these calls, whose name is ``name``."""
        yield f"{'  ' * depth}{name} ({_readable(self.used)}, {_readable(self.acquired)})"
        for (file, line, function), calls in self.inner.items():
            yield from calls.lines(f"{file}:{line}:{function}", depth + 1)


class LineProfileHook(MemoryHook):
    """A hook that counts memory by the lines of the program (``cupy.cuda.memory_hooks.LineProfileHook``).

    Args:
        max_depth: The number of levels of the report, with the root; 0 for no limit.
    """

    __module__ = "tcuda.emulation.cuda.memory_hooks"

    name = "LineProfileHook"

    def __init__(self, max_depth: int = 0) -> None:
        self._max_depth = max_depth
        self._root = _Calls()

    def malloc_preprocess(self, **kwargs: Any) -> None:
        """Count memory that a pool hands out."""
        self._root.add(kwargs["mem_size"], 0, self._stack())

    def alloc_preprocess(self, **kwargs: Any) -> None:
        """Count memory that a pool takes of the device."""
        self._root.add(0, kwargs["mem_size"], self._stack())

    def _stack(self) -> list[tuple[str, int, str]]:
        frames = traceback.extract_stack()
        while frames and is_library(frames[-1].filename):  # CuPy's own functions are compiled, and in no stack
            frames.pop()
        stack = [(frame.filename, frame.lineno or 0, frame.name) for frame in frames if not is_own(frame.filename)]
        return stack[: self._max_depth - 1] if self._max_depth > 0 else stack

    def print_report(self, file: TextIO | None = None) -> None:
        """Write, for each line of the program, the bytes that pools have handed out and those taken of the device.

        Args:
            file: The text file to which the lines are written; the standard output of now if None.
        """
        file = sys.stdout if file is None else file
        for line in self._root.lines("_root"):
            print(line, file=file)
        file.flush()


def _readable(size: float) -> str:
    unit = ""
    for larger in _UNITS:
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.2f}{unit}B"


__all__ = ["LineProfileHook"]
