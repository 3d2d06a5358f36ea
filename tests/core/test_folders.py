"""The includes of the C++ files of the core and of the wings, against the tables of their pages ``DESIGN.md``."""

from __future__ import annotations

import graphlib
import re
from typing import TYPE_CHECKING

from support.folders import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGE = REPOSITORY / "tcuda"
CORE = PACKAGE / "_core"
WINGS = ("emulation", "sanitizer")
ROOTS = (CORE, PACKAGE)
"""The include roots: that of the core, and that of the wings."""
SOURCES = sorted(
    path
    for folder in (CORE, *(PACKAGE / wing / "_cpp" for wing in WINGS))
    for path in folder.rglob("*")
    if path.suffix in (".hpp", ".cpp")
)

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
_PYTHON = re.compile(r"Python\.h|structmember\.h|frameobject\.h|cpython/.*|internal/.*|nanobind/.*")
_CORE = "all outside of `bindings/`"
_ROW = re.compile(r"^\| `([\w/]+)/` +\|[^|]*\|([^|]*)\|$", re.MULTILINE)


def name_of(path: Path) -> str:
    """Return the name under which other files include ``path``."""
    return path.relative_to(CORE if CORE in path.parents else PACKAGE).as_posix()


def folder_of(name: str) -> str:
    """Return the folder of the file that is included as ``name``; "" for a file outside of the folders."""
    return name.rpartition("/")[0]


def included(path: Path) -> list[str]:
    """Return the files of the core that ``path`` includes."""
    return [ours for ours, _ in _INCLUDE.findall(path.read_text()) if ours]


def headers(path: Path) -> list[str]:
    """Return the headers of libraries that ``path`` includes."""
    return [theirs for _, theirs in _INCLUDE.findall(path.read_text()) if theirs]


def table() -> dict[str, set[str]]:
    """Return which folders each folder may include, itself among them, from the tables of the folders."""
    found: dict[str, set[str]] = {}
    of_core = set(rows_of("_core"))
    for part in ("_core", *WINGS):
        found |= {folder: {folder, *allowed(cell, of_core)} for folder, cell in rows_of(part).items()}
    return found


def rows_of(part: str) -> dict[str, str]:
    """Return the column "may include" of the table on the page of the core or of a wing, by folder."""
    page = (PACKAGE / part / "DESIGN.md").read_text()
    section = page.partition("\n## Folders")[2].partition("\n## ")[0]
    return {folder: cell.strip() for folder, cell in _ROW.findall(section)}


def allowed(cell: str, folders: set[str]) -> set[str]:
    """Return the folders that a cell of the column "may include" names; ``folders`` are those of the core."""
    if cell == "all folders of the core":
        return folders
    core = {folder for folder in folders if not is_binding(folder)} if _CORE in cell else set()
    return core | set(re.findall(r"`([\w/]+)`", cell.replace(_CORE, "")))


def is_binding(folder: str) -> bool:
    """Return whether a folder is the one of bindings, of the core or of a wing, or lies in it."""
    return "bindings" in folder.split("/")


def forbidden() -> Iterator[str]:
    """Yield each include that the table does not allow."""
    may_include = table()
    for path in SOURCES:
        for other in included(path):
            if folder_of(other) not in may_include[folder_of(name_of(path))]:
                yield f"{name_of(path)} includes {other}"


def test_the_table_has_a_row_for_every_folder() -> None:
    assert set(table()) == {folder_of(name_of(path)) for path in SOURCES}


def test_the_table_names_only_folders_with_a_row() -> None:
    rows = table()
    assert set().union(*rows.values()) == set(rows)


def test_the_table_allows_no_circle_of_folders() -> None:
    others = {folder: may_include - {folder} for folder, may_include in table().items()}
    graphlib.TopologicalSorter(others).prepare()


def test_a_folder_includes_only_the_folders_of_its_row() -> None:
    assert list(forbidden()) == []


def test_every_quoted_include_is_the_path_of_a_file_from_the_include_root() -> None:
    wrong = [
        f"{name_of(path)}: {name}"
        for path in SOURCES
        for name in included(path)
        if not any((root / name).is_file() for root in ROOTS)
    ]
    assert wrong == []


def test_only_the_bindings_include_headers_of_python_and_of_nanobind() -> None:
    folders = {folder_of(name_of(path)) for path in SOURCES if any(map(_PYTHON.fullmatch, headers(path)))}
    assert folders
    assert all(map(is_binding, folders))


def test_no_file_of_the_core_includes_a_file_of_a_wing() -> None:
    upward = [
        f"{name_of(path)} includes {name}"
        for path in SOURCES
        if CORE in path.parents
        for name in included(path)
        if name.startswith(WINGS)
    ]
    assert upward == []


def test_no_file_includes_itself_through_other_files() -> None:
    graphlib.TopologicalSorter({name_of(path): included(path) for path in SOURCES}).prepare()
