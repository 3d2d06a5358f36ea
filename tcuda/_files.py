"""Files that a person names: read without waiting for a pipe, and known to be writable before long work begins."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def read_regular_file(path: str | Path, most: int) -> bytes:
    """Return what a file holds.

    Args:
        path: The file.
        most: How many bytes it may have.

    Raises:
        OSError: The file cannot be read.
        ValueError: ``path`` names a pipe or a device, which may never end, or the file is larger.
    """
    # Without O_NONBLOCK, opening a pipe would wait for a writer.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is no regular file")
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it has more than {most:,} bytes")
    return content


def require_writable(path: Path) -> None:
    """Insist that a file can be written at ``path``, as far as that can be told without writing.

    Raises:
        OSError: The folder is absent or no folder, ``path`` is a folder, or the permission is missing.
    """
    if path.is_dir():
        raise _error(errno.EISDIR, path)
    try:
        path.lstat()
    except FileNotFoundError:
        folder = path.parent
        if not folder.is_dir():
            raise _error(errno.ENOTDIR if folder.exists() else errno.ENOENT, path) from None
        if not os.access(folder, os.W_OK | os.X_OK):
            raise _error(errno.EACCES, path) from None
    else:
        if path.exists() and not os.access(path, os.W_OK):
            raise _error(errno.EACCES, path)


def _error(number: int, path: Path) -> OSError:
    return OSError(number, os.strerror(number), str(path))


__all__ = ["read_regular_file", "require_writable"]
