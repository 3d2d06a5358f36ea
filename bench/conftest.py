"""Lets the benchmarks import the modules beside them, as the scripts beside them do."""

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
    """A benchmark leaves CuPy's allocator as it found it; one that does not fails: the next would measure another."""
    from tcuda._process import lazy

    if not lazy.is_initialized() or lazy.cuda.name != "cuda":
        yield
        return
    from cupy.cuda import get_allocator, set_allocator

    found = get_allocator()
    yield
    left = get_allocator()
    set_allocator(found)
    assert left is found, "the benchmark left another allocator behind"
