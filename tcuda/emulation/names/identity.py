"""What modules, classes and functions call themselves where ``import cupy`` gives emulated devices: as in CuPy.

A program that gets the arrays as ``tcuda.xp`` has the names of tcuda's modules instead, because a name is a promise:
pickles, and libraries that choose their functions by the name of a module, import the module with this name.
``cupy_identity.json`` has CuPy's names.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tcuda.emulation.names import absent
from tcuda.emulation.names.private_modules import MODULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TABLE = Path(__file__).with_name("cupy_identity.json")
_OWN = "tcuda.emulation"


@functools.cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(_TABLE.read_text(encoding="utf-8"))
    return table


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names of a text such as ``max min=amin`` with the names that follow the signs."""
    for word in text.split():
        name, _, other = word.partition("=")
        yield name, other or name


def rename(module: ModuleType, path: str) -> None:
    """Let a module, its members and its modules call themselves what CuPy calls them.

    The module says why a missing member is missing.

    Args:
        module: The module of emulated devices.
        path: The name of CuPy's module.
    """
    homes = {
        name: (home or path, own)
        for home, members in _table()["homes"].get(path, {}).items()
        for name, own in _pairs(members)
    }
    is_listed = _is_listed(module)
    names = [name for name in dir(module) if not name.startswith("_")] if is_listed else list(homes)
    for name in names:
        if f"{path}.{name}" in _table()["modules"]:  # programs seldom need some modules
            continue
        member = getattr(module, name, None)
        home, own = homes.get(name, (path, None))
        if _is_own(member, renamed=own is not None) and not isinstance(member, ModuleType):
            _rename_member(member, home, own)
    module.__name__ = _table()["modules"].get(path, path)
    module.__spec__ = _spec_of(module)
    for name in modules_in(path, module):
        rename(vars(module)[name], f"{path}.{name}")
    if is_listed:
        # CuPy's packages have this name from `from __future__ import annotations`.
        if hasattr(module, "annotations") and "annotations" not in names:
            names.append("annotations")
        module.__all__ = names  # type: ignore[attr-defined]
        module.__dir__ = functools.partial(list, names)  # type: ignore[method-assign]
    absent.tell_reasons(module, path)


def _spec_of(module: ModuleType) -> ModuleSpec | None:
    """Return the spec of a module with the name that the module has now. Python writes the name and the file."""
    old = module.__spec__
    if old is None:
        return None
    new = ModuleSpec(
        module.__name__,
        old.loader,
        origin=old.origin,
        loader_state=name_in_tcuda(module),
        is_package=old.submodule_search_locations is not None,
    )
    new.submodule_search_locations = old.submodule_search_locations
    new.has_location = old.origin is not None
    return new


def name_in_tcuda(module: ModuleType) -> str:
    """Return the name that a module of emulated devices has in tcuda, whatever the module calls itself."""
    spec = module.__spec__
    return module.__name__ if spec is None else spec.loader_state or spec.name


def _is_own(member: Any, *, renamed: bool) -> bool:
    """Return whether a member belongs to emulated devices, and not to NumPy or Python.

    Args:
        member: The member.
        renamed: Whether a member with a name of CuPy counts too: an object may be a member of several modules.
    """
    home = getattr(member, "__module__", None)
    return isinstance(home, str) and (home.startswith(_OWN) or (renamed and home.startswith("cupy")))


def _rename_member(member: Any, home: str, own: str | None) -> None:
    # An instance of a class with slots keeps the module of the class.
    with contextlib.suppress(AttributeError, TypeError):
        member.__module__ = home
        if own is not None:
            member.__name__ = own.rpartition(".")[2]
            if hasattr(member, "__qualname__"):  # a universal function has none
                member.__qualname__ = own
    if inspect.isclass(member):
        for function in filter(inspect.isfunction, vars(member).values()):
            if function.__module__.startswith(_OWN):
                function.__module__ = home


def modules_in(path: str, module: ModuleType) -> list[str]:
    """Return the names of the public modules in a package; modules that are not imported yet are not among them.

    Args:
        path: The name of CuPy's package.
        module: The package of emulated devices.
    """
    names = [name.rpartition(".")[2] for name in _table()["modules"] if name.rpartition(".")[0] == path]
    found = {name: vars(module).get(name) for name in names}
    return sorted(name for name, inner in found.items() if isinstance(inner, ModuleType) and is_of_tcuda(inner))


def is_of_tcuda(module: ModuleType) -> bool:
    """Return whether a module is a module of emulated devices, and not one of NumPy."""
    return module.__spec__ is not None and name_in_tcuda(module).startswith(f"{_OWN}.")


def _is_listed(module: ModuleType) -> bool:
    """Return whether a module lists its names, and so has no names in the list that the module only imports."""
    return "__dir__" in vars(module) or "__all__" in vars(module) or type(module) is not ModuleType


@functools.cache
def private_modules() -> frozenset[str]:
    """Return the names of CuPy's private modules, and of their packages, from which objects come."""
    table = _table()
    paths = {home for homes in table["homes"].values() for home in homes if home} | set(table["private"])
    paths |= {name for path, name in table["modules"].items() if path != name}
    packages = {path.rsplit(".", depth)[0] for path in paths for depth in range(1, path.count(".") + 1)}
    packages |= set(MODULES)
    return frozenset(path for path in paths | packages if "._" in path or path not in table["modules"])


def members_of(path: str, find: Callable[[str], Any]) -> dict[str, Any]:
    """Return, by name, the objects of emulated devices that CuPy has in a private module.

    Args:
        path: The name of the private module.
        find: Returns the object with a public name of CuPy; None without such an object.
    """
    table = _table()
    names = {
        own: f"{owner}.{name}"
        for owner, homes in table["homes"].items()
        for name, own in _pairs(homes.get(path, ""))
        if "." not in own
    }
    names |= dict(_pairs(table["private"].get(path, "")))
    found = {name: find(public) for name, public in names.items()}
    return {name: member for name, member in found.items() if member is not None}
