"""The fixtures of the tests of run-time compilation."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is made for the first compiled kernel."""
    monkeypatch.setenv("TCUDA_CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels" / f"tcuda-kernels-{os.geteuid()}"


@pytest.fixture(scope="module")
def cache_of_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The tests of a module store compiled kernels in one folder, which is empty before the first test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TCUDA_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        yield
