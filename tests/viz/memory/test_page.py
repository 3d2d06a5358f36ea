"""The page of a snapshot: no text of a snapshot becomes markup, and long histories make small pages."""

from __future__ import annotations

import html
from typing import Any

import pytest

from support.browser import embedded
from support.snapshots import (
    NASTY,
    alloc,
    event,
    frame,
    free,
    nasty,
    snapshot,
)
from tcuda._viz.memory import page
from tcuda._viz.memory.page import BANDS


def test_no_text_of_a_snapshot_becomes_markup() -> None:
    text = page(nasty(), title=NASTY)
    assert text.count("<script") == text.count("</script") == 2
    shown = NASTY.replace("\ud800", "?")  # a lone surrogate, which UTF-8 cannot encode
    assert f"<title>{html.escape(shown)}</title>" in text
    data = embedded(text)
    assert data["title"] == shown
    assert shown in data["texts"]
    assert data["devices"][0]["bands"][0][-1] == shown


def test_the_largest_allocations_are_drawn_one_by_one() -> None:
    count = BANDS + 400
    trace = []
    for number in range(1, count + 1):
        size = 10 if number % 3 else 5
        trace += [alloc(number, size), *(free(number, size) if number % 2 else [])]
    trace += 3 * [event("snapshot", 0, 0)]
    (device,) = embedded(page(snapshot(traces=[trace])))["devices"]
    drawn = [int(band[0], 16) for band in device["bands"]]
    assert (device["allocations"], len(drawn)) == (count, BANDS)
    assert drawn == sorted(drawn)  # in the order of their first events
    left_out = set(range(1, count + 1)) - set(drawn)
    assert {number % 3 for number in left_out} == {0}  # only the smallest are left out
    assert {number % 2 for number in left_out} == {1}  # among the smallest, only freed allocations are left out


@pytest.mark.long
def test_a_page_of_many_events_stays_small() -> None:
    trace: list[dict[str, Any]] = []
    for number in range(33_400):
        frames = [frame("deep", line=depth) for depth in range(20)]
        trace += [alloc(number, 1000 + number, frames), *free(number, 1000 + number)]
    for number, each in enumerate(trace):
        each["time_us"] += 17 * number + number % 13
    text = page(snapshot(traces=[trace]))
    assert len(trace) > 100_000
    assert len(text) < 1_000_000  # A million events then have less than 10 MB.
