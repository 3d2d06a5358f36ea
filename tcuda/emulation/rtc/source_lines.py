"""The lines of the source of places in a library that is built for the search for races."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tcuda.emulation.rtc import compiler

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PROGRAM = "addr2line"
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_PLACE = re.compile(r"(.+):(\d+)(?: \(discriminator \d+\))?")
_OWN = re.compile(r"^tcuda/|/tcuda/emulation/rtc/(?:include|host)/")
"""The headers of the device language. The cache may have a library that another installation has compiled."""
_FOLDER = re.compile(r".*/tcuda-compile-[^/]*/")


def source_lines(library: bytes, offsets: Sequence[int]) -> list[tuple[str, int] | None]:
    """Return the file and the line of each place of the code.

    The line is that of the caller's source: where the compiler has put a function of the device language into a
    function of the source, the line has the call. The names of files are those of the compiler's messages.

    Args:
        library: The shared library.
        offsets: The places of :class:`tcuda._core.KernelAccess`, each right behind the call before an access.

    Returns:
        The file and the line; None where the library does not tell, and everywhere on a machine without addr2line.
    """
    program = _program()
    known = sorted({offset for offset in offsets if offset > 0})
    if program is None or not known:
        return [None] * len(offsets)
    with tempfile.TemporaryDirectory(prefix="tcuda-lines-") as folder:
        path = Path(folder) / "kernel.so"
        path.write_bytes(library)
        # The call, and not the instruction behind it, is at the line of the access.
        asked = "".join(f"{offset - 1:#x}\n" for offset in known)
        try:
            done = subprocess.run(
                [program, "-a", "-i", "-e", str(path)],
                input=asked,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        except OSError:
            return [None] * len(offsets)
    found = dict(zip(known, _lines(done.stdout), strict=False))
    return [found.get(offset) for offset in offsets]


def _program() -> str | None:
    """Return the path of addr2line, which lies beside the compiler or on the PATH."""
    try:
        word = compiler.find().command[-1]
    except RuntimeError:
        word = ""
    near = shutil.which(_PROGRAM, path=str(Path(word).resolve().parent)) if word else None
    return near or shutil.which(_PROGRAM)


def _lines(output: str) -> Iterator[tuple[str, int] | None]:
    """Yield the line of each address: the innermost one that is not in the headers of the device language."""
    lines = output.splitlines()
    starts = [number for number, line in enumerate(lines) if _ADDRESS.fullmatch(line)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield next(filter(None, map(_in_source, lines[start + 1 : end])), None)


def _in_source(line: str) -> tuple[str, int] | None:
    match = _PLACE.fullmatch(line)
    if match is None or match[1] == "??" or int(match[2]) == 0:
        return None
    file = match[1]
    if _OWN.search(file):
        return None
    return _FOLDER.sub("", file), int(match[2])
