"""A folder to which no other user can write, also not by putting another folder in its place."""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import pwd
import stat
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40  # the limit of Linux for a path


@contextlib.contextmanager
def opened(start: Path, steps: tuple[str, ...], *, make: bool) -> Iterator[int]:
    """Open the folder ``steps`` below ``start``, and yield its descriptor.

    Every folder and every symbolic link on the way must belong to this user or to root. Other users must not be able to
    write to the folders, except to folders with the sticky bit, in which only the owner of a file can replace the file.
    The last folder must belong to this user alone. ``start`` itself is trusted.

    Args:
        start: The absolute path of a folder.
        steps: The names of the folders below.
        make: Whether folders that do not exist are made.

    Raises:
        OSError: A folder does not exist, cannot be made, or can be changed by another user.
    """
    descriptor = os.open(start, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    way, left, links = start, list(reversed(steps)), 0
    try:
        while left:
            step = left.pop()
            state = _state(descriptor, step, make)
            if stat.S_ISLNK(state.st_mode):
                links += 1
                _require(links <= _MOST_LINKS, errno.ELOOP, way / step, "has too many symbolic links")
                _require_owner(state, way / step)
                target = Path(os.readlink(step, dir_fd=descriptor))
                left += [part for part in reversed(target.parts) if part != "/"]
                next_step, way = ("/", Path("/")) if target.is_absolute() else (".", way)
            else:
                next_step, way = step, way / step
            following = os.open(next_step, os.O_PATH | _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = following
            _require_safe(os.fstat(descriptor), way)
        state = os.fstat(descriptor)
        own = state.st_uid == os.geteuid() and not _is_writable_by_others(state)
        _require(own, errno.EPERM, way, "is not this user's alone")
        readable = os.open(".", os.O_RDONLY | _FOLDER, dir_fd=descriptor)
    finally:
        os.close(descriptor)
    try:
        yield readable
    finally:
        os.close(readable)


def _state(folder: int, step: str, make: bool) -> os.stat_result:
    try:
        return os.lstat(step, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
        with contextlib.suppress(FileExistsError):  # Another process may make the folder at the same time.
            os.mkdir(step, 0o700, dir_fd=folder)
        return os.lstat(step, dir_fd=folder)


def _require_safe(state: os.stat_result, path: Path) -> None:
    _require_owner(state, path)
    safe = bool(state.st_mode & stat.S_ISVTX) or not _is_writable_by_others(state)
    _require(safe, errno.EPERM, path, "can be changed by other users")


def _require_owner(state: os.stat_result, path: Path) -> None:
    _require(state.st_uid in (0, os.geteuid()), errno.EPERM, path, "belongs to another user")


def _require(holds: bool, number: int, path: Path, text: str) -> None:
    if not holds:
        raise OSError(number, text, str(path))


def _is_writable_by_others(state: os.stat_result) -> bool:
    if state.st_mode & stat.S_IWOTH:
        return True
    return bool(state.st_mode & stat.S_IWGRP) and not _is_of_this_user_alone(state.st_gid)


def _is_of_this_user_alone(group: int) -> bool:
    """Return whether ``group`` is the group of this user's name, which many systems make for each user."""
    try:
        user, entry = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return user.pw_gid == group and entry.gr_name == user.pw_name and set(entry.gr_mem) <= {user.pw_name}
