"""``_save_memory_usage`` and ``_save_segment_usage``: pages of a snapshot, under torch's names."""

from __future__ import annotations

import copy
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.snapshots import two_devices
from tcuda.memory import _record_memory_history, _save_memory_usage, _save_segment_usage, _snapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.fixture_types import OutputOf

BOTH = pytest.mark.parametrize("save", [_save_memory_usage, _save_segment_usage])


def embedded(page: Path) -> Any:
    """Return the data that a page shows."""
    pattern = r'<script type="application/json" id="data">(.*?)</script>'
    return json.loads(re.findall(pattern, page.read_text(encoding="utf-8"), re.DOTALL)[0])


@BOTH
def test_a_page_shows_the_segments_of_a_new_snapshot(save: Callable[..., None], xp: Any, tmp_path: Path) -> None:
    kept = xp.zeros(1000)
    page = tmp_path / "page.html"
    assert save(page) is None  # type: ignore[func-returns-value]
    shown = embedded(page)["devices"][0]
    segments = [segment for segment in tcuda.memory_snapshot() if segment["device"] == 0]
    assert len(segments) > 0
    assert sum(len(group["segments"]) for group in shown["groups"]) == len(segments)
    del kept


def test_only_the_page_of_memory_usage_shows_the_history(xp: Any, tmp_path: Path) -> None:
    pages = tmp_path / "memory.html", tmp_path / "segments.html"
    given = two_devices()
    before = copy.deepcopy(given)
    for page, save in zip(pages, (_save_memory_usage, _save_segment_usage), strict=True):
        save(str(page), given)
    assert given == before
    memory, segments = map(embedded, pages)
    assert [device["events"] for device in memory["devices"]] == list(map(len, given["device_traces"]))
    assert {device["events"] for device in segments["devices"]} == {0}
    assert {device["index"] for device in segments["devices"]} == {segment["device"] for segment in given["segments"]}
    assert [memory["title"], segments["title"]] == ["Memory usage", "Segment usage"]


@BOTH
def test_a_list_of_segments_is_a_snapshot_too(save: Callable[..., None], tmp_path: Path) -> None:
    segments = two_devices()["segments"]
    save(tmp_path / "page.html", segments)
    assert len(embedded(tmp_path / "page.html")["devices"]) == len({segment["device"] for segment in segments})


@BOTH
def test_a_page_takes_the_place_of_a_picture(
    save: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match=r"a page of HTML instead of an SVG picture: output\.html$") as caught:
        save(snapshot=two_devices())
    assert caught[0].filename == __file__
    assert [path.name for path in tmp_path.iterdir()] == ["output.html"]


@BOTH
def test_a_file_that_cannot_be_written_is_an_error_before_the_snapshot(
    save: Callable[..., None], xp: Any, tmp_path: Path
) -> None:
    _record_memory_history()
    try:
        with pytest.raises(FileNotFoundError):
            save(tmp_path / "nowhere" / "page.html")
        with pytest.raises(IsADirectoryError):
            save(tmp_path)
        assert _snapshot()["device_traces"][0] == []
    finally:
        _record_memory_history(None, clear_history=True)
    assert list(tmp_path.iterdir()) == []


@BOTH
@pytest.mark.parametrize("filename", [1, None, 2.5, ["a"]])
def test_an_invalid_file_name_is_refused(save: Callable[..., None], filename: Any) -> None:
    with pytest.raises(TypeError, match="PathLike"):
        save(filename)


@BOTH
@pytest.mark.parametrize("bad", [{}, {"segments": [1]}, 5, "snapshot", [{"address": 1}]])
def test_an_object_that_is_no_snapshot_is_refused(save: Callable[..., None], bad: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^The argument is no allocator snapshot: .*_snapshot\(\)\.$"):
        save(tmp_path / "page.html", bad)
    assert list(tmp_path.iterdir()) == []


def test_a_given_snapshot_needs_no_device(output_of: OutputOf, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    code = f"import tcuda; tcuda.memory._save_segment_usage({str(page)!r}, []); print(tcuda.is_initialized())"
    assert output_of(code, TCUDA_RUNTIME="cuda", CUDA_VISIBLE_DEVICES="") == "False"
    assert page.exists()
