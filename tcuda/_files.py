"""Files that the user names: reading without waiting for a pipe, and a test for writing before long work begins."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def read_regular_file(path: str | Path, most: int) -> bytes:
    """Return the contents of a file.

    Args:
        path: The path of the file.
        most: The largest size that is allowed, in bytes.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is a pipe or a device, which may never end, or has more than ``most`` bytes.
    """
    # Without O_NONBLOCK, opening a pipe would wait for a writer.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not a regular file")
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it has more than {most:,} bytes")
    return content


def require_writable(path: Path) -> None:
    """Raise an error if a file cannot be written at ``path``, as far as that can be known without writing.

    Raises:
        OSError: The folder of ``path`` is absent or not a folder, ``path`` is a folder, or the permission is missing.
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
