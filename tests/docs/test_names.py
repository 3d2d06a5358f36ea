"""Every name such as ``tcuda.x.y`` in the README and in the pages exists."""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any

import pytest

from support.folders import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

PAGES = [
    REPOSITORY / "README.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
    *sorted((REPOSITORY / "docs/api").glob("*.md")),
]
_NAME = re.compile(r"(?<![\w./-])tcuda((?:\.[A-Za-z_]\w*)+)")


def _names(page: Path) -> set[str]:
    return {f"tcuda{found[1]}" for found in _NAME.finditer(page.read_text()) if found[1] != ".NAME"}  # of any name


def _found(name: str) -> bool:
    parts = name.split(".")
    value: Any = importlib.import_module(parts[0])
    for place, part in enumerate(parts[1:], 2):
        if not hasattr(value, part):
            try:
                value = importlib.import_module(".".join(parts[:place]))
            except ImportError:
                return part in getattr(value, "__annotations__", {})
        else:
            value = getattr(value, part)
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_names_of_a_page_exist(page: Path) -> None:
    assert [name for name in sorted(_names(page)) if not _found(name)] == []


@pytest.mark.parametrize(
    ("name", "exists"),
    [
        ("tcuda.sanitizer.check", True),
        ("tcuda.sanitizer.Report.races", True),
        ("tcuda.emulation.runtime.settings", True),
        ("tcuda.sanitizer.no_such_name", False),
        ("tcuda.Stream.no_such_name", False),
    ],
)
def test_a_name_that_does_not_exist_is_found(name: str, exists: bool) -> None:
    assert _found(name) is exists
