"""The page of a snapshot: what it is made of, and that a browser shows it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tcuda import _memory_viz
from tcuda._memory_viz import devices, page, read_snapshot
from tcuda._memory_viz.page import BANDS
from tcuda._memory_viz.segments import ALLOCATED, AWAITING_FREE, FREE
from tcuda._memory_viz.stacks import NO_STACK, Frame, Stacks
from tcuda.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.fixture_types import OutputOf
    from tcuda._memory_viz import Device

MIB = 1 << 20
PACKAGE = Path(_memory_viz.__file__).parents[1]
BASE = 0x7F0000000000

# Snapshots, in torch's schema


def frame(name: str, filename: str = "/home/ada/train.py", line: int = 1) -> dict[str, Any]:
    return {"name": name, "filename": filename, "line": line}


LOAD = [frame("read", "/usr/lib/python3.12/site-packages/cupy/io.py", 7), frame("load", line=3), frame("main", line=9)]
STEP = [frame("step", line=5), frame("main", line=9)]


def event(action: str, addr: int, size: int, frames: Any = (), **more: Any) -> dict[str, Any]:
    return {
        "action": action,
        "addr": addr,
        "size": size,
        "stream": 0,
        "time_us": 1_700_000_000_000_000,
        "compile_context": "N/A",
        "user_metadata": "",
        "frames": list(frames),
        **more,
    }


def alloc(addr: int, size: int, frames: Any = STEP, **more: Any) -> dict[str, Any]:
    return event("alloc", addr, size, frames, **more)


def free(addr: int, size: int) -> list[dict[str, Any]]:
    return [event("free_requested", addr, size, STEP), event("free_completed", addr, size, STEP)]


def block(address: int, size: int, state: str = "active_allocated", frames: Any = STEP, **more: Any) -> dict[str, Any]:
    used = state != "inactive"
    requested = size if used else 0
    return {
        "address": address,
        "size": size,
        "requested_size": requested,
        "state": state,
        "frames": list(frames) if used else [],
        **more,
    }


def segment(address: int, *blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    allocated, awaiting = (
        sum(each["size"] for each in blocks if each["state"] == state)
        for state in ("active_allocated", "active_awaiting_free")
    )
    return {
        "device": 0,
        "address": address,
        "total_size": sum(each["size"] for each in blocks),
        "allocated_size": allocated,
        "active_size": allocated + awaiting,
        "requested_size": sum(each.get("requested_size", 0) for each in blocks),
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": list(blocks),
        **more,
    }


def snapshot(*segments: dict[str, Any], traces: Any = ()) -> dict[str, Any]:
    return {
        "segments": list(segments),
        "device_traces": [list(trace) for trace in traces],
        "allocator_settings": {"garbage_collection_threshold": 0.0},
        "external_annotations": [],
    }


def two_devices() -> dict[str, Any]:
    """Training on device 0 that ends without memory; on device 1 little happens."""
    start = 1_700_000_000_000_000
    trace = [
        event("segment_alloc", BASE, 20 * MIB, LOAD),
        alloc(BASE, 8 * MIB, LOAD),
        alloc(BASE + 8 * MIB, 6 * MIB),
        alloc(BASE + 14 * MIB, 2 * MIB, stream=0x55),
        *free(BASE + 8 * MIB, 6 * MIB),
        event("free_requested", BASE + 14 * MIB, 2 * MIB),
        alloc(BASE + 8 * MIB, 3 * MIB, user_metadata="second <b>step</b>"),
        {**event("oom", 0, 99 * MIB, STEP), "device_free": 5 * MIB},
    ]
    del trace[-1]["addr"]
    for number, each in enumerate(trace):
        each["time_us"] = start + 100 * number
    return snapshot(
        segment(
            BASE,
            block(BASE, 8 * MIB, frames=LOAD),
            block(BASE + 8 * MIB, 4 * MIB, requested_size=3 * MIB),
            block(BASE + 12 * MIB, 2 * MIB, "inactive"),
            block(BASE + 14 * MIB, 2 * MIB, "active_awaiting_free"),
            block(BASE + 16 * MIB, 4 * MIB, "inactive"),
        ),
        segment(2 * BASE, block(2 * BASE, 2 * MIB), segment_pool_id=(1, 0), stream=0x55),
        segment(3 * BASE, block(3 * BASE, 1024), block(3 * BASE + 1024, 1024, "inactive"), device=1),
        traces=[trace, [alloc(3 * BASE, 1024), alloc(3 * BASE + 1024, 1024), *free(3 * BASE + 1024, 1024)]],
    )


def only_device(*segments: dict[str, Any], trace: Any = ()) -> Device:
    (device,), _ = devices(snapshot(*segments, traces=[trace] if trace else []))
    return device


# Allocations over time


def test_allocations_live_from_their_event_to_the_end_of_their_free() -> None:
    device = only_device(trace=[alloc(1, 100), alloc(2, 300), *free(1, 100), alloc(3, 50), *free(2, 300)])
    assert device.history.live == [0, 100, 400, 400, 300, 350, 350, 50]
    assert [(a.address, a.start, a.released, a.end) for a in device.history.allocations] == [
        (1, 1, 3, 4),
        (2, 2, 6, 7),
        (3, 5, None, None),
    ]
    assert (device.history.peak, device.peak_bytes) == (2, 400)


def test_an_address_is_used_again() -> None:
    device = only_device(trace=[alloc(1, 100), *free(1, 100), alloc(1, 70), *free(1, 70)])
    assert device.history.live == [0, 100, 100, 0, 70, 70, 0]


def test_memory_awaiting_free_is_live() -> None:
    device = only_device(
        segment(1, block(1, 512, "active_awaiting_free", requested_size=100)),
        trace=[alloc(1, 100), event("free_requested", 1, 100)],
    )
    assert device.history.live == [0, 100, 100]
    (allocation,) = device.history.allocations
    assert (allocation.released, allocation.end) == (2, None)


def test_a_ring_that_lost_its_start_has_the_rest_before_it() -> None:
    device = only_device(
        segment(10, block(10, 512, requested_size=500, frames=LOAD), block(522, 512), block(1034, 512, "inactive")),
        segment(5000, block(5000, 1024), stream=7),
        trace=[
            event("free_completed", 1, 30),  # whose beginning, and that of its free, are lost
            *free(2, 40),
            alloc(5000, 1000),
            event("free_requested", 522, 400),
        ],
    )
    past = device.history
    assert past.live == [970, 940, 940, 900, 1900, 1900]
    found = {allocation.address: allocation for allocation in past.allocations}
    assert {address: (a.start, a.released, a.end) for address, a in found.items()} == {
        1: (0, None, 1),
        2: (0, 2, 3),
        10: (0, None, None),
        522: (0, 5, None),
        5000: (4, None, None),
    }
    assert found[10].size == 500  # as requested, like the sizes of events
    assert found[1].stack == NO_STACK  # the stack of an event of a free is not who allocated
    assert found[522].stack != NO_STACK  # the block at the end tells
    assert [allocation.address for allocation in past.allocations] == [10, 522, 2, 1, 5000]
    assert (past.peak, device.peak_bytes) == (4, 1900)


def test_without_history_there_is_what_was_allocated_at_the_end() -> None:
    device = only_device(
        segment(1, block(1, 1000), block(1001, 24, "inactive")), segment(5000, block(5000, 2000), stream=3)
    )
    assert (device.events, device.history.live, device.history.peak) == (0, [3000], 0)
    assert [(a.address, a.size, a.stream) for a in device.history.allocations] == [(1, 1000, 0), (5000, 2000, 3)]
    assert (device.history.reserved, device.history.times) == ([], [])


def test_frees_end_where_they_were_requested_if_no_more_was_recorded() -> None:
    device = only_device(trace=[alloc(1, 100), event("free_requested", 1, 100)])
    assert device.history.live == [0, 100, 0]


def test_a_free_that_was_not_recorded_ends_at_the_next_allocation() -> None:
    device = only_device(trace=[alloc(1, 100), alloc(1, 60), *free(1, 60)])
    assert device.history.live == [0, 100, 60, 60, 0]
    device = only_device(trace=[alloc(1, 100), alloc(1, 160)])
    assert (device.peak_bytes, [site.usage.at_peak for site in device.sites]) == (160, [160])


def test_a_second_free_changes_nothing() -> None:
    device = only_device(trace=[alloc(1, 100), *free(1, 100), *free(1, 100)])
    assert device.history.live == [0, 100, 100, 0, 0, 0]
    assert len(device.history.allocations) == 1


def test_reserved_memory_is_reckoned_back_from_the_end() -> None:
    device = only_device(
        segment(1, block(1, 700, "inactive")),
        trace=[
            event("segment_free", 9000, 200),
            alloc(1, 5),
            event("segment_map", 1, 600),
            event("segment_unmap", 1, 50),
            event("segment_alloc", 1, 100),
        ],
    )
    assert device.history.reserved == [(0, 250), (1, 50), (3, 650), (4, 600), (5, 700)]
    assert device.reserved_bytes == 700


def test_marks_are_out_of_memory_and_snapshots() -> None:
    oom = {"action": "oom", "size": 99, "device_free": 11, "stream": 0, "frames": []}  # as torch has it: no address
    device = only_device(trace=[alloc(1, 5), oom, event("snapshot", 0, 0)])
    marks = device.history.marks
    assert [(mark.event, mark.action, mark.size, mark.device_free) for mark in marks] == [
        (2, "oom", 99, 11),
        (3, "snapshot", 0, None),
    ]


def test_times_never_go_back_and_may_be_absent() -> None:
    trace = [alloc(1, 5, time_us=10), alloc(2, 5, time_us=9), alloc(3, 5, time_us=12)]
    assert only_device(trace=trace).history.times == [10, 10, 12]
    del trace[1]["time_us"]
    assert only_device(trace=trace).history.times == []


def test_notes_have_what_the_program_said() -> None:
    trace = [alloc(1, 5), alloc(2, 5, user_metadata="epoch 3", compile_context="1/0"), alloc(3, 5, user_metadata="x")]
    assert [allocation.note for allocation in only_device(trace=trace).history.allocations] == ["", "epoch 3, 1/0", "x"]


# Stacks and sites


def test_the_package_is_told_from_others_with_a_longer_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcuda._memory_viz.stacks._HERE", "/home/ada/tcuda/")
    stacks = Stacks()
    number = stacks.number([frame("f", "/home/ada/tcuda/memory.py"), frame("g", "/home/ada/tcuda_of_mine/a.py")])
    found = stacks.site(number)
    assert found is not None
    assert stacks.frames[found].filename == "/home/ada/tcuda_of_mine/a.py"


@pytest.mark.parametrize(
    ("files", "site"),
    [
        (["/usr/lib/python3.12/site-packages/cupy/a.py", "/home/ada/b.py", "/home/ada/c.py"], 1),
        (["C:\\Python\\Lib\\site-packages\\cupy\\a.py", "C:\\ada\\b.py"], 1),
        (["/opt/lib/python3.13t/threading.py", "<frozen runpy>", "<ipython-input-3-1f>"], 2),
        ([str(PACKAGE / "memory.py"), "b.py"], 1),
        (["??", "allocator.cpp", "/usr/lib/python3.12/threading.py"], 2),
        (["??", "Activation.cpp"], 0),
    ],
)
def test_the_site_is_the_innermost_frame_of_the_users(files: list[str], site: int) -> None:
    stacks = Stacks()
    number = stacks.number([frame(f"f{index}", name) for index, name in enumerate(files)])
    found = stacks.site(number)
    assert found is not None
    assert stacks.frames[found].filename == files[site]


def test_the_site_of_a_native_stack_is_not_the_allocator() -> None:
    stacks = Stacks()
    names = ["torch::unwind::unwind()", "c10::cuda::CUDACachingAllocator::Native::malloc(unsigned long)", "at::add"]
    found = stacks.site(stacks.number([frame(name, "??") for name in names]))
    assert found is not None
    assert stacks.frames[found].name == "at::add"


def test_every_stack_and_frame_is_kept_once() -> None:
    stacks = Stacks()
    again = [dict(each) for each in LOAD]
    numbers = [stacks.number(frames) for frames in ([], LOAD, again, STEP, LOAD, LOAD[:2])]
    assert numbers == [NO_STACK, 1, 1, 2, 1, 3]
    assert len(stacks.frames) == 4
    assert stacks.site(NO_STACK) is None


def test_sites_have_sums_of_their_allocations() -> None:
    other_way = [frame("read", "/usr/lib/python3.12/site-packages/cupy/io.py", 8), *LOAD[1:]]
    trace = [
        alloc(1, 100, LOAD),
        alloc(2, 30, other_way),
        alloc(3, 500, STEP),
        *free(1, 100),
        *free(3, 500),
        alloc(4, 7, LOAD),
        *free(9, 1),
    ]
    (device,), stacks = devices(snapshot(traces=[trace]))
    rows = []
    for site in device.sites:
        usage = site.usage
        name = "" if site.frame is None else stacks.frames[site.frame].name
        rows.append((name, usage.at_peak, usage.at_end, usage.count, usage.total))
    assert rows == [("step", 500, 0, 1, 500), ("load", 130, 37, 3, 137), ("", 1, 0, 1, 1)]
    assert [usage.total for usage in device.sites[1].stacks.values()] == [107, 30]


# Segments


def test_segments_are_grouped_by_pool_and_stream() -> None:
    device = only_device(
        segment(1, block(1, 10)),
        segment(100, block(100, 40), stream=5),
        segment(200, block(200, 20), segment_pool_id=[1, 0]),
        segment(300, block(300, 25)),
    )
    assert [(group.pool, group.stream, [s.address for s in group.segments]) for group in device.groups] == [
        ((0, 0), 5, [100]),
        ((0, 0), 0, [300, 1]),
        ((1, 0), 0, [200]),
    ]
    assert (device.segments, device.reserved_bytes) == (4, 95)


def test_a_group_tells_what_its_blocks_are() -> None:
    (group,) = only_device(
        segment(
            1000,
            block(1000, 512, requested_size=500),
            block(1512, 100, "inactive"),
            block(1612, 50, "active_awaiting_free"),
            block(1662, 60, "active_pending_free"),
            block(1722, 300, "inactive"),
        )
    ).groups
    assert [group.bytes_in(state) for state in (ALLOCATED, AWAITING_FREE, FREE)] == [512, 110, 400]
    assert (group.reserved, group.largest_free, group.rounding) == (1022, 300, 12)
    assert [each.offset for each in group.segments[0].blocks] == [0, 512, 612, 662, 722]


def test_blocks_of_older_versions_have_no_addresses() -> None:
    blocks = [block(0, 512), block(0, 88, "inactive"), block(0, 40)]
    for each in blocks:
        del each["address"], each["requested_size"]
    device = only_device(segment(1000, *blocks))
    assert [each.offset for each in device.groups[0].segments[0].blocks] == [0, 512, 600]
    assert [(a.address, a.size) for a in device.history.allocations] == [(1000, 512), (1600, 40)]


def test_devices_are_those_with_segments_or_events() -> None:
    found, _ = devices(snapshot(segment(1, block(1, 2), device=3), traces=[[], [alloc(1, 5)], []]))
    assert [(device.index, device.events, device.segments) for device in found] == [(1, 1, 0), (3, 0, 1)]
    found, _ = devices(snapshot())
    assert [(device.index, device.history.live) for device in found] == [(0, [0])]


# Reading files


def write(path: Path, content: object, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(content, protocol))
    return path


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_snapshot_is_read_as_it_was_written(protocol: int, tmp_path: Path) -> None:
    content = two_devices()
    assert read_snapshot(write(tmp_path / "s.pickle", content, protocol)) == content
    assert read_snapshot(str(tmp_path / "s.pickle")) == content


def test_a_list_of_segments_is_read_too(tmp_path: Path) -> None:
    segments = two_devices()["segments"]
    assert read_snapshot(write(tmp_path / "s.pickle", segments)) == {"segments": segments, "device_traces": []}


class Hostile:
    def __init__(self, does: Callable[..., Any], *arguments: Any) -> None:
        self.done = does, arguments

    def __reduce__(self) -> Any:
        return self.done


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize("where", ["all", "segments", "frames"])
def test_a_pickle_that_runs_code_is_refused(protocol: int, where: str, tmp_path: Path) -> None:
    hostile = Hostile(Path.touch, tmp_path / "touched")
    content: Any = {
        "all": hostile,
        "segments": snapshot(hostile),  # type: ignore[arg-type]
        "frames": snapshot(traces=[[alloc(1, 2, [hostile])]]),
    }[where]
    path = write(tmp_path / "s.pickle", content, protocol)
    with pytest.raises(
        ValueError, match=r"'.*s\.pickle' holds no allocator snapshot: it asks for .*_dump_snapshot\(\)"
    ):
        read_snapshot(path)
    assert not (tmp_path / "touched").exists()
    pickle.loads(path.read_bytes())  # it would have
    assert (tmp_path / "touched").exists()


def test_not_even_builtins_are_given(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="it asks for builtins.eval"):
        read_snapshot(write(tmp_path / "s.pickle", Hostile(eval, "1")))


@pytest.mark.parametrize("content", [b"", b"no pickle", b"\x80\x04]", b"(dp0\nI0\n", b"\x8e" + 8 * b"\x7f", b"I1\n."])
def test_a_file_that_holds_no_snapshot_is_a_value_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "s.pickle").write_bytes(content)
    with pytest.raises(
        ValueError, match=r"holds no allocator snapshot: .+\. Write one with tcuda.memory._dump_snapshot"
    ):
        read_snapshot(tmp_path / "s.pickle")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (5, "it is a int, not a dict"),
        ({}, "segments is absent or no list"),
        ({"segments": {}}, "segments is absent or no list"),
        ([3], r"segments\[0\] is a int, not a dict"),
        ([{"address": 1}], r"segments\[0\]\['total_size'\] is None, not a whole number"),
        ([segment(1) | {"address": "1"}], r"segments\[0\]\['address'\] is '1', not a whole number"),
        ([segment(1) | {"device": None}], r"segments\[0\]\['device'\] is None, not a whole number"),
        ([segment(1) | {"segment_pool_id": "ab"}], r"segments\[0\]\['segment_pool_id'\] is 'ab', not a pair"),
        ([segment(1, block(1, 2, "") | {"state": 2})], r"segments\[0\]\['blocks'\]\[0\]\['state'\] is 2, not a text"),
        ([segment(1, block(1, 2, frames=[{"name": "f"}]))], r"segments\[0\]\['blocks'\]\[0\] has a frame"),
        (snapshot() | {"device_traces": 0}, "device_traces is no list"),
        (
            snapshot(traces=[[alloc(1, 2) | {"action": None}]]),
            r"device_traces\[0\]\[0\]\['action'\] is None, not a text",
        ),
        (snapshot(traces=[[], [alloc(1, 2), {"action": "alloc", "size": 1}]]), r"device_traces\[1\]\[1\]\['addr'\]"),
        (snapshot(traces=[[alloc(1, 2, time_us=1.5)]]), r"\['time_us'\] is 1.5, not a whole number"),
    ],
)
def test_what_is_wrong_with_a_snapshot_is_told(content: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        read_snapshot(write(tmp_path / "s.pickle", content))


def test_what_tcuda_recorded_is_understood(output_of: OutputOf, tmp_path: Path) -> None:
    output_of(
        "import tcuda\n"
        "before = tcuda.xp.zeros(2 << 20, dtype='uint8')\n"
        "tcuda.memory._record_memory_history()\n"
        "def f():\n"
        "    return tcuda.xp.zeros(1 << 20, dtype='uint8')\n"
        "kept, dropped = f(), f()\n"
        "del dropped\n"
        "tcuda.memory._dump_snapshot('snapshot.pickle')\n"
    )
    found, stacks = devices(read_snapshot(tmp_path / "snapshot.pickle"))
    past = found[0].history
    assert (past.live[0], found[0].peak_bytes, past.live[-1]) == (2 * MIB, 4 * MIB, 3 * MIB)
    assert [(a.size, a.start == 0, a.end is None) for a in past.allocations] == [
        (2 * MIB, True, True),
        (MIB, False, True),
        (MIB, False, False),
    ]
    sites = {None if site.frame is None else stacks.frames[site.frame]: site.usage.count for site in found[0].sites}
    assert sites == {None: 1, Frame("f", "<string>", 5): 2}
    assert found[0].reserved_bytes >= 3 * MIB


# The page


def embedded(text: str) -> Any:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found)


def test_a_page_needs_nothing_but_itself() -> None:
    text = page(two_devices())
    assert "//" not in re.sub(r"(?m)^\s*//.*$|;? // .*$|/\*\*.*?\*/", "", text)  # comments of the script apart
    assert re.findall(r"""<[^>]*\s(?:src|href|action|data)\s*=\s*["']?([^"'\s>]+)""", text) == ["data:,"]
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|\bimport\b\s*[({'\"]", text)


def test_a_page_forbids_the_browser_to_load_anything() -> None:
    text = page(two_devices())
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">', text)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert (rules.pop("default-src"), rules.pop("img-src")) == ("'none'", "data:")
    for rule, element in {"script-src": "script", "style-src": "style"}.items():
        (content,) = re.findall(rf"<{element}>(.*?)</{element}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules.pop(rule) == f"'sha256-{digest}'"
    assert not rules


NASTY = "</script><script>document.title='taken'</script><!--\u2028\ud800$data\"'&"


def nasty() -> dict[str, Any]:
    frames = [frame(NASTY, f"/home/{NASTY}.py", 1)]
    return snapshot(
        segment(1, block(1, 512, frames=frames), segment_type=NASTY),
        traces=[[alloc(1, 512, frames, user_metadata=NASTY), event(NASTY, 0, 0)]],
    )


def test_no_text_of_a_snapshot_becomes_markup() -> None:
    text = page(nasty(), title=NASTY)
    assert text.count("<script") == text.count("</script") == 2
    shown = NASTY.replace("\ud800", "?")  # half a character, which no file can hold
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
    assert drawn == sorted(drawn)  # as they began
    left_out = set(range(1, count + 1)) - set(drawn)
    assert {number % 3 for number in left_out} == {0}  # the smallest
    assert {number % 2 for number in left_out} == {1}  # and of those the ones that were freed


def test_a_page_of_many_events_stays_small() -> None:
    trace: list[dict[str, Any]] = []
    for number in range(33_400):
        frames = [frame("deep", line=depth) for depth in range(20)]
        trace += [alloc(number, 1000 + number, frames), *free(number, 1000 + number)]
    text = page(snapshot(traces=[trace]))
    assert len(trace) > 100_000
    assert len(text) < 2_000_000


# The command


def test_the_command_writes_a_page_next_to_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "snapshot.pickle", two_devices())
    assert main(["memory-viz", str(path)]) == 0
    output = tmp_path / "snapshot.html"
    assert capsys.readouterr().out == (f"{output}: 13 events, 3 segments, 18.0 MiB allocated at the peak on device 0\n")
    assert output.read_text(encoding="utf-8") == page(two_devices(), "snapshot.pickle")


def test_the_command_writes_where_it_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "snapshot.pickle", nasty())
    assert main(["memory-viz", str(path), "-o", str(tmp_path / "page")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'page'}: 2 events, 1 segment, 512 B allocated at the peak\n"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["page", "snapshot.pickle"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent"], "No such file or directory: 'absent'"),
        (["."], "Is a directory: '.'"),
        (["good.html", "-o", "no/such/folder"], "No such file or directory: 'no/such/folder'"),
        (["good.html"], "The page would take the place of the snapshot 'good.html'; give another name with -o."),
        (["bad"], "'bad' holds no allocator snapshot: it is a int, not a dict. Write one with"),
    ],
)
def test_a_failed_command_is_one_line_on_stderr(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    before = write(Path("good.html"), two_devices()).read_bytes()
    write(Path("bad"), 5)
    assert main(["memory-viz", *arguments]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    (line,) = output.err.splitlines()
    assert line.startswith(f"tcuda memory-viz: {message}")
    assert Path("good.html").read_bytes() == before


def test_the_command_needs_no_cupy_and_no_runtime(tmp_path: Path) -> None:
    path = write(tmp_path / "snapshot.pickle", two_devices())
    code = (
        "import sys; sys.modules['cupy'] = None; from tcuda.cli import main; status = main(); "
        "import tcuda; sys.exit(status or tcuda.is_initialized())"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, "memory-viz", str(path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "snapshot.html").exists()


# In a browser

COMMANDS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = os.environ.get("TCUDA_CHROMIUM") or next(filter(None, map(shutil.which, COMMANDS)), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="needs a Chromium, which is not on this machine")


class Document:
    """What a browser made of a page."""

    def __init__(self, text: str) -> None:
        self.text = text
        body = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)
        self.words = html.unescape(re.sub(r"<[^>]+>", "|", body))
        self.body = body

    def attribute(self, id: str, name: str) -> str | None:
        (tag,) = re.findall(rf'<[^>]*\bid="{id}"[^>]*>', self.body)
        found = re.search(rf'\s{name}="([^"]*)"', tag)
        return found and html.unescape(found[1])

    def text_of(self, id: str) -> str:
        (text,) = re.findall(rf'\bid="{id}"[^>]*>([^<]*)<', self.body)
        return html.unescape(text)

    def rows(self) -> list[list[str]]:
        rows = re.findall(r"<tr[^>]*>(.*?)</tr>", self.body.partition("<tbody>")[2], re.DOTALL)
        return [[text for text in re.split(r"<[^>]+>", row) if text] for row in map(html.unescape, rows)]


@pytest.fixture
def show(tmp_path: Path) -> Callable[..., Document]:
    """Show a snapshot in a browser; ``view`` is the end of the address, as the page itself writes it."""

    def show(content: dict[str, Any], view: str = "", title: str = "snapshot.pickle") -> Document:
        assert BROWSER is not None
        text = page(content, title)
        (tmp_path / "page.html").write_text(text, encoding="utf-8")
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            f"--user-data-dir={tmp_path / 'browser'}",
            "--window-size=1280,800",
            "--virtual-time-budget=5000",
            "--dump-dom",
        ]
        address = (tmp_path / "page.html").as_uri() + view
        done = subprocess.run([BROWSER, *flags, address], capture_output=True, check=True, timeout=120)
        document = Document(done.stdout.decode(errors="replace"))
        assert 'data-ready="true"' in document.text
        assert document.text_of("error") == ""
        return document

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
def test_a_browser_shows_the_sites_of_the_device_that_is_asked_for(show: Callable[..., Document]) -> None:
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
def test_a_browser_runs_nothing_of_a_snapshot(show: Callable[..., Document]) -> None:
    document = show(nasty(), title=NASTY)
    assert "<title>taken" not in document.text
    assert document.attribute("timeline", "data-drawn") == "1"
    assert document.text.count("<script") == 2


@needs_browser
@pytest.mark.parametrize("view", ["#timeline/0", "#segments/0", "#sites/0"])
def test_a_browser_shows_a_snapshot_without_anything(view: str, show: Callable[..., Document]) -> None:
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
