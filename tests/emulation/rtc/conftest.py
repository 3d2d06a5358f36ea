"""The fixtures of the tests of run-time compilation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which compiled kernels are stored."""
    folder = tmp_path / "kernels"
    monkeypatch.setenv("TCUDA_CACHE_DIR", str(folder))
    return folder
