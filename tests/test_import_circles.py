"""The imports between modules of one room go in one direction, also the imports for type checking."""

from __future__ import annotations

import ast
import graphlib
from pathlib import Path

import pytest

import tcuda

ROOT = Path(tcuda.__file__).parent


def imports_of(path: Path, names: frozenset[str]) -> set[str]:
    """Return those of the modules ``names`` that the file imports, wherever in the file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update({str(node.module)} & names or {f"{node.module}.{alias.name}" for alias in node.names})
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found & names


@pytest.mark.parametrize("room", ["_runtime/emulated", "emulation"])
def test_no_module_imports_itself_through_others(room: str) -> None:
    package = f"tcuda.{room.replace('/', '.')}"
    paths = {f"{package}.{path.stem}": path for path in sorted((ROOT / room).glob("*.py")) if path.stem != "__init__"}
    names = frozenset(paths)
    graph = {name: imports_of(path, names) for name, path in paths.items()}
    assert len(graph) > 10
    assert sum(map(len, graph.values())) > len(graph)
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle
