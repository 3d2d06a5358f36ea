"""The page in a browser."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from support.browser import Document, needs_browser, show_page
from support.snapshots import (
    MIB,
    NASTY,
    alloc,
    nasty,
    snapshot,
    two_devices,
)
from tcuda._memory_viz import page
from tcuda._memory_viz.page import BANDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def show(tmp_path: Path) -> Callable[..., Document]:
    """Return a function that shows a snapshot in a browser; ``view`` is the end of the page's address."""

    def show(content: dict[str, Any], view: str = "", title: str = "snapshot.pickle") -> Document:
        return show_page(page(content, title), tmp_path, view)

    return show


@needs_browser
def test_a_browser_shows_the_timeline(show: Callable[..., Document]) -> None:
    document = show(two_devices())
    totals = {
        name: document.text_of(f"total-{name}") for name in ("peak", "end", "reserved", "events", "segment-count")
    }
    assert totals == {
        "peak": "18.0 MiB",
        "end": "15.0 MiB",
        "reserved": "22.0 MiB",
        "events": "9",
        "segment-count": "2",
    }
    assert "<title>snapshot.pickle: peak 18.0 MiB, 22.0 MiB reserved, 9 events</title>" in document.text
    assert document.attribute("timeline", "data-peak") == str(18 * MIB)
    assert document.attribute("timeline", "data-peak-event") == "4"
    assert document.attribute("timeline", "data-drawn") == "5"
    assert "1 allocation began before the trace." in document.words
    assert "Memory ran out at event 9: 99.0 MiB asked for, with 5.00 MiB free on the device." in document.words
    assert "reserved, at most 22.0 MiB" in document.words
    assert [document.attribute(f"tab-{view}", "aria-selected") for view in ("timeline", "segments", "sites")] == [
        "true",
        "false",
        "false",
    ]


@needs_browser
def test_a_browser_shows_the_segments(show: Callable[..., Document]) -> None:
    document = show(two_devices(), "#segments/0")
    assert document.attribute("tab-segments", "aria-selected") == "true"
    counts = [document.attribute("segments", f"data-{what}") for what in ("segments", "blocks", "drawn")]
    assert counts == ["2", "6", "6"]
    groups = re.findall(r'<div class="group"><h2>(.*?)</h2><p>(.*?)</p><canvas', document.body)
    assert groups == [
        (
            "Default pool, default stream",
            "1 segment · 20.0 MiB reserved · 12.0 MiB allocated (60.0 %) · 2.00 MiB awaiting free · "
            "6.00 MiB free, at most 4.00 MiB in one piece · 1.00 MiB lost to rounding",
        ),
        (
            "Private pool (1, 0), stream 0x55",
            "1 segment · 2.00 MiB reserved · 2.00 MiB allocated (100.0 %) · 0 B free, at most 0 B in one piece",
        ),
    ]


@needs_browser
def test_a_browser_shows_the_sites_of_the_chosen_device(show: Callable[..., Document]) -> None:
    document = show(two_devices(), "#sites/0")
    assert document.attribute("sites", "data-rows") == "2"
    assert document.rows() == [
        ["step", "train.py:5", "10.0 MiB", "7.00 MiB", "4", "13.0 MiB"],
        ["load", "train.py:3", "8.00 MiB", "8.00 MiB", "1", "8.00 MiB"],
    ]
    document = show(two_devices(), "#sites/1")
    assert document.text_of("total-peak") == "2.00 KiB"
    assert document.rows() == [["step", "train.py:5", "2.00 KiB", "1.00 KiB", "2", "2.00 KiB"]]


@needs_browser
def test_a_browser_runs_no_script_of_a_snapshot(show: Callable[..., Document]) -> None:
    document = show(nasty(), title=NASTY)
    assert "<title>taken" not in document.text
    assert document.attribute("timeline", "data-drawn") == "1"
    assert document.text.count("<script") == 2


@needs_browser
@pytest.mark.parametrize("view", ["#timeline/0", "#segments/0", "#sites/0"])
def test_a_browser_shows_an_empty_snapshot(view: str, show: Callable[..., Document]) -> None:
    document = show(snapshot(), view)
    assert document.text_of("total-peak") == "0 B"
    assert document.attribute("sites", "data-rows") == "0"
    assert "There are no segments." in document.words
    assert "No history was recorded" in document.words


@needs_browser
def test_a_browser_sums_up_the_smaller_allocations(show: Callable[..., Document]) -> None:
    trace = [alloc(number, 100) for number in range(1, BANDS + 8)]
    document = show(snapshot(traces=[trace]))
    assert document.attribute("timeline", "data-drawn") == str(BANDS)
    assert "7 smaller allocations" in document.words
    assert "The largest 2,000 are drawn one by one." in document.words
