"""The functions of the namespace that stand for functions of NumPy (NEP 18): those with the same names, as in CuPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda.emulation.arrays.functions import IMPLEMENTATIONS

if TYPE_CHECKING:
    from types import ModuleType

_modules: list[ModuleType] = []


def use(module: ModuleType) -> None:
    """Look for functions in ``module`` from now on."""
    _modules[:] = [module]


def counterpart(function: Any) -> Any:
    """Return the function with the name of a function of NumPy; None without such a function.

    Before the namespace is imported, only functions that tcuda's own modules call have a counterpart.
    """
    if not _modules:
        return IMPLEMENTATIONS.get(function)
    found: Any = _modules[0]
    for name in [*function.__module__.split(".")[1:], function.__name__]:
        found = getattr(found, name, None)
    return None if found is function else found
