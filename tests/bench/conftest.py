"""The modules of ``bench/`` for tests of their functions."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.folders import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BENCH = REPOSITORY / "bench"


@pytest.fixture
def bench_module() -> Iterator[Callable[[str], Any]]:
    """Import a module of ``bench/``. The folder is on the path, and its modules stay imported, only in the test."""
    before, path = set(sys.modules), list(sys.path)
    sys.path.insert(0, str(BENCH))
    try:
        yield importlib.import_module
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - before:
            if (BENCH / f"{name}.py").exists():
                del sys.modules[name]
