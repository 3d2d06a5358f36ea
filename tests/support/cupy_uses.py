"""The names of CuPy that tcuda uses on CUDA, read off the source of tcuda.

``.ci/run cupy_versions`` looks them up in each version of CuPy. The private names are among them.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PACKAGE = Path(__file__).parents[2] / "tcuda"
FOLDERS = ("_cupy", "_runtime/cuda", "dask")
_ROOTS = ("cupy", "cupy_backends", "cupyx")


def used_names() -> dict[str, str]:
    """Return the dotted names of CuPy that the source uses, each with one place of its use."""
    found: dict[str, str] = {}
    for folder in FOLDERS:
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            for name, line in names_in(ast.parse(path.read_text(encoding="utf-8"))):
                found.setdefault(name, f"{path.relative_to(PACKAGE.parent)}:{line}")
    return found


def names_in(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the dotted names of CuPy in a module, with their lines.

    A parameter or a variable with the name ``cupy`` is CuPy, and a variable that is assigned a name of CuPy is that
    name in its function. Names behind calls, such as attributes of arrays, are not read.
    """
    yield from _names_in(tree, {"cupy": "cupy"})


def _names_in(scope: ast.AST, outer: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    known = dict(outer)
    inner = [node for node in ast.walk(scope) if node is not scope]
    functions = [node for node in inner if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))]
    in_functions = {id(node) for function in functions for node in ast.walk(function)}
    own = [node for node in inner if id(node) not in in_functions]
    for node in own:
        if isinstance(node, ast.Import):
            known |= {
                a.asname or a.name.partition(".")[0]: a.name if a.asname else a.name.partition(".")[0]
                for a in node.names
                if a.name.partition(".")[0] in _ROOTS
            }
        elif isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] in _ROOTS:
            known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
    for node in own:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = _dotted(node.value, known)
            if name is not None:
                known[node.targets[0].id] = name
    for node in own:
        if isinstance(node, ast.Attribute) and (name := _dotted(node, known)) is not None:
            yield name, node.lineno
    nested = {id(node) for function in functions for node in ast.walk(function) if node is not function}
    for function in functions:
        if id(function) not in nested:
            yield from _names_in(function, known)


def _dotted(node: ast.expr, known: Mapping[str, str]) -> str | None:
    """Return the dotted name that an expression stands for; None if the expression is no name of CuPy."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value, known)
        return None if owner is None else f"{owner}.{node.attr}"
    return None


def exists(name: str) -> bool | None:
    """Return whether the installed CuPy has a dotted name; None if a library that CuPy needs to tell is missing."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        except ImportError as error:
            if "cannot open shared object file" not in str(error):
                raise
            return None
        for part in parts[count:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False
