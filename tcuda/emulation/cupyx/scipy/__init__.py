"""SciPy on arrays of emulated devices: the modules of ``cupyx.scipy``, most of which SciPy computes.

SciPy is an optional package. Without SciPy, this module can be imported and its modules cannot.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

from tcuda.emulation.cupyx.scipy import catalogue
from tcuda.emulation.cupyx.scipy.namespaces import Namespace, require_scipy
from tcuda.emulation.devices.strided import GROUPS, Strided
from tcuda.emulation.names import absent, identity

_MODULES = [*(module for module in catalogue.NAMES if "." not in module), "sparse"]


def get_array_module(*args: Any) -> Any:
    """Return this module if an array of a device is among ``args``, and ``scipy`` otherwise."""
    if any(isinstance(arg, (Strided, *GROUPS)) for arg in args):
        return sys.modules[__name__]
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
        require_scipy(name)
        module = globals()[name] = importlib.import_module(f"{__package__}.{name}")
        if __name__ != __package__:  # a program has imported this module by the name of CuPy
            identity.rename(module, f"{__name__}.{name}")
        return module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{absent.about(f'cupyx.scipy.{name}')}")


def __dir__() -> list[str]:
    return sorted([*_MODULES, "get_array_module"])


if importlib.util.find_spec("scipy") is not None:
    _make_modules()
