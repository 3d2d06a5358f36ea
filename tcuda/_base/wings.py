"""The wings of the package, which an installation may lack: emulated devices, and the search for races.

The rooms of the core import no module of a wing. They ask for the module here, when a program needs the wing.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

from tcuda import _core

if TYPE_CHECKING:
    from types import ModuleType

_WINGS = {"emulation": "emulated devices", "sanitizer": "the search for races"}
"""What each wing is, by the name of its package."""


def wing_module(name: str) -> ModuleType:
    """Import and return a module of a wing.

    Args:
        name: The name of the module inside of ``tcuda``, such as ``"emulation.runtime"``.

    Raises:
        RuntimeError: The installation lacks the wing.
    """
    wing = name.partition(".")[0]
    if not has_wing(wing):
        raise RuntimeError(lack_of(wing))
    return importlib.import_module("tcuda." + name)


def lack_of(wing: str) -> str:
    """Return what an error says where the installation lacks a wing."""
    return (
        f"This installation of tcuda lacks {_WINGS[wing]} (tcuda.{wing}). tcuda was built with TCUDA_WINGS=OFF: "
        "install tcuda without this setting."
    )


def lacks(name: str) -> bool:
    """Return whether a name is that of a wing that the installation lacks."""
    return name in _WINGS and not has_wing(name)


def has_wing(wing: str) -> bool:
    """Return whether the installation has the wing of this name, ``"emulation"`` or ``"sanitizer"``."""
    return _core.has_wings and importlib.util.find_spec("tcuda." + wing) is not None
