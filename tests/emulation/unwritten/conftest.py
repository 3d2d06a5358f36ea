"""The check of unwritten memory, for one test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda.emulation.runtime import EmulatedRuntime
    from tcuda.emulation.runtime.unwritten import Unwritten


@pytest.fixture
def unwritten(runtime: EmulatedRuntime, monkeypatch: pytest.MonkeyPatch) -> Iterator[Unwritten]:
    """Look for uses of unwritten memory, and return the marks."""
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", "memory,init")
    runtime.contents.watch(True)
    assert runtime.contents.unwritten is not None
    yield runtime.contents.unwritten
    runtime.contents.watch(False)
