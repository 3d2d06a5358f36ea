"""The page of a report in a browser."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from support.browser import Document, needs_browser, show_page, use_page
from support.race_reports import (
    FILE,
    MAIN,
    OTHER,
    SIDE,
    access,
    nasty,
    race,
    race_in_kernel,
    report,
    several,
    step,
    unwritten_read,
)
from support.snapshots import NASTY
from tcuda.sanitizer import _words as sanitizer_words
from tcuda.sanitizer._causes import add_causes
from tcuda.sanitizer._page import render

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = needs_browser


@pytest.fixture
def show(tmp_path: Path) -> Callable[..., Document]:
    """Return a function that shows a report in a browser; ``view`` is the end of the page's address."""

    def show(content: dict[str, Any], view: str = "", title: str = "train.py") -> Document:
        return show_page(render(content, title), tmp_path, view)

    return show


def words_of(document: Document, tag: str, name: str = "") -> list[str]:
    """Return the text of each element with a tag and a class."""
    wanted = rf'[^>]*class="{name}"' if name else r"(?:\s[^>]*)?"
    found = re.findall(rf"<{tag}{wanted}>(.*?)</{tag}>", document.body, re.DOTALL)
    return [re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text)).strip() for text in found]


def timeline(document: Document) -> list[list[str]]:
    """Return the rows of the timeline in words."""
    (table,) = re.findall(r'<table class="words">(.*?)</table>', document.body, re.DOTALL)
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", table.partition("<tbody>")[2], re.DOTALL)
    return [re.findall(r"<td>(.*?)</td>", row) for row in rows]


def test_a_browser_shows_the_list_of_races(show: Callable[..., Document]) -> None:
    document = show(several())
    shown = ("races", "possible", "times", "operations", "suppressed", "syncs")
    totals = {name: document.text_of(f"total-{name}") for name in shown}
    assert totals == {
        "races": "3",
        "possible": "1",
        "times": "1,206",
        "operations": "20",
        "suppressed": "2",
        "syncs": "703",
    }
    assert "<title>train.py: 3 races</title>" in document.text
    assert document.attribute("list", "data-rows") == "4"
    assert words_of(document, "li")[:4] == [
        "Read after write1,203 timesadd train.py:12multiply train.py:14",
        "Write after readhost_read train.py:20fill train.py:21",
        "Use after freeadd train.py:12multiply train.py:14",
        "Possible read after writeadd train.py:12kernel train.py:33",
    ]
    assert len(re.findall(r'aria-current="true"', document.body)) == 1


def test_a_browser_counts_reads_of_unwritten_memory_apart_from_races(show: Callable[..., Document]) -> None:
    document = show(report(race(), unwritten_reads=[unwritten_read()]))
    assert (document.text_of("total-races"), document.text_of("total-unwritten")) == ("1", "1")
    assert "<title>train.py: 1 race, 1 read of unwritten memory</title>" in document.text
    assert document.text_of("list-note") == "2 findings"


def test_a_browser_shows_what_is_missing(show: Callable[..., Document]) -> None:
    document = show(several())
    assert words_of(document, "div", "fix") == [
        "Missingside.wait_stream(main) before train.py:14The stream side does not wait for the stream main."
    ]
    assert words_of(document, "p", "what") == [
        "add writes its argument out on main of device 0",
        "multiply reads its argument a on side of device 0",
        "Both touch elements 0 to 63",
    ]
    assert words_of(document, "p", "place") == [f"{FILE}:12", f"{FILE}:14"]
    assert "add: elements 0 to 63 of 256 of the argument |out" in document.words
    assert "1.00 KiB (1,024 B) at 0x7f0000000000" in document.words


