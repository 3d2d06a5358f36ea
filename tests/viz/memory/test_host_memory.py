"""Page-locked memory of the host, which a page shows like the memory of one more device."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

from support.browser import needs_browser, show_page
from support.sizes import MIB
from support.snapshots import BASE, LOAD, alloc, block, event, free, segment, snapshot, two_devices, write
from tcuda._viz.memory import HOST, busiest, devices, page, read_snapshot
from tcuda.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PLACE = 5 * BASE


def with_host(content: dict[str, Any], size: int = 40 * MIB) -> dict[str, Any]:
    """Return ``content`` with a page-locked block of ``size`` bytes, which lives, and one of 1 MiB, which is freed."""
    trace = [
        event("segment_alloc", PLACE, size, LOAD),
        alloc(PLACE, size, LOAD),
        event("segment_alloc", 2 * PLACE, 2 * MIB),
        alloc(2 * PLACE, MIB),
        *free(2 * PLACE, MIB),
    ]
    segments = [
        segment(PLACE, block(PLACE, size, frames=LOAD), device=-1),
        segment(2 * PLACE, block(2 * PLACE, 2 * MIB, "inactive"), device=-1),
    ]
    return {**content, "host_segments": segments, "host_trace": trace}


def test_the_command_says_how_many_segments_are_page_locked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "snapshot.pickle", with_host(two_devices()))
    assert main(["memory-viz", str(path)]) == 0
    assert " events, 5 segments (2 of them page-locked), " in capsys.readouterr().out


def test_page_locked_memory_comes_after_the_devices() -> None:
    found, stacks = devices(with_host(two_devices()))
    assert [device.index for device in found] == [0, 1, HOST]
    assert [device.name for device in found] == ["device 0", "device 1", "page-locked host memory"]
    host = found[-1]
    assert (host.peak_bytes, host.bytes_at_end, host.events) == (41 * MIB, 40 * MIB, 6)
    assert (host.segments, host.reserved_bytes) == (2, 42 * MIB)
    sites = [(site.frame is not None and stacks.frames[site.frame][0], site.usage.at_peak) for site in host.sites]
    assert sites == [("load", 40 * MIB), ("step", MIB)]


def test_the_devices_are_as_without_page_locked_memory() -> None:
    without, _ = devices(two_devices())
    found, _ = devices(with_host(two_devices()))
    assert [(device.peak_bytes, device.segments, device.events) for device in found[:-1]] == [
        (device.peak_bytes, device.segments, device.events) for device in without
    ]


def test_a_page_begins_with_a_device_if_a_device_has_memory() -> None:
    found, _ = devices(with_host(two_devices()))
    assert busiest(found).index == 0
    found, _ = devices(with_host(snapshot()))
    assert [device.index for device in found] == [0, HOST]
    assert busiest(found).index == HOST


def test_a_history_without_page_locked_memory_adds_nothing() -> None:
    content = {**two_devices(), "host_segments": [], "host_trace": [event("snapshot", 0, 0)]}
    assert [device.index for device in devices(content)[0]] == [0, 1]


def test_a_file_with_page_locked_memory_is_read(tmp_path: Path) -> None:
    content = with_host(two_devices())
    assert read_snapshot(write(tmp_path / "s.pickle", content)) == content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"host_segments": {}}, "host_segments is missing or not a list"),
        ({"host_segments": [segment(1) | {"address": "1"}]}, r"host_segments\[0\]\['address'\] is '1', not a whole"),
        ({"host_trace": 3}, "host_trace is missing or not a list"),
        ({"host_trace": [alloc(1, 2) | {"size": -1}]}, r"host_trace\[0\]\['size'\] is -1, not a whole number"),
    ],
)
def test_the_error_names_the_fault(content: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        read_snapshot(write(tmp_path / "s.pickle", snapshot() | content))


def test_an_event_that_is_also_in_the_trace_of_a_device_is_refused(tmp_path: Path) -> None:
    content = snapshot(traces=[[alloc(1, 2)]])
    content["host_trace"] = content["device_traces"][0]
    path = tmp_path / "s.pickle"
    path.write_bytes(pickle.dumps(content))
    with pytest.raises(ValueError, match=r"host_trace\[0\] is also in another place"):
        read_snapshot(path)


def test_the_command_names_page_locked_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = write(tmp_path / "first.pickle", with_host(snapshot()))
    second = write(tmp_path / "second.pickle", with_host(snapshot(), 50 * MIB))
    assert main(["memory-viz", str(first), "--compare", str(second)]) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[0].endswith(
        "2 segments (2 of them page-locked), 41.0 MiB allocated at the peak in page-locked host memory"
    )
    start = lines.index("Page-locked host memory, from first.pickle to second.pickle:")
    assert lines[start + 1] == "+10.0 MiB at the peak, from 41.0 MiB to 51.0 MiB"


@pytest.fixture
def show(tmp_path: Path) -> Callable[[str], Any]:
    def show(view: str) -> Any:
        return show_page(page(with_host(two_devices()), "snapshot.pickle"), tmp_path, view)

    return show


@needs_browser
def test_a_browser_shows_page_locked_memory(show: Callable[[str], Any]) -> None:
    assert show("").text_of("total-peak") == "18.0 MiB"  # of the busiest device
    document = show("#sites/host")
    assert document.text_of("total-peak") == "41.0 MiB"
    assert document.text_of("subtitle").startswith("Page-locked host memory")
    assert [row[0] for row in document.rows()] == ["load", "step"]
