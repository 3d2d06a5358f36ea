"""The fixtures of the tests of copies and sums over several devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tcuda

if TYPE_CHECKING:
    from tcuda._runtime.protocol import Runtime


@pytest.fixture
def idle(runtime: Runtime) -> None:
    """Let a test begin with devices that have no work."""
    for device in range(tcuda.device_count()):
        tcuda.synchronize(device)