def test_a_browser_shows_a_race_in_a_kernel(show: Callable[..., Document]) -> None:
    document = show(report(race_in_kernel(count=3)))
    threads = [f"Thread ({thread}, 0, 0) of block (0, 0, 0) writes" for thread in (0, 1)]
    assert words_of(document, "p", "what") == [*threads, "Both touch out"]
    assert words_of(document, "p", "place") == ["kernel.cu:2", "kernel.cu:2", f"{FILE}:14"]
    assert len(re.findall(r'<span class="here" aria-current="true"><i>2</i>', document.body)) == 2
    assert "Race in the kernel total" in document.words
    assert "Timeline" not in document.words


def test_a_browser_says_why_a_race_is_only_possible(show: Callable[..., Document]) -> None:
    doubt = "`kernel` gets a pointer into this memory, and it is not known what `kernel` does there."
    document = show(report(race(confidence="possible", doubt=doubt)))
    assert words_of(document, "p", "doubt") == [doubt.replace("`", "")]
    assert words_of(show(report(race())), "p", "doubt") == []


def test_a_browser_shows_the_source_lines(show: Callable[..., Document], tmp_path: Path) -> None:
    source = tmp_path / "train.py"
    source.write_text("".join(f"value = f({number}) < 1\n" for number in range(1, 31)))
    stack = [{"name": "step", "filename": str(source), "line": 14}]
    document = show(report(race(current=access("multiply", "read", SIDE, 14, stack=stack))))
    (lines,) = re.findall(r'<pre class="source">(.*?)</pre>', document.body, re.DOTALL)
    assert re.findall(r"value = f\((\d+)\) &lt; 1", lines) == ["12", "13", "14", "15", "16"]
    assert re.findall(r'<span class="here" aria-current="true"><i>(\d+)</i>', lines) == ["14"]


def test_a_browser_draws_the_timeline(show: Callable[..., Document]) -> None:
    document = show(several())
    counts = [document.attribute("timeline", f"data-{what}") for what in ("rows", "lanes", "edges")]
    assert counts == ["6", "2", "1"]  # the other stream is left out
    assert timeline(document) == [
        ["8", "main", "fill", "train.py:8"],
        ["", "main", "records event A", "train.py:9"],
        ["", "side", "waits for event A", "train.py:10"],
        ["11", "side", "copy", "train.py:11"],
        ["12", "main", "add, writes its argument out", "train.py:12"],
        ["14", "side", "multiply, reads its argument a", "train.py:14"],
    ]
    assert len(re.findall(r'<path class="missing"', document.body)) == 1
    assert len(re.findall(r'<g class="step work access"', document.body)) == 2
    (label,) = re.findall(r'<svg class="timeline"[^>]*aria-label="([^"]*)"', document.body)
    assert label == "Timeline of 2 streams with 6 steps. No order leads from add on main to multiply on side."


@pytest.mark.parametrize("width", [390, 1400])
def test_the_timeline_of_two_streams_fills_the_page(tmp_path: Path, width: int) -> None:
    script = """
        const picture = page.querySelector(".timeline").getBoundingClientRect();
        return [Math.round(picture.width), page.querySelector("#timeline .scroller").clientWidth];
    """
    picture, room = use_page(render(report(race()), "train.py"), tmp_path, script, width)
    assert picture == room > width / 2


def test_the_names_of_streams_stay_in_sight(tmp_path: Path) -> None:
    many = [step(number, "work", MAIN, "fill") for number in range(40)]
    script = """
        const scroller = page.querySelector("#timeline .scroller");
        await waitFor(() => scroller.scrollTop > 100);
        return page.querySelector(".timeline.names").getBoundingClientRect().top - scroller.getBoundingClientRect().top;
    """
    assert use_page(render(report(race(neighbours=many)), "train.py"), tmp_path, script) == pytest.approx(1, abs=1)


def test_waits_and_records_show_their_lines(show: Callable[..., Document]) -> None:
    document = show(several())
    drawn = re.findall(r'<g class="step (record|wait)">.*?<text class="where"[^>]*>(.*?)</text>', document.body)
    assert drawn == [("record", "train.py:9"), ("wait", "train.py:10")]


