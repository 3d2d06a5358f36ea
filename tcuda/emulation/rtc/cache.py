"""The compiled kernels that all processes of a user share."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import secrets
import stat
import time
import warnings
from pathlib import Path

from tcuda._base.warnings import stacklevel
from tcuda.emulation.rtc import owned_folder

MOST_BYTES = 1 << 30
"""The size of the folder above which the least recently used files are removed, until half of the size is left."""

_MARK = b"tcuda-kernel-1\0\0"
LIBRARY = ".so"
"""The end of the name of a shared library of kernels."""

OBJECT = ".o"
"""The end of the name of an object file. The linker puts such files into libraries."""

HEADER = ".gch"
"""The end of the name of a precompiled header."""

_FILE = re.compile(r"[0-9a-f]{64}\.(?:so|o|gch)(?:\.[0-9a-f]{16}\.tmp)?")
"""The names of the files that this module makes. Other files in the folder are never touched."""


_LONGEST_WRITE = 3600
"""The seconds after which a partial file is surely of a process that was interrupted."""


class Folder:
    """Shared libraries, object files and precompiled headers in a folder, each under a key of :func:`key_of`.

    A file ends with a hash of its contents, which tells whether the file is broken. The folder is opened anew for each
    file, and only if no other user can write to the folder.

    Args:
        start: The absolute path of a folder that is trusted, and made if the folder does not exist.
        steps: The names of the folders below ``start``.
        most_bytes: The size of the folder above which old files are removed.
    """

    def __init__(self, start: Path, steps: tuple[str, ...], most_bytes: int = MOST_BYTES) -> None:
        self.path = start.joinpath(*steps)
        self._start = start
        self._steps = steps
        self._most_bytes = most_bytes

    def find(self, key: str, suffix: str = LIBRARY) -> bytes | None:
        """Return the content for ``key``; None if no file exists for ``key``, or if the file is broken."""
        descriptor, content = self._opened(f"{key}{suffix}")
        if descriptor is not None:
            os.close(descriptor)
        return content

    def opened(self, key: str, suffix: str = LIBRARY) -> int | None:
        """Return a descriptor of the file for ``key``, whose hash follows the content; None without a whole file."""
        return self._opened(f"{key}{suffix}")[0]

    def _opened(self, name: str) -> tuple[int, bytes] | tuple[None, None]:
        try:
            with owned_folder.opened(self._start, self._steps, make=False) as folder:
                descriptor, content = _read(folder, name)
        except OSError:
            return None, None
        end = len(content) - len(_MARK) - hashlib.sha256().digest_size
        if end < 0 or content[end:] != _MARK + hashlib.sha256(content[:end]).digest():
            os.close(descriptor)
            return None, None
        return descriptor, content[:end]

    def store(self, key: str, content: bytes, suffix: str = LIBRARY) -> None:
        """Store ``content`` under ``key``.

        Raises:
            OSError: The folder or the file cannot be written, or another user could change the folder.
        """
        name = f"{key}{suffix}"
        self._start.mkdir(mode=0o700, parents=True, exist_ok=True)
        with owned_folder.opened(self._start, self._steps, make=True) as folder:
            _write(folder, name, content + _MARK + hashlib.sha256(content).digest())
            self._trim(folder, name)

    def _trim(self, folder: int, newest: str) -> None:
        """Remove the least recently used files if the folder is too large."""
        files = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if _FILE.fullmatch(entry.name):
                    with contextlib.suppress(OSError):  # Another process may remove files too.
                        state = entry.stat(follow_symlinks=False)
                        written = entry.name.endswith(".tmp") and time.time() - state.st_mtime < _LONGEST_WRITE
                        if stat.S_ISREG(state.st_mode) and not written:
                            files.append((state.st_mtime_ns, state.st_size, entry.name))
        total = sum(size for _, size, _ in files)
        if total <= self._most_bytes:
            return
        for _, size, name in sorted(files):
            if name != newest:
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=folder)
                total -= size
            if total <= self._most_bytes // 2:
                break


def _read(folder: int, name: str) -> tuple[int, bytes]:
    """Return a descriptor of a file, and the content of the file."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read() if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
        with contextlib.suppress(OSError):
            os.utime(descriptor)  # The removal of old files looks at this time.
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, content


