"""The array namespace of the devices, which tests compare with NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._backend import array_module
from tcuda.emulation.runtime.choice import emulated_runtime

if TYPE_CHECKING:
    from types import ModuleType


def namespace() -> ModuleType:
    """Return the module that makes arrays on the devices.

    The backend names the module, because the module imports this package when a program asks for ``xp.testing``.

    Raises:
        RuntimeError: The devices in use are not emulated.
    """
    return array_module(emulated_runtime())