def own_events() -> dict[str, Any]:
    """Return a race with events that tcuda made: two on one stream, and two that order streams."""
    steps = [
        step(7, "work", MAIN, "fill"),
        step(8, "record", MAIN, event=1, own=True),
        step(9, "wait", MAIN, event=1, own=True),
        step(10, "record", MAIN, event=1, own=True),
        step(10, "wait", SIDE, event=1, own=True),
        *[step(11, "sync", SIDE)] * 3,
    ]
    return report(race(neighbours=steps))


def test_events_of_tcuda_that_order_no_streams_are_hidden(show: Callable[..., Document]) -> None:
    document = show(own_events())
    assert [row[1:] for row in timeline(document)][:4] == [
        ["main", "fill", "train.py:7"],
        ["main", "records event A, made by tcuda", "train.py:10"],
        ["side", "waits for event A, made by tcuda", "train.py:10"],
        ["the host", "waits for side", "train.py:11"],
    ]
    assert len(re.findall(r'<g class="step (?:record|wait) own"', document.body)) == 2
    assert document.attribute("timeline", "data-rows") == "6"


def test_all_steps_are_shown_on_demand(tmp_path: Path) -> None:
    script = """
        byId("timeline").querySelector("input").click();
        return byId("timeline").dataset.rows;
    """
    assert use_page(render(own_events(), "train.py"), tmp_path, script) == "10"


def test_a_browser_draws_what_the_host_waits_for(show: Callable[..., Document]) -> None:
    document = show(several(), "#races/3")
    assert [row[1:3] for row in timeline(document) if row[1] == "the host"] == [
        ["the host", "waits for side"],
        ["the host", "waits for device 0"],
    ]
    # from the record to the wait, from one stream to the host, and from both streams of the device to the host
    assert document.attribute("timeline", "data-edges") == "4"


def test_accesses_without_steps_around_them_are_drawn(show: Callable[..., Document]) -> None:
    document = show(several(), "#races/2")
    assert timeline(document) == [
        ["20", "the host", "host_read, reads its argument a", "train.py:20"],
        ["21", "main", "fill, writes its argument out", "train.py:21"],
    ]
    assert words_of(document, "div", "fix") == ["MissingThe stream side does not wait for the stream main."]


def graph_race(line: int = 17, **more: Any) -> dict[str, Any]:
    """Return a race between two branches of a graph, which the steps show as one operation."""
    launch = [{"name": "<module>", "filename": FILE, "line": line}]
    return race(
        previous=access("add", "read", MAIN, 10, number=3, launch_stack=launch),
        current=access("fill", "write", MAIN, 14, number=4, launch_stack=launch),
        neighbours=[
            step(1, "work", MAIN, "ones"),
            step(1, "sync", None),
            step(2, "work", MAIN, "graph"),
            step(5, "work", MAIN, "later"),
        ],
        **more,
    )


def test_the_branches_of_a_graph_have_lanes_of_their_own(show: Callable[..., Document]) -> None:
    document = show(report(graph_race()))
    assert [row[:3] for row in timeline(document)] == [
        ["1", "main", "ones"],
        ["", "the host", "waits for device 0"],
        ["2", "main", "graph"],
        ["3", "main", "add, reads its argument a"],
        ["4", "main, another branch", "fill, writes its argument out"],
        ["5", "main", "later"],
    ]


def test_an_access_in_a_graph_has_the_line_of_the_capture_and_of_the_launch(show: Callable[..., Document]) -> None:
    document = show(report(graph_race()))
    assert words_of(document, "p", "place") == [
        f"{FILE}:10",
        f"in the graph launched at {FILE}:17",
        f"{FILE}:14",
        f"in the graph launched at {FILE}:17",
    ]
    assert {"Stack of the capture", "Stack of the launch"} <= set(words_of(document, "summary"))


def test_the_default_streams_of_two_threads_have_lanes_of_their_own(show: Callable[..., Document]) -> None:
    found = race(previous=access("fill", "write", 2, 12), current=access("multiply", "read", 2, 14), neighbours=[])
    document = show(report(found))
    assert [row[1] for row in timeline(document)] == ["the stream 0x2", "the stream 0x2, another thread"]


