"""The tool that measures the cost of calls beside many blocks, streams and graphs."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.folders import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable

BENCH = REPOSITORY / "bench"


@pytest.fixture
def growth(bench_module: Callable[[str], Any]) -> Any:
    """The module ``bench/growth.py``."""
    return bench_module("growth")


def test_growth_is_the_cost_beside_the_most_divided_by_the_cost_beside_the_fewest(growth: Any) -> None:
    flat = growth.Curve("streams", "f()", [1, 10, 1000], [2e-6, 9e-6, 3e-6])
    steep = growth.Curve("blocks", "g()", [1, 1000], [1e-6, 4e-6])
    assert (flat.growth, steep.growth) == (pytest.approx(1.5), pytest.approx(4))
    assert growth.too_steep([flat, steep]) == ["g() (blocks: 4.0)"]
    assert growth.too_steep([flat]) == []


def test_each_kind_of_objects_has_a_table_in_microseconds(growth: Any) -> None:
    curves = [
        growth.Curve("blocks", "f()", [1000, 100_000], [1e-6, 1.5e-6]),
        growth.Curve("graphs", "f()", [1, 10], [2e-6, 2e-6]),
    ]
    assert growth.tables(curves, growth.markdown).split("\n") == [
        "| microseconds beside ... blocks | 1,000 | 100,000 | growth |",
        "| --- | ---: | ---: | ---: |",
        "| f() | 1.00 | 1.50 | 1.50 |",
        "",
        "| microseconds beside ... graphs | 1 | 10 | growth |",
        "| --- | ---: | ---: | ---: |",
        "| f() | 2.00 | 2.00 | 1.00 |",
    ]


def test_a_gpu_is_measured_as_a_program_runs_usually(growth: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "ON_CUDA", False)
    assert growth.here() == list(growth.KEPT)
    monkeypatch.setattr(growth, "ON_CUDA", True)
    assert growth.here() == ["blocks", "streams", "graphs", "arrays of the call, for each array"]


def test_a_steep_curve_is_the_exit_status(growth: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    costs = [1e-6, 1e-6]
    monkeypatch.setattr(growth, "measure_modes", lambda _: [growth.Curve("blocks", "f()", [1, 2], costs)])
    assert growth.main(["--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"kept": "blocks", "call": "f()", "counts": [1, 2], "costs": costs}]
    costs[1] = 9e-6
    assert growth.main([]) == 1
    printed = capsys.readouterr()
    assert "f()" in printed.out
    assert "f() (blocks: 9.0)" in printed.err


def test_the_objects_are_kept_and_the_calls_run(growth: Any) -> None:
    for kind in growth.here():
        counts, keep, calls, mode, _ = growth.KEPT[kind]
        assert list(counts) == sorted(counts), kind
        assert mode in growth.MODES
        kept: list[Any] = []
        keep(3, kept)
        keep(5, kept)
        assert len(kept) == (0 if keep is growth.make_larger else 5)
        for call in calls().values():
            call()
        tcuda.synchronize()


@pytest.mark.emulated
def test_the_documentation_has_the_calls(growth: Any) -> None:
    page = (REPOSITORY / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    growth.make_larger(5, [])
    for kept in growth.KEPT.values():
        for call in kept.calls():
            assert f"| {call} |" in page


def test_the_tool_has_an_option_for_a_million_blocks() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCH / "growth.py"), "--help"], capture_output=True, text=True, check=True
    )
    assert "--million" in done.stdout
