"""The fixtures of the tests of random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tcuda

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda._runtime.protocol import Runtime


@pytest.fixture
def states_as_found(runtime: Runtime) -> Iterator[None]:
    """Restore the states of the default generators after the test."""
    states = tcuda.get_rng_state_all()
    yield
    tcuda.set_rng_state_all(states)
