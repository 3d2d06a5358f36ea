"""The headers that define the device language in C++."""

from __future__ import annotations

import functools
import hashlib
from importlib import resources
from pathlib import Path


@functools.cache
def folder() -> Path:
    """Return the folder of the headers.

    Raises:
        RuntimeError: The package was imported from an archive. A compiler cannot read headers in an archive.
    """
    found = resources.files("tcuda.emulation.rtc") / "include"
    if not isinstance(found, Path):
        raise RuntimeError("tcuda was imported from an archive; install tcuda as files to compile kernels.")
    return found


@functools.cache
def digest() -> str:
    """Return a hash of the names and the contents of all headers."""
    root = folder()
    state = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        content = path.read_bytes()
        state.update(f"{path.relative_to(root)}\0{len(content)}\0".encode())
        state.update(content)
    return state.hexdigest()
