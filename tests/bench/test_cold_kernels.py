"""The tool that measures the compiles of emulated kernels."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from support.folders import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.emulated


@pytest.fixture
def cold_kernels(bench_module: Callable[[str], Any]) -> Any:
    """The module ``bench/cold_kernels.py``."""
    return bench_module("cold_kernels")


def test_a_ratio_above_its_bound_is_named(cold_kernels: Any) -> None:
    within = {kernel: bound * 0.019 for kernel, bound in cold_kernels.COLD_KERNELS.items()}
    assert cold_kernels.Costs(0.02, within).above() == []
    assert cold_kernels.Costs(0.02, {**within, "the first kernel": 0.4}).above() == ["the first kernel: 20.00"]


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_each_compile_has_a_bound_and_a_row_of_the_documentation(cold_kernels: Any, tmp_path: Path) -> None:
    measured = [*cold_kernels.kernels(tmp_path), cold_kernels.CACHED]
    assert measured == [*cold_kernels.COLD_KERNELS]
    page = (REPOSITORY / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert all(f"| {kernel} |" in page for kernel in measured)
