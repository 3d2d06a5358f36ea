"""What several tests of the pages need."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pytest

from support.folders import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Return a script of ``docs/_tools`` by its name, as a module."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "docs/_tools"))
    return importlib.import_module
