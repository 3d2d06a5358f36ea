"""Fixtures of the benchmarks, and the path from which the benchmarks import the modules of this folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _allocator_as_found() -> Iterator[None]:
    """Fail a benchmark that does not restore CuPy's allocator: the next benchmark would measure another allocator."""
    from tcuda._process import lazy

    if not lazy.is_initialized() or lazy.cuda.name != "cuda":
        yield
        return
    from cupy.cuda import get_allocator, set_allocator

    found = get_allocator()
    yield
    left = get_allocator()
    set_allocator(found)
    assert left is found, "the benchmark did not restore CuPy's allocator"
