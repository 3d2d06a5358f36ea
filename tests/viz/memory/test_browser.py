"""The page in a browser."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from support.browser import Document, needs_browser, show_page, use_page
from support.snapshots import (
    BASE,
    LOAD,
    MIB,
    NASTY,
    STEP,
    alloc,
    block,
    event,
    frame,
    free,
    nasty,
    segment,
    snapshot,
    two_devices,
)
from tcuda._viz.memory import compare, devices, page, render
from tcuda._viz.memory.page import BANDS

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


@pytest.mark.long
@needs_browser
@pytest.mark.parametrize(("reserved", "highest"), [(4, 4), (10, 10), (11, 4), (100, 4)])
def test_the_timeline_has_room_for_the_reserved_memory_only_beside_the_bands(
    reserved: int, highest: int, show: Callable[..., Document]
) -> None:
    blocks = [block(BASE, 4 * MIB), block(BASE + 4 * MIB, (reserved - 4) * MIB, "inactive")]
    trace = [event("segment_alloc", BASE, reserved * MIB), alloc(BASE, 4 * MIB)]
    document = show(snapshot(segment(BASE, *blocks[: 1 + (reserved > 4)]), traces=[trace]))
    shown = document.attribute("timeline", "data-highest")
    assert shown is not None
    assert float(shown) == pytest.approx(1.04 * highest * MIB)


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


def three_sites() -> dict[str, Any]:
    """Return a snapshot of two functions in one file and one in another file. One of them frees its memory."""
    deep = [frame("at", "/usr/lib/python3.12/site-packages/cupy/a.py", 1), frame("matmul", "/lib/python3.12/b.py", 2)]
    other = [*deep, frame("save", "/home/user/io.py", 4), *deep[:1], frame("main", line=9)]
    return snapshot(traces=[[alloc(1, 500, LOAD), alloc(2, 300, STEP), *free(2, 300), alloc(3, 200, other)]])


@needs_browser
def test_the_page_explains_the_peak(show: Callable[..., Document]) -> None:
    assert show(three_sites()).text_of("peak-words") == (
        "At the peak, two sites hold 100 % of the memory: load (train.py:3) 62 %, step (train.py:5) 38 %."
    )


@pytest.mark.long
@needs_browser
@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("line", [["load", "train.py:3"], ["step", "train.py:5"], ["save", "io.py:4"]]),
        ("function", [["load", "train.py"], ["step", "train.py"], ["save", "io.py"]]),
        ("file", [["train.py", "/home/user/train.py"], ["io.py", "/home/user/io.py"]]),
    ],
)
def test_sites_are_grouped(by: str, names: list[list[str]], show: Callable[..., Document]) -> None:
    rows = show(three_sites(), f"#sites/0?by={by}").rows()
    assert [row[:2] for row in rows] == names
    assert sum(int(row[4]) for row in rows) == 3


def scopes() -> dict[str, Any]:
    """Return a snapshot of one function in two scopes and of another one outside of all scopes."""
    trace = [
        alloc(1, 500, STEP, scope="fft"),
        alloc(2, 300, STEP, scope="fft.plan"),
        alloc(3, 200, LOAD, scope="fft"),
        alloc(4, 100, LOAD),
    ]
    live = segment(4096, block(4096, 512, scope="fft"))
    return snapshot(live, traces=[trace])


@pytest.mark.long
@needs_browser
def test_sites_are_grouped_by_scope(show: Callable[..., Document]) -> None:
    document = show(scopes(), "#sites/0?by=scope")
    assert [(row[0], row[1]) for row in document.rows()] == [
        ("fft", "1.18 KiB"),
        ("fft.plan", "300 B"),
        ("no scope", "100 B"),
    ]
    assert document.text_of("sites-note") == "3 scopes, 5 allocations in all."
    assert [row[1] for row in show(scopes(), "#sites/0?by=stack").rows()] == [
        "in fft ← train.py:5 ← main:9",
        "in fft.plan ← train.py:5 ← main:9",
        "in fft ← train.py:3 ← main:9",
        "train.py:3 ← main:9",
    ]


@pytest.mark.long
@needs_browser
def test_a_search_finds_scopes(show: Callable[..., Document]) -> None:
    assert [row[0] for row in show(scopes(), "#sites/0?by=scope&find=PLAN").rows()] == ["fft.plan"]


@needs_browser
def test_the_choice_of_scopes_is_there_for_snapshots_with_scopes(show: Callable[..., Document]) -> None:
    assert 'id="by-scope" aria-pressed="false" hidden' in show(three_sites(), "#sites/0").body
    assert 'id="by-scope" aria-pressed="false">' in show(scopes(), "#sites/0").body


@needs_browser
def test_the_sites_of_memory_that_is_still_alive(show: Callable[..., Document]) -> None:
    document = show(three_sites(), "#sites/0?alive=1")
    assert [row[0] for row in document.rows()] == ["load", "save"]
    assert document.text_of("sites-note") == "2 sites, 700 B in 2 allocations at the end."
    assert show(three_sites(), "#timeline/0?alive=1").attribute("timeline", "data-vivid") == "2"


@pytest.mark.long
@needs_browser
@pytest.mark.parametrize(("text", "found"), [("STEP", ["step"]), ("io.py:4", ["save"]), ("nobody", [])])
def test_a_search_finds_stacks(text: str, found: list[str], show: Callable[..., Document]) -> None:
    assert [row[0] for row in show(three_sites(), f"#sites/0?find={text}").rows()] == found
    shown = show(three_sites(), f"#timeline/0?find={text}")
    assert shown.attribute("timeline", "data-vivid") == str(len(found))


@needs_browser
def test_the_frames_of_libraries_are_folded(tmp_path: Path) -> None:
    script = """
      byId("tab-sites").click();
      byId("find").value = "save";
      byId("find").dispatchEvent(new Event("input"));
      byId("sites").querySelector("tbody tr").click();
      return [...page.querySelectorAll("#details .stack > li")].map((item) => (
        item.querySelector("summary") ?? item.querySelector("b")).textContent);
    """
    assert use_page(page(three_sites()), tmp_path, script) == [
        "2 internal frames",
        "save",
        "1 internal frame",
        "main",
    ]


def compared() -> str:
    found, stacks = devices(three_sites())
    more = snapshot(traces=[[alloc(1, 800, LOAD), alloc(2, 300, [frame("new", "/home/user/new.py", 7)])]])
    ((other,), _) = devices(more, stacks)
    return render(found, stacks, "first.pickle", [compare(found[0], other, "second.pickle")])


@needs_browser
def test_a_comparison_shows_what_changed(tmp_path: Path) -> None:
    script = """
      byId("tab-sites").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
      const rows = [...byId("comparison").querySelectorAll("tbody tr")];
      rows[0].click();
      return {
        shown: !byId("comparison").hidden,
        note: byId("comparison-note").textContent,
        rows: rows.map((row) => [...row.cells].map((cell) => cell.textContent)),
        details: [...page.querySelectorAll("#details h3")].map((title) => title.textContent),
      };
    """
    assert use_page(compared(), tmp_path, script) == {
        "shown": True,
        "note": "From first.pickle to second.pickle: +300 B at the peak (800 B to 1.07 KiB), "
        "+400 B at the end (700 B to 1.07 KiB).",
        "rows": [
            ["loadtrain.py:3", "+300 B", "500 B", "800 B", "+300 B", "1", "1"],
            ["newnew.py:7", "+300 B", "0 B", "300 B", "+300 B", "0", "1"],
            ["steptrain.py:5", "\N{MINUS SIGN}300 B", "300 B", "0 B", "0 B", "1", "0"],
            ["saveio.py:4", "0 B", "0 B", "0 B", "\N{MINUS SIGN}200 B", "1", "0"],
        ],
        "details": ["In first.pickle", "In second.pickle", "Largest stack"],
    }


@needs_browser
def test_a_page_of_one_snapshot_has_no_comparison(tmp_path: Path) -> None:
    script = """
      byId("tab-sites").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
      return [byId("tab-comparison").hidden, byId("comparison").hidden, byId("timeline").hidden];
    """
    assert use_page(page(three_sites()), tmp_path, script) == [True, True, False]


@pytest.mark.long
@needs_browser
@pytest.mark.parametrize("view", ["timeline", "segments", "sites", "comparison"])
def test_no_view_scrolls_sideways_at_400_pixels(view: str, tmp_path: Path) -> None:
    script = f"""
      byId("tab-{view}").click();
      const root = page.documentElement;
      return root.scrollWidth - root.clientWidth;
    """
    shown = compared() if view == "comparison" else page(two_devices())
    assert use_page(shown, tmp_path, script, width=400) == 0


def moving() -> dict[str, Any]:
    """Return a snapshot of two segments: one has an allocation that moves, and the other is gone at the end."""
    trace = [
        event("segment_alloc", BASE, 4 * MIB),
        alloc(BASE, MIB, LOAD),
        event("segment_alloc", 2 * BASE, 8 * MIB),
        alloc(2 * BASE + 2 * MIB, 5 * MIB),
        event("free_requested", BASE, MIB),
        event("free_completed", BASE, MIB),
        *free(2 * BASE + 2 * MIB, 5 * MIB),
        event("segment_free", 2 * BASE, 8 * MIB),
        alloc(BASE + MIB, 2 * MIB),
    ]
    blocks = block(BASE, MIB, "inactive"), block(BASE + MIB, 2 * MIB), block(BASE + 3 * MIB, MIB, "inactive")
    return snapshot(segment(BASE, *blocks), traces=[trace])


@pytest.mark.long
@needs_browser
@pytest.mark.parametrize(
    ("moment", "segments", "blocks", "facts"),
    [
        (0, "0", "0", []),
        (1, "1", "1", ["4.00 MiB reserved", "0 B allocated"]),
        (4, "2", "5", ["12.0 MiB reserved", "6.00 MiB allocated (50.0 %)", "6.00 MiB free, at most 3.00 MiB"]),
        (5, "2", "5", ["5.00 MiB allocated", "1.00 MiB awaiting free"]),
        (10, "1", "3", ["4.00 MiB reserved", "2.00 MiB allocated"]),
    ],
)
def test_the_segments_at_an_event(
    moment: int, segments: str, blocks: str, facts: list[str], show: Callable[..., Document]
) -> None:
    document = show(moving(), f"#segments/0?event={moment}")
    assert [document.attribute("segments", f"data-{what}") for what in ("segments", "blocks")] == [segments, blocks]
    assert all(fact in document.words for fact in facts)


@needs_browser
def test_the_slider_moves_through_the_history(tmp_path: Path) -> None:
    script = """
      byId("tab-segments").click();
      const seen = [];
      const look = async (text) => {
        await waitFor(() => byId("moment-text").textContent.startsWith(text));
        seen.push(byId("segments").dataset.segments);
      };
      await look("The end");
      byId("moment").value = 3;
      byId("moment").dispatchEvent(new Event("input"));
      await look("After event 3 of 10: 1.00 MiB");
      byId("moment-before").click();
      await look("After event 2");
      byId("moment-peak").click();
      await look("After event 4");
      byId("moment-end").click();
      await look("The end");
      return seen;
    """
    assert use_page(page(moving()), tmp_path, script) == ["1", "2", "1", "2", "1"]


@needs_browser
def test_the_peak_has_its_label_beside_a_lack_of_memory(show: Callable[..., Document]) -> None:
    short = [event("oom", 0, 99 * MIB, device_free=5 * MIB)]
    filling = [alloc(number, MIB) for number in range(1, 40)]
    document = show(snapshot(traces=[[*filling, *short, alloc(40, MIB), *short]]))
    assert document.attribute("timeline", "data-labels") == "peak 40.0 MiB, out of memory"


@needs_browser
def test_the_slider_has_no_room_behind_its_end(tmp_path: Path) -> None:
    script = """
      byId("tab-segments").click();
      const style = getComputedStyle(byId("moment"));
      return [style.paddingLeft, style.paddingRight, style.borderLeftWidth];
    """
    assert use_page(page(moving()), tmp_path, script) == ["0px", "0px", "0px"]


@needs_browser
def test_the_blocks_of_a_segment_have_the_colours_of_their_sites(tmp_path: Path) -> None:
    content = snapshot(
        segment(BASE, block(BASE, 3 * MIB, frames=LOAD), block(BASE + 3 * MIB, MIB, frames=STEP)),
        traces=[[alloc(BASE, 3 * MIB, LOAD), alloc(BASE + 3 * MIB, MIB, STEP)]],
    )
    script = """
      byId("tab-segments").click();
      await waitFor(() => page.querySelector("#groups canvas").width > 300);
      const canvas = page.querySelector("#groups canvas");
      const painted = (row) => [...canvas.getContext("2d").getImageData(9, 27 * row + 10, 1, 1).data].slice(0, 3);
      const swatches = [...page.querySelectorAll("#segments-legend .key")].slice(0, 2).map((key) => (
        getComputedStyle(key.querySelector("i")).backgroundColor.match(/\\d+/g).map(Number)));
      return { names: byId("segments-legend").textContent, painted: [painted(0), painted(3)], swatches };
    """
    found = use_page(page(content), tmp_path, script)
    assert found["names"] == "train.py:3 load3.00 MiBtrain.py:5 step1.00 MiBawaiting freefree"
    assert found["painted"] == found["swatches"]
    assert found["painted"][0] != found["painted"][1]


@needs_browser
def test_a_browser_paints_a_long_history(show: Callable[..., Document]) -> None:
    trace = [each for number in range(20_000) for each in (alloc(number % 999, 512 + number), *free(number % 999, 0))]
    document = show(snapshot(traces=[trace]))
    assert document.text_of("total-events") == "60,000"
    assert document.text_of("total-peak") == "20.0 KiB"
    assert document.attribute("timeline", "data-drawn") == str(BANDS)
