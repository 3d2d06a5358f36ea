"""Files that the user names: reading without waiting for a pipe, and writing, with a test for that before long work."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
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


def replace_file(path: str | Path, data: bytes) -> None:
    """Write ``data`` to a file, which has its old content until the new content is complete.

    Args:
        path: The path of the file. A new file has the permissions that the umask of the process leaves, and another one
            keeps its permissions.
        data: The new content.

    Raises:
        OSError: The file cannot be written. The file has its old content.
    """
    path = Path(path)
    # The name is random, and the file is new: nobody can plant a link there, and no other process has the same name.
    temporary = path.with_name(f".tcuda.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with contextlib.suppress(FileNotFoundError):
                os.fchmod(descriptor, stat.S_IMODE(path.stat().st_mode))
            file.write(data)
            file.flush()
            os.fsync(descriptor)  # After a power cut, the new name must not stand for a file without content.
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def write_file(path: str | Path, data: bytes) -> None:
    """Write ``data`` to a file that the user names: by :func:`replace_file`, if nothing speaks against that.

    A pipe, a device, the target of a link, and a file in a folder without permission are written in place.

    Raises:
        OSError: The file cannot be written.
    """
    path = Path(path)
    if path.is_symlink() or (path.exists() and not path.is_file()) or not os.access(path.parent, os.W_OK | os.X_OK):
        path.write_bytes(data)
    else:
        replace_file(path, data)


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


def require_replaceable(path: Path) -> None:
    """Raise an error if :func:`replace_file` cannot write ``path``, as far as that can be known without writing.

    Raises:
        OSError: As for :func:`require_writable`, or the permission to make files in the folder is missing.
    """
    require_writable(path)
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise _error(errno.EACCES, path)


def _error(number: int, path: Path) -> OSError:
    return OSError(number, os.strerror(number), str(path))


__all__ = ["read_regular_file", "replace_file", "require_replaceable", "require_writable", "write_file"]
