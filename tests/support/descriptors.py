"""Open file descriptors of this process, by the files that they name."""

from __future__ import annotations

from pathlib import Path


def open_descriptors(prefix: str) -> list[str]:
    """Return the names of the open files whose names begin with ``prefix``.

    Other tests' threads and collected objects open and close descriptors at
    any time, so the number of all descriptors says nothing about one test.
    """
    names = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            name = str(entry.readlink())
        except FileNotFoundError:
            continue
        if name.startswith(prefix):
            names.append(name)
    return names
