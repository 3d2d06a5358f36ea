"""The fixtures of the tests of the demo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tcuda

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _nothing_left_running() -> Iterator[None]:
    yield
    for device in range(tcuda.device_count()):
        tcuda.synchronize(device)
