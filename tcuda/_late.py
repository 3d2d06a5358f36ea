"""Names of the package that are looked up when a program first asks for them, because they import many modules."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcuda._backend import array_module
from tcuda._process.lazy import is_initialized
from tcuda._runtime import runtime

if TYPE_CHECKING:
    from tcuda._backend import Backend
    from tcuda._runtime.protocol import Runtime


_ABSENT = Path(__file__).parent / "_absent.json"
"""The names of torch that tcuda lacks. ``tests/support/absent_names.py`` makes the file from the tables of tests."""

_MODULES = ("comm", "emulation", "nccl", "sanitizer")


def __getattr__(name: str) -> Any:
    if name == "xp":
        arrays = array_module(runtime())
        if is_initialized():  # before that, the program may still choose another runtime
            _settle(arrays)
        return arrays
    if name in _MODULES:
        return importlib.import_module(f"tcuda.{name}")
    raise AttributeError(f"module 'tcuda' has no attribute {name!r}{_about(name)}", name=name, obj=sys.modules["tcuda"])


def _about(name: str) -> str:
    """Return what ``name`` is in torch, and why tcuda lacks the name; nothing for a name that torch lacks too."""
    if name.startswith("__"):  # Python and its tools ask for many of these names
        return ""
    import json  # here, because the import takes long

    table = json.loads(_ABSENT.read_text(encoding="utf-8"))
    if name not in table:
        return ""
    kind = table[name]["kind"]
    article = "an" if kind[0] in "aeiou" else "a"
    return f". torch.cuda.{name} is {article} {kind} of torch. {table[name]['reason']}"


def __dir__() -> list[str]:
    return sorted({*vars(sys.modules["tcuda"]), *_MODULES, "xp"})


def settle(cuda: Runtime, backend: Backend) -> None:
    """Make the late names plain names of the package if the array library is imported: a step of initialisation."""
    if backend.array_module in sys.modules:
        _settle(array_module(cuda))


def _settle(arrays: object) -> None:
    # Python takes 20 ns more for every look-up in a module that has __getattr__.
    package = sys.modules["tcuda"]
    vars(package)["xp"] = arrays
    for name in _MODULES:
        importlib.import_module(f"tcuda.{name}")  # becomes an attribute of the package
    vars(package).pop("__getattr__", None)
