"""The names ``cupy`` and ``cupyx`` for the modules of emulated devices, in a process that has asked for these names."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tcuda._base import log
from tcuda.emulation.as_cupy import refusals
from tcuda.emulation.names import absent, identity
from tcuda.emulation.names.private_modules import MODULES

if TYPE_CHECKING:
    from collections.abc import Sequence

_STAND_INS = {"cupy": "tcuda.emulation.xp", "cupyx": "tcuda.emulation.cupyx"}
"""The packages of CuPy that emulated devices have, and the modules that stand for them."""

_PACKAGES = (*_STAND_INS, "cupy_backends")
"""CuPy's packages; in the last one, all modules are private."""


class _Alias:
    """A loader that puts another module in the place of the module to load.

    Args:
        target: The other module.
    """

    def __init__(self, target: ModuleType) -> None:
        self._target = target

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python create a module, which :meth:`exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the other module in the place of ``module``."""
        path = module.__name__
        is_private = _is_private(path)
        if not hasattr(self._target, "__path__") and (is_private or identity.is_of_tcuda(self._target)):
            # Python asks the finders for modules below a package only, and finds no files for them in an empty path.
            self._target.__path__ = []
        sys.modules[path] = self._target
        if path in _STAND_INS:
            _give_private_modules(path, self._target)
        if not is_private and identity.is_of_tcuda(self._target):
            identity.rename(self._target, path)
            for name in identity.modules_in(path, self._target):
                importlib.import_module(f"{path}.{name}")


class _Finder:
    """A finder that finds the modules of emulated devices under the names of CuPy's modules."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the module that stands for ``name``; None if no module does.

        Raises:
            ImportError: A module that emulated devices need cannot be imported.
            ModuleNotFoundError: CuPy has a module ``name``, and emulated devices do not.
        """
        package = name.partition(".")[0]
        if package not in _PACKAGES:
            return None
        try:
            module = _private_module(name) if _is_private(name) else _public_module(name)
        except ImportError as error:  # such as an installation of SciPy that cannot be imported
            refusals.tell(name, str(error))
            raise
        if module is not None:
            return ModuleSpec(name, _Alias(module), is_package=True)  # type: ignore[arg-type]
        reason = absent.about(name)
        if reason:
            refusals.tell(name, reason.removeprefix(". "))
            # The error has no attribute `name`: with the name, Python replaces the text in `from cupyx import ...`.
            raise ModuleNotFoundError(f"No module named {name!r}{reason}")
        if _is_private(name) and ".__" not in name:  # Python's tools ask for names such as `cupy.__main__`
            refusals.tell(name, "emulated devices lack this private name.")
        return None


def _public_module(name: str) -> ModuleType | None:
    """Return the module of emulated devices that stands for a module of CuPy; None if there is no such module."""
    package, *parts = name.split(".")
    module: ModuleType | None = importlib.import_module(_STAND_INS[package])
    for part in parts:
        module = None if module is None else _submodule(module, part)
    return module


def _submodule(module: ModuleType, name: str) -> ModuleType | None:
    """Return a module of a stand-in: a public attribute, or a private module in the folder of the stand-in."""
    found = getattr(module, name, None)
    inner = f"{identity.name_in_tcuda(module)}.{name}"  # The module has another name in the meantime.
    if isinstance(found, ModuleType) and (name in dir(module) or found.__name__ == inner):
        return found
    return None


def _is_private(name: str) -> bool:
    """Return whether a module of CuPy has no page of its own in CuPy's documentation."""
    return "._" in name or name.startswith("cupy_backends") or name == "cupy.cublas"


def _private_module(name: str) -> ModuleType | None:
    """Return what stands for a private module of CuPy; None if no object of emulated devices is in such a module."""
    if name in sys.modules:
        return sys.modules[name]
    own = _own_internals(name)
    if own is None and name not in identity.private_modules():
        return None
    public = None if name.startswith("cupy_backends") else _public_module(name)
    module = public or ModuleType(name, f"The objects that CuPy has in ``{name}``, on emulated devices.")
    members = identity.members_of(name, _object)
    if own is not None:
        members |= {member: getattr(own, member) for member in own.__all__}
    for member, value in members.items():
        if not hasattr(module, member):
            setattr(module, member, value)
    return module


def _own_internals(name: str) -> ModuleType | None:
    """Return the module of tcuda with what a private module of CuPy has of its own."""
    module = MODULES.get(name)
    return None if module is None else importlib.import_module(module)


def _object(name: str) -> Any:
    """Return the object of emulated devices under a public name of CuPy; None if there is none."""
    owner, _, last = name.rpartition(".")
    module = _public_module(owner)
    return None if module is None else getattr(module, last, None)


def _give_private_modules(package: str, module: ModuleType) -> None:
    """Give a package its private modules as attributes, as CuPy's packages have them from the start."""
    names = [name for name in sorted(identity.private_modules()) if name.rpartition(".")[0] == package]
    for name in names:
        if not hasattr(module, name.rpartition(".")[2]):
            _import_all(name)


def _import_all(name: str) -> None:
    """Import a private module and the modules in it."""
    importlib.import_module(name)
    for inner in sorted(identity.private_modules()):
        if inner.rpartition(".")[0] == name:
            _import_all(inner)


def install() -> None:
    """Let ``import cupy`` import the array namespace of emulated devices from now on, even if CuPy is installed.

    Raises:
        RuntimeError: CuPy has been imported already.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    if any(name in sys.modules for name in _PACKAGES):
        raise RuntimeError(
            "CuPy has been imported already. Call tcuda.emulation.install_as_cupy() before the first import of CuPy, "
            "or start the program with tcuda run PROGRAM."
        )
    log.debug("import cupy imports emulated devices from now on.")
    sys.meta_path.insert(0, _Finder())
