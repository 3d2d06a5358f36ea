"""SciPy's modules, which compute. Where SciPy is not installed, their functions and classes say what to install.

So ``cupyx.scipy`` can be imported without SciPy, as with CuPy. If the import failed, a library would take the error for
a machine without CuPy, and go on with NumPy.
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import Any, NoReturn

_CLASSES = frozenset(["dlti", "interp1d", "lti"])
"""The classes of SciPy with names in small letters, beside those of sparse matrices."""


def has_scipy() -> bool:
    """Return whether SciPy is installed."""
    return importlib.util.find_spec("scipy") is not None


def scipy_module(name: str) -> Any:
    """Return a module of SciPy, or what stands for the module where SciPy is not installed.

    Args:
        name: The name of the module inside of ``scipy``.
    """
    return importlib.import_module(f"scipy.{name}") if has_scipy() else _StandIn(name)


def require_scipy(name: str) -> None:
    """Refuse to compute without SciPy.

    Args:
        name: The name in ``cupyx.scipy`` that a program uses.

    Raises:
        ImportError: SciPy is not installed.
    """
    if not has_scipy():
        raise _refusal(name)


def stands_in(member: Any) -> bool:
    """Return whether a member of a module stands for what SciPy would have."""
    return getattr(member, "__module__", None) == __name__


def _refusal(name: str) -> ImportError:
    return ImportError(
        f"Emulated devices compute cupyx.scipy with SciPy, which is not installed, and here they need scipy.{name}: "
        "pip install scipy, or install tcuda[emulation].",
        name="scipy",
    )


class _StandIn(ModuleType):
    """What stands for a module of SciPy: its members can be imported, and say at a call what to install."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        path = f"{self.__name__}.{name}"

        def refuse(*args: Any, **kwargs: Any) -> NoReturn:
            raise _refusal(path)

        if name.endswith("Warning") or name == "BadCoefficients":
            made: Any = type(name, (UserWarning,), {})
        elif name[0].isupper() or name in _CLASSES:
            made = type(name, (), {"__new__": refuse})
        else:
            made = refuse
            made.__name__ = made.__qualname__ = name
        made.__module__ = __name__
        made.__doc__ = f"``cupyx.scipy.{path}``, which needs SciPy."
        setattr(self, name, made)
        return made


__all__ = ["has_scipy", "require_scipy", "scipy_module", "stands_in"]