def test_the_advice_is_shown_if_it_says_more_than_the_call(show: Callable[..., Document]) -> None:
    file = FILE.rpartition("/")[2]
    usual = f"`side.wait_stream(main)` before line 14 of {file} orders them."
    more = f"`side.wait_stream(main)` before line 14 of {file}, which uses the array last, orders them."
    found = race(advice=usual)
    document = show(report(race(words=sanitizer_words.words_of(found, says_more=False))))
    assert words_of(document, "div", "fix") == ["Missingside.wait_stream(main) before train.py:14"]
    document = show(report(race(advice=more)))
    assert words_of(document, "div", "fix")[0].endswith(
        "before line 14 of train.py, which uses the array last, orders them."
    )
    assert document.body.count("<code>side.wait_stream(main)</code>") == 2


def test_a_long_name_of_a_file_keeps_its_line(show: Callable[..., Document]) -> None:
    file = f"/home/user/{'long_' * 20}.py"
    document = show(report(race(neighbours=[step(12, "work", MAIN, "a_kernel_" * 20, file=file, line=1234)])))
    (where,) = re.findall(r'<text class="where"[^>]*>(long[^<]*)</text>', document.body)
    assert where.endswith("…:1234")
    assert len(where) < 60


def test_an_old_access_is_drawn_before_the_steps(show: Callable[..., Document]) -> None:
    late = [step(number, "work", SIDE, f"work {number}") for number in range(100, 163)]
    document = show(
        report(
            race(current=access("multiply", "read", SIDE, 163), neighbours=[*late, step(163, "work", SIDE, "multiply")])
        )
    )
    rows = timeline(document)
    assert [rows[0][0], rows[1][0], rows[-1][0]] == ["12", "100", "163"]
    assert len(rows) == 65


def test_the_order_of_a_later_record_of_an_event_is_drawn(show: Callable[..., Document]) -> None:
    steps = [
        step(1, "wait", SIDE, event=0x70),  # the record is older than the steps
        step(2, "record", MAIN, event=0x70),
        step(3, "record", OTHER, event=0x71),
        step(4, "wait", SIDE, event=0x70),
        step(5, "wait", SIDE, event=0x71),
    ]
    document = show(report(race(neighbours=steps)))
    assert document.attribute("timeline", "data-edges") == "1"
    assert [row[2] for row in timeline(document)][:4] == [
        "waits for event A",
        "records event A",
        "waits for event A",
        "waits for event B",
    ]


def test_a_browser_runs_no_script_of_a_report(show: Callable[..., Document]) -> None:
    document = show(nasty(), title=NASTY)
    assert "<title>taken" not in document.text
    assert document.attribute("list", "data-rows") == "1"
    assert document.text.count("<script") == 2


def test_a_browser_shows_the_synchronisations(show: Callable[..., Document]) -> None:
    document = show(several(), "#syncs/1")
    assert document.attribute("tab-syncs", "aria-selected") == "true"
    assert document.attribute("syncs", "data-rows") == "2"
    rows = re.findall(r"<td>(.*?)</td><td>(.*?)</td><td>(.*?)</td></tr>", document.body.split('id="syncs"')[1])
    assert rows == [(f"{FILE}:51", "float(x)", "700"), (f"{FILE}:50", "cudaStreamSynchronize", "3")]
    assert "The host waited 703 times in 2 lines." in document.words


@pytest.mark.long
@pytest.mark.parametrize("view", ["", "#races/7", "#syncs/1", "#races/0", "#nonsense"])
def test_a_browser_shows_a_report_without_races(view: str, show: Callable[..., Document]) -> None:
    document = show(report(), view)
    assert document.text_of("race-title") == "No race"
    assert document.attribute("tab-races", "aria-selected") == "true"
    assert "The detector looked at 20 operations." in document.words


