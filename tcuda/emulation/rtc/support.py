"""The object file of the functions that are the same in all modules."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tcuda._base.version import __version__
from tcuda.emulation.rtc import headers
from tcuda.emulation.rtc.cache import OBJECT, cache, key_of
from tcuda.emulation.rtc.compiler import without_linking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda.emulation.rtc.compiler import Compiler

_SOURCE = "support.cu"
_OBJECT = "support.o"
_STANDARD = ("-std=c++17", "-O2")


def linked(used: Compiler, flags: Sequence[str], folder: Path) -> tuple[list[str], list[str]]:
    """Return the flags of a module that has these functions in an object file, and the arguments after its source.

    The compiler takes a third less time for such a module. The object file is compiled once and stored in the cache.
    Both lists are empty if the compiler is clang, or cannot compile the object file. Then the module has the functions
    itself.

    Args:
        used: The compiler.
        flags: The flags of all modules with these checks and these headers, without the options of the caller.
        folder: The folder in which the compiler will run, which gets a copy of the object file.
    """
    if used.is_clang:
        return [], []
    stored = cache()
    key = key_of("support", __version__, headers.digest(), used.identity, *_STANDARD, *flags)
    found = stored.find(key, OBJECT)
    if found is None:
        with tempfile.TemporaryDirectory(prefix="tcuda-compile-") as own:
            content = _compiled(used, flags, Path(own))
        if content is None:
            return [], []
        stored.store(key, content, OBJECT)
        found = content
    (folder / _OBJECT).write_bytes(found)
    return ["-DTCUDA_SUPPORT_APART=1"], ["-x", "none", _OBJECT]


def _compiled(used: Compiler, flags: Sequence[str], folder: Path) -> bytes | None:
    (folder / _SOURCE).touch()
    path = folder / _OBJECT
    flags = [*without_linking(flags), *_STANDARD, "-include", "tcuda/device.h", "-DTCUDA_SUPPORT_ONLY=1"]
    done = used.run([*flags, "-c", "-o", str(path), "-x", "c++", _SOURCE], folder)
    return None if done.returncode else path.read_bytes()
