"""The fixtures of the tests of the emulated runtime."""

from __future__ import annotations

import pytest

from tcuda.emulation.runtime import EmulatedRuntime


@pytest.fixture
def r() -> EmulatedRuntime:
    """A runtime with two new devices and with the clock at 0."""
    return EmulatedRuntime(devices=2, memory=1 << 20)
