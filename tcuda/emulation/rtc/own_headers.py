"""The headers of a program whose shared memory is declared as only CUDA C++ allows: copies that the compiler takes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tcuda.emulation.rtc import directives, source
from tcuda.emulation.rtc.tokens import tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

_FOLDER = "own_headers"
"""The folder of the copies, in the folder of the compile."""

_SHARED = "__shared__"


def placed(code: str, include: Sequence[Path], folder: Path) -> tuple[str, ...]:
    """Write copies of a program's headers in the form for the C++ compiler, and return the options that find them.

    The lines of messages and of reports stay those of the program's files. A program whose headers declare no shared
    memory needs no copies.

    Args:
        code: The source, whose folder is that of the compile.
        include: The program's folders of headers.
        folder: The folder of the compile.
    """
    found: dict[str, Path] = {}
    texts: dict[Path, str] = {}
    left = [(code, Path())]
    while left:
        text, inside = left.pop()
        for name in _includes(text):
            # A file is found beside the file that includes it, or in a folder of headers.
            for place in (os.path.normpath(inside / name), os.path.normpath(name)):
                path = next((base / place for base in include if (base / place).is_file()), None)
                if path is None or place in found or place.startswith(os.pardir) or Path(place).is_absolute():
                    continue
                found[place] = path
                texts[path] = path.read_text("utf-8", "surrogateescape")
                left.append((texts[path], Path(place).parent))
    if not any(_SHARED in text for text in texts.values()):
        return ()
    for place, path in found.items():
        copy = folder / _FOLDER / place
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(f'#line 1 "{path}"\n{source.prepared(texts[path])}', "utf-8", "surrogateescape")
    return (f"-I{folder / _FOLDER}",)


def _includes(text: str) -> list[str]:
    """Return the files that a text includes, with every conditional part of the text."""
    if "include" not in text:
        return []
    named = (directives.included(token) for token in tokens(text) if token.kind == "directive")
    return [name for name in named if name]


__all__ = ["placed"]