def _write(folder: int, name: str, content: bytes) -> None:
    # Another process sees either the whole file or no file.
    partial = f"{name}.{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(partial, flags, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial, dir_fd=folder)
        raise


class Cache:
    """A folder of compiled kernels, and the memory of this process for what the folder cannot hold.

    Args:
        folder: The folder; None if the user has none.
    """

    def __init__(self, folder: Folder | None) -> None:
        self.folder = folder
        self._memory: dict[str, bytes] = {}
        self._asked: dict[str, int] = {}
        self._descriptors: dict[str, tuple[int, tuple[int, ...]]] = {}
        """The descriptor of each file that :meth:`descriptor` has found, and the identity of the file."""

    def find(self, key: str, suffix: str = LIBRARY) -> bytes | None:
        """Return what is stored under ``key``; None if nothing is."""
        found = self._memory.get(f"{key}{suffix}")
        return found if found is not None or self.folder is None else self.folder.find(key, suffix)

    def asked(self, key: str) -> int:
        """Return how often this process has called the method for ``key``, with this call."""
        self._asked[key] = self._asked.get(key, 0) + 1
        return self._asked[key]

    def descriptor(self, key: str, suffix: str) -> int | None:
        """Return a descriptor of the file for ``key``, which stays open; None if the folder has no whole file.

        The file is read and compared with its hash at the first call in this process, and not at later calls.
        """
        name = f"{key}{suffix}"
        known = self._descriptors.get(name)
        if known is not None and _identity(known[0]) == known[1]:
            return known[0]
        opened = None if self.folder is None else self.folder.opened(key, suffix)
        if opened is None:
            self._descriptors.pop(name, None)
        else:
            self._descriptors[name] = opened, _identity(opened)
        return opened

    def store(self, key: str, content: bytes, suffix: str = LIBRARY) -> None:
        """Store ``content`` under ``key``.

        Warns:
            RuntimeWarning: The folder cannot be used. The warning comes once.
        """
        try:
            if self.folder is None:
                raise FileNotFoundError("this user has no home folder")
            self.folder.store(key, content, suffix)
        except OSError as error:
            warned = bool(self._memory)
            self._memory[f"{key}{suffix}"] = content
            if not warned:
                place = "" if self.folder is None else f" in {str(self.folder.path)!r}"
                warnings.warn(
                    f"tcuda cannot keep compiled kernels{place}, so each process compiles its kernels again: {error}. "
                    "Set TCUDA_CACHE_DIR to a folder of yours with free space.",
                    RuntimeWarning,
                    stacklevel=stacklevel(),
                )


def _identity(descriptor: int) -> tuple[int, ...]:
    """Return numbers that tell an open file and its size; none if the program has closed the descriptor."""
    try:
        state = os.fstat(descriptor)
    except OSError:
        return ()
    return state.st_dev, state.st_ino, state.st_size


def key_of(*parts: str) -> str:
    """Return the key of a file that depends on all ``parts``."""
    state = hashlib.sha256()
    for part in parts:
        encoded = part.encode(errors="surrogatepass")
        state.update(f"{len(encoded)}:".encode() + encoded)
    return state.hexdigest()


def cache() -> Cache:
    """Return the cache in a folder in ``TCUDA_CACHE_DIR``, or else in the user's folder for caches.

    ``TCUDA_CACHE_DIR`` is trusted, and several users may share it, because each user has a folder of their own in it.
    """
    home = os.path.expanduser("~")  # noqa: PTH111  # pathlib raises an error if there is no home folder.
    return _of(os.environ.get("TCUDA_CACHE_DIR", ""), os.environ.get("XDG_CACHE_HOME", ""), home, os.geteuid())


@functools.lru_cache(maxsize=8)
def _of(chosen: str, xdg: str, home: str, user: int) -> Cache:
    if chosen:
        return Cache(Folder(Path(chosen).absolute(), (f"tcuda-kernels-{user}",)))
    base = Path(xdg) if Path(xdg).is_absolute() else Path(home, ".cache")
    if not base.is_absolute():
        return Cache(None)
    root, *steps = (base / "tcuda" / "kernels").parts
    return Cache(Folder(Path(root), tuple(steps)))