def test_a_long_list_shows_its_first_races(show: Callable[..., Document]) -> None:
    document = show(report(*(race(count=number) for number in range(1, 1201))))
    assert document.attribute("list", "data-rows") == "200"
    assert document.text_of("all-races") == "Show all 1,000"
    assert document.text_of("list-note") == "1,000 races, the first of 1,200; the JSON has all"


# What a reader does with keys, done by a script at the end of the page.

ACT = """
<script>
const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {{ key, bubbles: true }}));
document.getElementById("total-races").textContent = (() => {{ {code} }})();
</script></body>"""


def after(code: str, content: dict[str, Any], folder: Path) -> str:
    """Return what JavaScript, which runs in a shown page, returns."""
    text = re.sub(r"<meta http-equiv[^>]*>", "", render(content, "train.py"))  # the policy allows no other script
    return show_page(text.replace("</body>", ACT.format(code=code)), folder).text_of("total-races")


def test_arrow_keys_go_from_race_to_race(tmp_path: Path) -> None:
    shown = "document.getElementById('race').dataset.place"
    code = f"""
        const found = [];
        document.querySelector("#list button").focus();
        for (const key of ["ArrowDown", "ArrowDown", "ArrowUp", "End", "ArrowDown", "Home", "ArrowUp"]) {{
          press(key);
          found.push({shown} + (document.activeElement.getAttribute("aria-current") === "true" ? "" : "?"));
        }}
        return found.join(" ");
    """
    assert after(code, several(), tmp_path) == "1 2 1 3 3 0 0"


def test_arrow_keys_go_from_tab_to_tab(tmp_path: Path) -> None:
    code = """
        document.getElementById("tab-races").focus();
        press("ArrowRight");
        return document.activeElement.id + " " + document.getElementById("races").hidden;
    """
    assert after(code, several(), tmp_path) == "tab-syncs true"


def test_the_search_leaves_matching_races(tmp_path: Path) -> None:
    code = """
        const find = document.getElementById("find");
        const count = (text) => {
          find.value = text;
          find.dispatchEvent(new Event("input"));
          return document.getElementById("list").dataset.rows;
        };
        return [count("host"), count("free"), count("kernel train"), count("no such word"), count("")].join(" ");
    """
    assert after(code, several(), tmp_path) == "1 1 1 0 4"


def test_all_streams_get_a_lane_on_demand(tmp_path: Path) -> None:
    code = """
        const timeline = () => document.getElementById("timeline");
        const before = timeline().dataset.lanes;
        timeline().querySelector("input").click();
        return [before, timeline().dataset.lanes, timeline().dataset.rows, document.activeElement.type].join(" ");
    """
    assert after(code, several(), tmp_path) == "2 3 7 checkbox"


def test_every_control_has_a_name_and_can_be_reached(tmp_path: Path) -> None:
    code = """
        const named = (each) => each.textContent.trim() || each.getAttribute("aria-label") || each.labels?.length;
        const shown = (each) => each.offsetParent !== null;
        const controls = [...document.querySelectorAll("button, input, summary, [tabindex='0']")].filter(shown);
        const left = controls.filter((each) => !named(each) || (each.tabIndex < 0 && each.role !== "tab"));
        return controls.length > 8 ? left.map((each) => each.outerHTML).join() : "too few";
    """
    assert after(code, several(), tmp_path) == ""


def test_a_browser_has_one_entry_for_races_that_one_call_mends(tmp_path: Path) -> None:
    races = [race(current=access("add", "read", SIDE, line), before={"file": FILE, "line": line}) for line in (14, 15)]
    script = """
        const rows = [...page.querySelectorAll("#list button")];
        const before = rows.map((row) => row.querySelector(".mends").textContent);
        page.querySelector(".fix .others button").click();
        return [before, page.getElementById("race").dataset.place, page.getElementById("list-note").textContent];
    """
    before, place, note = use_page(render(add_causes(report(*races)), "train.py"), tmp_path, script)
    assert before == [f"one call mends these 2: also {FILE}:15"]
    assert (place, note) == ("1", "1 cause of 2 races")
