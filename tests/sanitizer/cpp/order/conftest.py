"""The fixtures of the tests of races."""

from __future__ import annotations

import pytest

from support.races import Watch


@pytest.fixture
def watch() -> Watch:
    """A detector without streams."""
    return Watch()
