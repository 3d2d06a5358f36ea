"""The processor time of the compiles of emulated kernels, compared with the compile of an empty C++ file."""

from __future__ import annotations

import shutil

import pytest
from cold_kernels import measure


@pytest.mark.skipif(shutil.which("g++") is None, reason="the bounds are those of gcc")
def test_cold_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "g++")
    costs = measure()
    assert not costs.above(), costs
