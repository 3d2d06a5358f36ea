"""The walks of docs/architecture.md name files that exist, and functions, classes and tables in these files."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from support.folders import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

_PAGE = (REPOSITORY / "docs" / "architecture.md").read_text()
_WALKS = re.search(r"^## Five changes\n(.*?)^## ", _PAGE, re.MULTILINE | re.DOTALL)
assert _WALKS is not None
PLACES = sorted(set(re.findall(r"`((?:tcuda|tests|docs)/[^`\s]+)`", _WALKS[1])))


def _names(tree: ast.AST) -> set[str]:
    """Return the names of the functions, classes and variables in a module or a class; members as ``C.f``."""
    found = set()
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            found |= {child.name, *(f"{child.name}.{name}" for name in _names(child))}
        elif isinstance(child, ast.Assign):
            found |= {target.id for target in child.targets if isinstance(target, ast.Name)}
        elif isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
            found.add(child.target.id)
    return found


def _has(path: Path, name: str) -> bool:
    text = path.read_text()
    if path.suffix == ".py":
        return name in _names(ast.parse(text))
    words = re.escape(name)
    return bool(re.search(rf"^ *(?:class|struct) {words}\b|^[\w:<>&* ]+[ :&*]{words}\([^;]*$", text, re.MULTILINE))


def _problem(place: str) -> str | None:
    """Return what is wrong with a place such as ``folder/file.py:Class.method``; None if the place exists."""
    file, _, name = place.partition(":")
    if not (REPOSITORY / file).exists():
        return f"There is no {file}."
    return None if not name or _has(REPOSITORY / file, name) else f"{file} has no {name}."


def test_there_are_five_walks_of_several_places() -> None:
    assert _WALKS is not None
    walks = _WALKS[1].split("\n### ")[1:]
    assert len(walks) == 5
    assert all(len(re.findall(r"`tcuda/[^`]+`", walk)) >= 3 for walk in walks)


@pytest.mark.parametrize("place", PLACES)
def test_a_place_of_a_walk_exists(place: str) -> None:
    assert _problem(place) is None


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("tcuda/memory/_gone.py:memory_stats", "There is no tcuda/memory/_gone.py."),
        ("tcuda/memory/_statistics.py:gone", "tcuda/memory/_statistics.py has no gone."),
        ("tcuda/graphs/_cuda_graph.py:CUDAGraph.gone", "tcuda/graphs/_cuda_graph.py has no CUDAGraph.gone."),
        (
            "tcuda/_core/memory/records/statistics.hpp:visit",  # a call, and no function
            "tcuda/_core/memory/records/statistics.hpp has no visit.",
        ),
    ],
)
def test_a_place_that_does_not_exist_is_found(place: str, problem: str) -> None:
    assert _problem(place) == problem
