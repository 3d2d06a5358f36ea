"""Races and reports in a notebook: the page in a frame."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from support.made_races import race
from tcuda.sanitizer import Report, check
from tcuda.sanitizer._page import render

pytestmark = pytest.mark.emulated


class Frames(HTMLParser):
    """The attributes of the elements of a text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def page_of(text: str) -> str:
    """Return the page that a text of HTML has in a frame, which is its only element."""
    ((tag, attributes),) = Frames(text).found
    assert tag == "iframe"
    assert attributes["sandbox"] == "allow-scripts"
    page = attributes["srcdoc"]
    assert page is not None
    return page


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_a_report_shows_its_page() -> None:
    with check("collect") as report:
        race(arrays=2, name="<add>")
    assert page_of(report._repr_html_()) == render(report.as_dict(), report.summary)
    assert data_of(page_of(report._repr_html_()))["found"] == 2


def test_a_race_shows_the_page_of_one_race() -> None:
    with check("collect") as report:
        race(arrays=2, name="<add>")
    page = page_of(report.races[1]._repr_html_())
    data = data_of(page)
    assert (data["found"], data["possible"], data["operations"]) == (1, 0, 2)
    assert data["races"][0]["current"]["operation"] == "<add>"
    assert f"<title>{html.escape('write after write in <add>')}</title>" in page


def test_a_possible_race_is_shown_as_possible() -> None:
    with check("collect") as report:
        race(possible=[0])
    data = data_of(page_of(report.possible[0]._repr_html_()))
    assert data["possible"] == 1
    assert data["races"][0]["words"]["doubt"] == report.possible[0].doubt


def test_a_report_without_races_has_a_page() -> None:
    assert data_of(page_of(Report()._repr_html_()))["found"] == 0
