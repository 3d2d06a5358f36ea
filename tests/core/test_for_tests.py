"""The functions that only tests call are in ``tcuda._core.for_tests``, and the others are in ``tcuda._core``."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import tcuda._core
from support.core import for_tests
from support.folders import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

STUB = REPOSITORY / "tcuda" / "_core" / "__init__.pyi"
PACKAGE = sorted((REPOSITORY / "tcuda").rglob("*.py"))
BENCHMARKS = sorted((REPOSITORY / "bench").rglob("*.py"))
TESTS = sorted((REPOSITORY / "tests").rglob("*.py"))

RESULTS = {"ExpectedCapture", "Forwarder", "PageLockedMemory"}
"""The classes of results, which the package uses and does not name."""


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def named() -> Iterator[tuple[str, str]]:
    """Yield each function, class and method of the stub: the whole name, such as ``Ledger.free``, and its last part."""
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, node.name
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                    yield f"{node.name}.{member.name}", member.name


def test_the_package_uses_each_function_of_the_core() -> None:
    used = set[str]().union(*(words(path.read_text()) for path in (*PACKAGE, *BENCHMARKS)))
    assert {path for path, name in named() if name not in used} == RESULTS


def test_the_package_uses_no_function_for_tests() -> None:
    assert [path for path in PACKAGE if "for_tests" in path.read_text()] == []


def test_a_test_uses_each_function_for_tests() -> None:
    for_tests.FaultyDriver  # noqa: B018 - the test is skipped where the core lacks the functions
    names = {name for name in vars(tcuda._core.for_tests) if not name.startswith("__")}
    assert names <= set[str]().union(*(words(path.read_text()) for path in TESTS))
