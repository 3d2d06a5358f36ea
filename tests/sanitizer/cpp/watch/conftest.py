"""The fixtures of the tests of the watch."""

from __future__ import annotations

import pytest

from support.launches import Launches


@pytest.fixture
def launches() -> Launches:
    """A reader of launches without kernels, and a detector without memory."""
    return Launches()
