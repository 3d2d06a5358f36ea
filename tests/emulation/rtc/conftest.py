"""The fixtures of the tests of run-time compilation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which compiled kernels are stored."""
    folder = tmp_path / "kernels"
    monkeypatch.setenv("TCUDA_CACHE_DIR", str(folder))
    return folder


@pytest.fixture(scope="module")
def cache_of_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The tests of a module store compiled kernels in one folder, which is empty before the first test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TCUDA_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        yield
