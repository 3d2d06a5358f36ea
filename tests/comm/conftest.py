"""The fixtures of the tests of copies and sums over several devices."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

import tcuda
from support.devices import allocated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda._runtime.protocol import Runtime


@pytest.fixture
def memory_comes_back(runtime: Runtime) -> Iterator[None]:
    """Require that a test that drops its arrays gives all their memory back."""
    before = allocated()
    yield
    if allocated() != before:
        gc.collect()
    assert all(now <= then for now, then in zip(allocated(), before, strict=True))


@pytest.fixture
def idle(runtime: Runtime) -> None:
    """Let a test begin with devices that have no work."""
    for device in range(tcuda.device_count()):
        tcuda.synchronize(device)
