"""The page of a report: no text of a report becomes markup, and many races make a small page."""

from __future__ import annotations

import html
import os
from typing import TYPE_CHECKING

import pytest

from support.browser import embedded
from support.race_reports import FILE, MAIN, SIDE, access, allocation, nasty, race, race_in_kernel, report, step
from support.snapshots import NASTY, frame
from tcuda.sanitizer._page import render
from tcuda.sanitizer._page.page import RACES, SYNCS

if TYPE_CHECKING:
    from pathlib import Path


def test_no_text_of_a_report_becomes_markup() -> None:
    text = render(nasty(), NASTY)
    assert text.count("<script") == text.count("</script") == 2
    shown = NASTY.replace("\ud800", "?")  # a lone surrogate, which UTF-8 cannot encode
    assert f"<title>{html.escape(shown)}</title>" in text
    data = embedded(text)
    assert data["title"] == shown
    assert shown in data["texts"]
    assert data["races"][0]["current"]["operation"] == shown
    assert data["program"]["failure"] == shown


def test_a_page_has_the_source_lines_around_both_accesses(tmp_path: Path) -> None:
    source = tmp_path / "train.py"
    source.write_text("".join(f"value = {number}\n" for number in range(1, 31)))
    stacks = [[frame("step", str(source), line)] for line in (10, 20)]
    found = race(
        previous=access("add", "write", MAIN, 10, stack=stacks[0]),
        current=access("multiply", "read", SIDE, 20, stack=stacks[1]),
        allocation=None,
        neighbours=[],
    )
    data = embedded(render(report(found)))
    assert sorted(data["sources"]) == [str(source)]
    lines = {int(number): text for number, text in data["sources"][str(source)].items()}
    assert {10, 20} <= lines.keys()
    assert not {1, 15, 30} & lines.keys()
    assert all(text == f"value = {number}" for number, text in lines.items())


@pytest.mark.parametrize("kind", ["absent", "pipe", "folder", "binary", "wrong encoding", "short"])
def test_a_source_that_cannot_be_read_is_left_out(kind: str, tmp_path: Path) -> None:
    source = tmp_path / "train.py"
    if kind == "pipe":
        os.mkfifo(source)
    elif kind == "folder":
        source.mkdir()
    elif kind == "binary":
        source.write_bytes(bytes(range(256)) * 8)
    elif kind == "wrong encoding":
        source.write_text("# coding: no-such-encoding\n" * 30)
    elif kind == "short":
        source.write_text("one = 1\n")
    stack = [frame("step", str(source), 20)]
    found = race(
        previous=access("add", "write", MAIN, 20, stack=stack),
        current=access("multiply", "read", SIDE, 20, stack=stack),
        neighbours=[],
    )
    assert str(source) not in embedded(render(report(found)))["sources"]


def test_extents_are_counted_from_the_start_of_the_allocation() -> None:
    base = allocation()["address"]
    found = race(
        overlap=[base + 64, 128],
        previous=access("add", "write", MAIN, 12, address=base + 1020, strides=[-8], shape=[100]),
        current=access("multiply", "read", SIDE, 14, address=base + 64, strides=[64, 4], shape=[2, 16]),
    )
    (drawn,) = embedded(render(report(found)))["races"]
    assert drawn["overlap"] == [64, 128]
    assert drawn["previous"]["extent"] == [1020 - 99 * 8, 99 * 8 + 4, 400]
    assert drawn["current"]["extent"] == [64, 128, 128]


def test_a_race_without_optional_parts_has_a_page() -> None:
    found = race(allocation=None, neighbours=[], missing=None, before=None, element_range=None)
    for one in (found["previous"], found["current"]):
        one |= {"element_range": None, "stack": []}
    del found["neighbours"], found["previous_allocation"]
    (drawn,) = embedded(render(report(found)))["races"]
    assert (drawn["allocation"], drawn["overlap"], drawn["events"]) == (None, None, [])


@pytest.mark.long
def test_a_page_of_many_races_stays_small() -> None:
    races = []
    for number in range(100_000):
        stack = [frame("deep", FILE, depth) for depth in range(20)]
        races.append(race(count=2, current=access("multiply", "read", SIDE, number, stack=stack)))
    syncs = [{"call": "float(x)", "file": FILE, "line": line, "count": line} for line in range(1, 20_001)]
    text = render(report(*races, syncs=syncs))
    assert len(text) < 2_000_000
    data = embedded(text)
    assert (data["found"], data["times"], len(data["races"])) == (100_000, 200_000, RACES)
    assert [drawn["current"]["number"] for drawn in data["races"]] == list(range(RACES))  # the first ones
    assert (data["syncLines"], data["syncTimes"], len(data["syncs"])) == (20_000, 200_010_000, SYNCS)
    assert data["syncs"][0] == ["float(x)", FILE, 20_000, 20_000]  # the lines that waited most often


def test_steps_that_several_races_share_are_stored_once() -> None:
    steps = [step(number, "work", MAIN, "fill") for number in range(10)]
    data = embedded(render(report(race(neighbours=steps), race(neighbours=steps[3:]))))
    assert len(data["events"]) == 10
    assert [len(drawn["events"]) for drawn in data["races"]] == [10, 7]


def test_the_site_of_a_stack_is_the_innermost_frame_of_the_users_code() -> None:
    stack = [
        frame("add", "/usr/lib/python3.12/site-packages/cupy/a.py", 7),
        frame("step", FILE, 5),
        frame("f", FILE, 9),
    ]
    (drawn,) = embedded(render(report(race(current=access("multiply", "read", SIDE, 5, stack=stack)))))["races"]
    assert drawn["words"]["sides"][1]["place"] == {"file": FILE, "line": 5}


def test_a_race_in_a_kernel_has_the_lines_of_its_kernel() -> None:
    in_kernel, between_streams = embedded(render(report(race_in_kernel(), race())))["races"]
    assert (in_kernel["kernel"], in_kernel["words"]["shared"]) == ("total", "both touch `out`")
    assert in_kernel["current"]["line"] == {"file": "kernel.cu", "line": 2}
    assert in_kernel["words"]["sides"][1]["text"] == "thread (1, 0, 0) of block (0, 0, 0) writes"
    assert in_kernel["current"]["excerpt"][1] == [2, "    out[0] += x[i];"]
    assert between_streams["kernel"] is None
    assert [between_streams["current"][name] for name in ("line", "excerpt")] == [None] * 2
