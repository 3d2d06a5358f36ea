"""The rooms of the package: imports go downward only and form no circle.

Imports for type checking count too, and so do calls of ``importlib.import_module`` whose argument begins with a name of
the package.
"""

from __future__ import annotations

import ast
import graphlib
import importlib.util
import re
from pathlib import Path

import pytest

from support.folders import REPOSITORY

FLOORS = [
    {"_base", "_core"},
    {"_runtime"},
    {"_backend", "_process"},
    {
        "streams",
        "memory",
        "graphs",
        "random",
        "jiterator",
        "kernels",
        "comm",
        "nccl",
        "multiprocessing",
        "nvtx",
        "profiler",
        "accelerator",
        "_device",
        "_viz",
    },
    {"_cupy", "emulation", "sanitizer", "_sanitizer"},
    {"tcuda"},
    {"cli", "dask", "demo", "testing", "__main__"},
]
EMULATION = [
    "_cpp",
    "runtime",
    "rtc",
    "numbers",
    "names",
    "devices",
    "work",
    "kernels",
    "arrays",
    "cuda",
    "random",
    "cupyx",
    "as_cupy",
    "xp",
    "backend",
]
"""The rooms of the wing of emulated devices, in the order of their imports: the lowest room first."""

FOR_CHILDREN = "tcuda.emulation.as_cupy.for_children."
"""Modules that child processes import as top-level modules. They use the public names of the wing."""

FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def _package() -> Path:
    spec = importlib.util.find_spec("tcuda")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _modules() -> dict[str, ast.Module]:
    """Return the syntax tree of every module, by the name of the module."""
    package = _package()
    found = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


MODULES = _modules()


def _imports(module: str) -> set[str]:
    """Return the modules of the package that ``module`` imports, also inside of functions."""
    found = set()
    for node in ast.walk(MODULES[module]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in MODULES or inner == "tcuda._core" else str(node.module))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            found |= _named(node.args[0])
    return {name for name in found if name.split(".")[0] == "tcuda"} - {module}


def _named(argument: ast.expr) -> set[str]:
    """Return the modules that an argument of ``import_module`` names: one, or all with the beginning of an f-string."""
    if isinstance(argument, ast.JoinedStr):
        start = argument.values[0]
        if not isinstance(start, ast.Constant):
            return set()
        return {module for module in MODULES if module.startswith(str(start.value))}
    return {argument.value} if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else set()


def _room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "tcuda"


GRAPH = {module: _imports(module) for module in MODULES}


def test_the_first_level_has_at_most_30_entries() -> None:
    files = [path.relative_to(_package()) for path in _package().rglob("*") if path.is_file()]
    entries = {path.parts[0] for path in files if "__pycache__" not in path.parts}
    assert len({entry for entry in entries if not re.fullmatch(r"_core\..*\.so", entry)}) <= 30


def test_an_import_by_name_counts_as_an_import() -> None:
    assert _named(ast.parse("'tcuda.memory'", mode="eval").body) == {"tcuda.memory"}
    assert "tcuda.comm._order" in _named(ast.parse("f'tcuda.comm.{name}'", mode="eval").body)
    assert _named(ast.parse("f'{package}.comm'", mode="eval").body) == set()
    assert "tcuda._core" in GRAPH["tcuda._base.requirements"]


def test_every_room_has_a_floor() -> None:
    assert {_room(module) for module in MODULES} | {"_core"} == FLOOR_OF.keys()


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_go_down(module: str) -> None:
    own = FLOOR_OF[_room(module)]
    upward = sorted(imported for imported in GRAPH[module] if FLOOR_OF[_room(imported)] > own)
    assert not upward


def test_no_modules_import_each_other_in_a_circle() -> None:
    list(graphlib.TopologicalSorter(GRAPH).static_order())  # CycleError names the modules of a circle


def test_no_rooms_import_each_other_in_a_circle() -> None:
    rooms: dict[str, set[str]] = {}
    for module, imported in GRAPH.items():
        room = rooms.setdefault(_room(module), set())
        room |= {_room(name) for name in imported} - {_room(module)}
    list(graphlib.TopologicalSorter(rooms).static_order())


def _room_of_emulation(module: str) -> str | None:
    """Return the room of a module of emulated devices; None for other modules, and for the face of the wing."""
    parts = module.split(".")
    inside = parts[:2] == ["tcuda", "emulation"] and len(parts) > 2 and parts[2] != "__main__"
    return parts[2] if inside and not module.startswith(FOR_CHILDREN) else None


def test_every_entry_of_emulation_is_a_room_and_there_are_at_most_15() -> None:
    folder = REPOSITORY / "tcuda" / "emulation"
    files = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    entries = {path.parts[0] for path in files if "__pycache__" not in path.parts}
    entries -= {"__init__.py", "__main__.py", "DESIGN.md"}
    assert {entry.removesuffix(".py") for entry in entries} == set(EMULATION)
    assert len(EMULATION) <= 15


def test_the_page_of_emulation_has_the_rooms_in_their_order() -> None:
    page = (REPOSITORY / "tcuda" / "emulation" / "DESIGN.md").read_text(encoding="utf-8")
    part = page.partition("\n## Rooms\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` +\|", part, re.MULTILINE) == EMULATION


@pytest.mark.wings
@pytest.mark.parametrize("module", sorted(module for module in MODULES if _room_of_emulation(module)))
def test_imports_of_emulated_devices_go_down(module: str) -> None:
    room = _room_of_emulation(module)
    assert room is not None
    allowed = {*EMULATION[: EMULATION.index(room) + 1], None}
    upward = {imported for imported in GRAPH[module] if _room_of_emulation(imported) not in allowed}
    assert not upward
    assert not GRAPH[module] & {"tcuda.emulation", "tcuda.emulation.__main__"}


def test_only_runtimes_depend_on_their_kind() -> None:
    """Require that no module above the floor of the runtime compares the name or the class of a runtime.

    Emulated devices know their own runtime.
    """
    asking = []
    for module, tree in MODULES.items():
        if FLOOR_OF[_room(module)] > FLOOR_OF["_runtime"] and _room(module) != "emulation":
            asking += [f"{module}:{node.lineno}" for node in ast.walk(tree) if _asks_for_kind(node)]
    assert not asking


def _asks_for_kind(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        compared = {side.value for side in sides if isinstance(side, ast.Constant)}
        named = any(isinstance(side, ast.Attribute) and side.attr == "name" for side in sides)
        return named and not compared.isdisjoint({"cuda", "emulated"})
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
        return any(isinstance(name, ast.Name) and name.id.endswith("Runtime") for name in ast.walk(node))
    return False
