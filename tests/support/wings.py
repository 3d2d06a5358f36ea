"""What the tests of the core use of the wings: emulated devices, and the search for races."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from support.folders import REPOSITORY, TESTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDERS = ("docs", "emulation", "sanitizer")
"""The folders whose tests are tests of the wings. The pages show the wings too."""

_NAMED = re.compile(
    r"tcuda\.(?:emulation|_?sanitizer)\b|from tcuda import [^\n]*\b(?:emulation|_?sanitizer)\b"
    r"""|TCUDA_RUNTIME["']?(?:\] = |=|: )["']emulated|--tcuda-(?:runtime[= ]emulated|sanitize)|\benable_without_gpu\b"""
)
"""How the code of a test, or a program that the test runs, uses a wing."""


def names_of_the_wings() -> set[str]:
    """Return the names that the C++ of the wings adds to the extension."""
    added = re.compile(
        r'\bmodule\.def\(\s*"(\w+)"|nb::(?:class_|enum_)<[^;{]*?>\(\s*module,\s*"(\w+)"|add_type\(module, "(\w+)"'
    )
    files = [
        file for wing in ("emulation", "sanitizer") for file in (REPOSITORY / "tcuda" / wing / "_cpp").rglob("*.cpp")
    ]
    return {name for file in files for found in added.findall(file.read_text()) for name in found if name}


def names_of_the_extension(code: str) -> set[str]:
    """Return the names of the extension that a module uses."""
    imported = re.findall(r"from tcuda\._core import (\([^)]*\)|.*)", code)
    used = re.findall(r"\b(?:_core|for_tests)\.(\w+)", code)
    return {*used, *(name for names in imported for name in re.findall(r"\w+", names))}


def is_in_a_folder_of_the_wings(path: Path) -> bool:
    """Return whether all tests of a file or of a folder are tests of the wings."""
    return any(path.is_relative_to(TESTS / folder) for folder in FOLDERS)


def imports_a_wing(path: Path) -> bool:
    """Return whether the import of a file of tests imports a wing, also by the helpers that the file imports."""
    return any(_is_of_a_wing(node) for node in ast.parse(path.read_text()).body)


def _is_of_a_wing(node: ast.AST) -> bool:
    """Return whether a statement is an import of a wing, or of a helper that imports a wing."""
    if not isinstance(node, (ast.Import, ast.ImportFrom)):
        return False
    modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    helpers = [TESTS / f"{module.replace('.', '/')}.py" for module in modules if module.startswith("support.")]
    return _NAMED.search(ast.unparse(node)) is not None or any(map(imports_a_wing, helpers))


def unmarked_uses_of_a_wing(path: Path) -> Iterator[str]:
    """Yield the names of the tests in a file that use a wing, and have no mark that says so.

    A test uses what the functions, the classes and the constants of its file use that the test names.
    """
    text = path.read_text()
    if not _NAMED.search(text) and not names_of_the_extension(text) & _OF_THE_WINGS and not imports_a_wing(path):
        return
    file = ast.parse(text)
    of_file = _named_in(file)

    def uses(node: ast.AST, named: dict[str, ast.stmt], seen: set[str]) -> bool:
        code = ast.unparse(node)
        if _is_of_a_wing(node) or _NAMED.search(code) or names_of_the_extension(code) & _OF_THE_WINGS:
            return True
        others = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        others |= {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
        others |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
        others = (others & named.keys()) - seen
        seen |= others
        return any(uses(named[name], named, seen) for name in others)

    if "pytestmark" in of_file and _has_mark(of_file["pytestmark"]):
        return
    for node in file.body:
        is_class = isinstance(node, ast.ClassDef)
        named = {**of_file, **_named_in(node)} if is_class else of_file
        for test in node.body if is_class and not _has_mark(node) else [node]:
            is_test = isinstance(test, ast.FunctionDef) and test.name.startswith("test")
            if is_test and not _has_mark(test) and uses(test, named, set()):
                yield test.name


_OF_THE_WINGS = names_of_the_wings()


def _named_in(block: ast.Module | ast.ClassDef) -> dict[str, ast.stmt]:
    """Return the statements of a module or of a class by the names that they give."""
    return {name: node for node in block.body for name in _names_of(node)}


def _names_of(node: ast.stmt) -> list[str]:
    """Return the names that a statement of a module gives."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]


def _has_mark(node: ast.AST) -> bool:
    """Return whether a function, a class or ``pytestmark`` has a mark that says that a wing is needed."""
    marks = getattr(node, "decorator_list", [node])
    return any(re.search(r"\bmark\.(?:emulated|wings)\b", ast.unparse(mark)) for mark in marks)
