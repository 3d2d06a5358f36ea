"""The headers that define the device language in C++."""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path

CUPY = """\
#include <cupy/complex.cuh>
#include <cupy/carray.cuh>
#include <cupy/atomics.cuh>
#include <cupy/math_constants.h>
#include <cupy/float16.cuh>
"""
"""The lines with which the source of each elementwise or reduction kernel begins."""

_FOLDERS = ("abi", "host", "include")


def folder() -> Path:
    """Return the folder of the headers that every source can include.

    Raises:
        RuntimeError: The package was imported from an archive. A compiler cannot read headers in an archive.
    """
    return package() / "include"


def language(code: str) -> str:
    """Return the name of the header that the compiler reads before ``code``.

    The header is the device language. For a source that begins with :data:`CUPY`, the header has these headers too, so
    that they are precompiled.
    """
    return "tcuda/device_and_cupy.h" if code.startswith(CUPY) else "tcuda/device.h"


def host_folder() -> Path:
    """Return the folder of the headers that take the place of headers of the host, which NVRTC does not have.

    Raises:
        RuntimeError: The package was imported from an archive.
    """
    return package() / "host"


def digest() -> str:
    """Return a hash of the names and the contents of all headers.

    Raises:
        RuntimeError: The package was imported from an archive.
    """
    return _digest(package())


@functools.cache
def functions() -> frozenset[str]:
    """Return the names of the functions of the device language."""
    texts = [path.read_text("utf-8") for path in sorted((folder() / "tcuda").glob("*.h"))]
    return frozenset(re.findall(r"\b([A-Za-z_]\w*)(?=\()", "\n".join(texts)))


@functools.cache
def package() -> Path:
    """Return the folder around the folders of headers.

    Raises:
        RuntimeError: The package was imported from an archive.
    """
    found = Path(__file__).parent  # importlib.resources would import the readers of archives before the first launch
    if not found.is_dir():
        raise RuntimeError("tcuda was imported from an archive; install tcuda as files to compile kernels.")
    return found


@functools.cache
def _digest(package: Path) -> str:
    state = hashlib.sha256()
    for name in _FOLDERS:
        for path in sorted(path for path in (package / name).rglob("*") if path.is_file()):
            content = path.read_bytes()
            state.update(f"{path.relative_to(package)}\0{len(content)}\0".encode())
            state.update(content)
    return state.hexdigest()
