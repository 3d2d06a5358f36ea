"""The chart of the times of calls, and the sentences of the pages about these times."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from support.folders import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BENCH = REPOSITORY / "bench"
PAGE = REPOSITORY / "docs" / "benchmarks.md"
HOME = REPOSITORY / "docs" / "index.md"
CHART = REPOSITORY / "docs" / "images" / "calls.svg"


@pytest.fixture
def chart(bench_module: Callable[[str], Any]) -> Any:
    """The module ``bench/chart.py``."""
    return bench_module("chart")


def test_the_chart_shows_the_figures_of_the_page(tmp_path: Path) -> None:
    drawn = tmp_path / "calls.svg"
    command = [sys.executable, str(BENCH / "report.py"), str(PAGE), "--chart", str(drawn)]
    subprocess.run(command, check=True, capture_output=True)
    again = "run python bench/report.py docs/benchmarks.md --chart docs/images/calls.svg"
    assert drawn.read_text(encoding="utf-8") == CHART.read_text(encoding="utf-8"), again


def test_both_pages_say_the_result_of_all_calls(chart: Any) -> None:
    sentences = chart.headline(chart.of_page(PAGE))
    benchmarks, home = (" ".join(page.read_text().split()) for page in (PAGE, HOME))
    assert sentences in home
    assert sentences in benchmarks
    assert f"<!-- figures: {'; '.join(chart.CALLS_SHOWN)} -->" in home


def test_the_headline_counts_the_calls(chart: Any) -> None:
    pairs = {"f()": chart.Pair(1, 4), "g()": chart.Pair(1, 2), "h()": chart.Pair(3, 2)}
    assert chart.headline(pairs) == (
        "2 of 3 calls of tcuda take at most the time of the same call of torch. "
        "Half of the calls take at most 0.50 of torch's time."
    )


def test_a_shorter_time_is_left_of_a_longer_time_by_its_logarithm(chart: Any) -> None:
    pairs = dict.fromkeys(chart.CALLS_SHOWN, chart.Pair(1_000, 10_000)) | {"rand(1000)": chart.Pair(100_000, 100)}
    root = ElementTree.fromstring(chart.svg(pairs))
    lines = [element for element in root.iter() if element.get("class") == "gap"]
    ends = [(float(line.attrib["x1"]), float(line.attrib["x2"])) for line in lines]
    assert len(ends) == len(chart.CALLS_SHOWN)
    (quick, slow), (slowest, quickest) = ends[0], ends[-1]
    assert quickest < quick < slow < slowest
    assert slow - quick == pytest.approx((slowest - quickest) / 3, abs=0.2)


def test_a_call_that_was_not_measured_is_an_error(chart: Any) -> None:
    with pytest.raises(chart.UnusableError, match=r"The chart needs rand\(1000\), in tcuda and in torch"):
        chart.svg(dict.fromkeys(chart.CALLS_SHOWN[:-1], chart.Pair(1, 2)))


@pytest.mark.parametrize(
    ("nanoseconds", "words"),
    [(36, "36 ns"), (999.6, "1 µs"), (1_204, "1.2 µs"), (166_282, "166 µs"), (2.5e6, "2.5 ms")],
)
def test_a_time_has_a_unit(chart: Any, nanoseconds: float, words: str) -> None:
    assert chart.words(nanoseconds) == words
