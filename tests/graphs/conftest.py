"""The fixtures of the tests of graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tcuda

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda._runtime.protocol import Runtime


@pytest.fixture
def graph(runtime: Runtime) -> Iterator[tcuda.CUDAGraph]:
    """A graph that is reset at the end, also if the test fails during the capture."""
    made = tcuda.CUDAGraph()
    yield made
    made._abandon_capture()
    made.reset()
