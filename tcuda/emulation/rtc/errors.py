"""The error of a source that cannot be compiled, and the order of the compiler's messages in the error."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOCATION = re.compile(r"(?P<file>[^\s:][^:\n]*):\d+(?::\d+)?: (?:fatal )?(?P<kind>error|warning|note)\b")
_CONTEXT = re.compile(r"In file included from |\s+from |[^:]+: (?:In|At) |[^:]+:\d+:\d+:\s+required from ")


class CompileException(Exception):
    """The error of a source that cannot be compiled, with the attributes of ``cupy.cuda.compiler.CompileException``.

    Attributes:
        source: The source.
        name: The name of the file in the messages.
        options: The options of the caller.
        backend: The compiler that CuPy would use, ``"nvrtc"`` or ``"nvcc"``.
    """

    def __init__(self, msg: str, source: str, name: str, options: Sequence[str], backend: str = "nvrtc") -> None:
        """Make the exception from ``msg``, the messages of the compiler, and the other attributes."""
        self._msg = msg
        self.source = source
        self.name = name
        self.options = options
        self.backend = backend
        super().__init__()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._msg, self.source, self.name, self.options, self.backend)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return self.get_message()

    def get_message(self) -> str:
        """Return the messages of the compiler."""
        return self._msg

    def dump(self, f: TextIO) -> None:
        """Write the messages and the numbered lines of the source to ``f``."""
        lines = self.source.split("\n")
        width = len(str(len(lines)))
        numbered = "".join(f"{number:0{width}d} {line.rstrip()}\n" for number, line in enumerate(lines, 1))
        f.write(f"{self.backend.upper()} compilation error: {self}\n-----\nName: {self.name}\n")
        f.write(f"Options: {' '.join(self.options)}\nCUDA source:\n{numbered}-----\n")
        f.flush()


def ordered(messages: str, files: Sequence[str]) -> str:
    """Return the messages of a C++ compiler with the errors in ``files`` first."""
    groups: list[list[str]] = [[]]
    ranks = [2]
    for line in messages.splitlines():
        located = _LOCATION.match(line)
        begins = _CONTEXT.match(line) is not None or (located is not None and located["kind"] != "note")
        # The context of a message precedes the message, so a group without a message is not complete.
        if begins and ranks[-1] != 2:
            groups.append([])
            ranks.append(2)
        groups[-1].append(line)
        if located is not None and located["kind"] != "note" and ranks[-1] == 2:
            ranks[-1] = 0 if located["file"] in files and located["kind"] == "error" else 1
    order = sorted(range(len(groups)), key=ranks.__getitem__)
    return "\n".join(line for place in order for line in groups[place])
