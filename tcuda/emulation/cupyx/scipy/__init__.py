"""SciPy on arrays of emulated devices: the modules of ``cupyx.scipy``, most of which SciPy computes.

SciPy is an optional package. Without SciPy, these modules can be imported, and most calls say what to install.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from tcuda.emulation.cupyx.scipy import catalogue
from tcuda.emulation.cupyx.scipy.host_modules import require_scipy
from tcuda.emulation.cupyx.scipy.namespaces import Namespace
from tcuda.emulation.devices.strided import GROUPS, Strided
from tcuda.emulation.names import absent, identity

_MODULES = [*(module for module in catalogue.NAMES if "." not in module), "sparse"]


def get_array_module(*args: Any) -> Any:
    """Return this module if an array of a device is among ``args``, and ``scipy`` otherwise.

    Raises:
        ImportError: ``scipy`` is asked for and not installed.
    """
    if any(isinstance(arg, (Strided, *GROUPS)) for arg in args):
        return sys.modules[__name__]
    require_scipy("get_array_module")
    return importlib.import_module("scipy")


def _make_modules() -> None:
    """Make the modules of the table, where Python's import finds them."""
    for module in catalogue.NAMES:
        made = Namespace(module)
        sys.modules[made.__name__] = made
        package, _, name = module.rpartition(".")
        if package:
            setattr(sys.modules[f"{__name__}.{package}"], name, made)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        module = globals()[name] = importlib.import_module(f"{__package__}.{name}")
        if __name__ != __package__:  # a program has imported this module by the name of CuPy
            identity.rename(module, f"{__name__}.{name}")
        return module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{absent.about(f'cupyx.scipy.{name}')}")


def __dir__() -> list[str]:
    return sorted([*_MODULES, "get_array_module"])


_make_modules()
