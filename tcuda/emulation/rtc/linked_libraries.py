"""The libraries that the linker joins to a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._base.version import __version__
from tcuda.emulation.rtc.cache import OBJECT, cache, key_of

if TYPE_CHECKING:
    from pathlib import Path

    from tcuda.emulation.rtc.compiler import Compiler

WITHOUT = "-nodefaultlibs"
"""The flag with which gcc leaves out the libraries of the sanitizers, which the headers replace."""

_NAME = "libstdc++.so.6"
_FILE = "standard_library.so"
_OTHERS = ("-lm", "-lc", "-lgcc")


def arguments(used: Compiler, folder: Path, *, whole: bool) -> list[str]:
    """Return the arguments of the linker after the files of a module; none for clang, which links the usual libraries.

    The linker takes a third of the time of a small module to read the names in the standard library of C++. A module
    without the headers of this library uses few of these names, such as that of a class with virtual functions. So such
    a module is linked with an empty library of the same name, which tells the loader to look in the standard library.

    Args:
        used: The compiler.
        folder: The folder in which the compiler will run, which gets a copy of the empty library.
        whole: Whether the linker reads the standard library of C++ itself.
    """
    if used.is_clang:
        return []
    content = None if whole else _empty_library(used, folder)
    if content is None:
        return ["-lstdc++", *_OTHERS]
    (folder / _FILE).write_bytes(content)
    # Some compilers leave out libraries of which a module uses no name that the linker sees.
    return ["-x", "none", "-Wl,--no-as-needed", _FILE, *_OTHERS]


def _empty_library(used: Compiler, folder: Path) -> bytes | None:
    stored = cache()
    key = key_of("empty library", __version__, used.identity)
    found = stored.find(key, OBJECT)
    if found is None:
        source = folder / "empty.cu"
        source.touch()
        path = folder / _FILE
        flags = ["-shared", "-nostdlib", f"-Wl,-soname,{_NAME}", "-o", str(path), "-x", "c++", source.name]
        if used.run(flags, folder).returncode:
            return None
        found = path.read_bytes()
        stored.store(key, found, OBJECT)
    return found
