"""The folder of compiled kernels, which all processes of a user share."""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

MOST_BYTES = 1 << 30
"""The size of the folder above which the least recently used kernels are removed, until half of the size is left."""

_MARK = b"tcuda-kernel-1\0\0"
LIBRARY = ".so"
"""The end of the name of a shared library of kernels."""

OBJECT = ".o"
"""The end of the name of an object file, with which libraries are linked."""

HEADER = ".gch"
"""The end of the name of a precompiled header."""


class Cache:
    """Shared libraries, object files and precompiled headers in a folder, each under a key.

    A file ends with a hash of its contents, which loaders, linkers and compilers ignore. The hash tells whether a file
    is broken, because the process could end when a broken file is loaded.

    Args:
        folder: The folder, which is made if the folder does not exist.
        most_bytes: The size of the folder above which old files are removed.

    Raises:
        OSError: The folder cannot be made or written.
    """

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):  # For root, the permission bits allow every folder.
            pass
        self.folder = folder
        self._most_bytes = most_bytes

    def find(self, key: str, suffix: str = LIBRARY) -> Path | None:
        """Return the path of the file for ``key``; None if no file exists for ``key``, or if the file is broken."""
        path = self._path(key, suffix)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        end = len(content) - len(_MARK) - hashlib.sha256().digest_size
        if end < 0 or content[end:] != _MARK + hashlib.sha256(content[:end]).digest():
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # The removal of old files looks at this time.
        return path

    def store(self, key: str, content: bytes, suffix: str = LIBRARY) -> Path:
        """Store ``content`` under ``key``, and return the path of the file.

        Raises:
            OSError: The file cannot be written.
        """
        path = self._path(key, suffix)
        # Another process sees either the whole file or no file.
        handle, name = tempfile.mkstemp(dir=self.folder, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content + _MARK + hashlib.sha256(content).digest())
            Path(name).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
        self._trim(path)
        return path

    def _path(self, key: str, suffix: str) -> Path:
        return self.folder / f"{key}{suffix}"

    def _trim(self, newest: Path) -> None:
        """Remove the least recently used files if the folder is too large."""
        files = []
        for path in self.folder.iterdir():
            with contextlib.suppress(OSError):  # Another process may remove files too.
                state = path.stat()
                if stat.S_ISREG(state.st_mode) and path.suffix in (LIBRARY, OBJECT, HEADER, ".tmp"):
                    files.append((state.st_mtime_ns, state.st_size, path))
        total = sum(size for _, size, _ in files)
        if total <= self._most_bytes:
            return
        for _, size, path in sorted(files):
            if path != newest:
                with contextlib.suppress(OSError):
                    path.unlink()
                total -= size
            if total <= self._most_bytes // 2:
                break


def key_of(*parts: str) -> str:
    """Return the key of a file that depends on all ``parts``."""
    state = hashlib.sha256()
    for part in parts:
        encoded = part.encode(errors="surrogatepass")
        state.update(f"{len(encoded)}:".encode() + encoded)
    return state.hexdigest()


def cache() -> Cache:
    """Return the cache in the folder ``TCUDA_CACHE_DIR``, or else in the user's folder for caches.

    If the folder cannot be written, the kernels are stored in a temporary folder of this process. The same holds if
    another user could write to the user's folder. A folder in ``TCUDA_CACHE_DIR`` is trusted.
    """
    chosen = os.environ.get("TCUDA_CACHE_DIR", "")
    return _opened(chosen, os.environ.get("XDG_CACHE_HOME", ""), os.environ.get("HOME", ""), os.getpid())


@functools.lru_cache(maxsize=8)
def _opened(chosen: str, xdg: str, home: str, process: int) -> Cache:
    with contextlib.suppress(OSError, RuntimeError):
        if chosen:
            return Cache(Path(chosen).absolute())
        base = Path(xdg) if xdg and Path(xdg).is_absolute() else Path("~/.cache").expanduser()
        opened = Cache(base / "tcuda" / "kernels")
        state = opened.folder.stat()
        if state.st_uid == os.geteuid() and not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return opened
    private = tempfile.mkdtemp(prefix="tcuda-kernels-")
    atexit.register(_remove, private, process)
    return Cache(Path(private))


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # A forked process uses the folder of its own.
        shutil.rmtree(folder, ignore_errors=True)
