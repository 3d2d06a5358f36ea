"""Page-locked memory of the host in snapshots and in the history."""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.busy_streams import keep_busy
from support.sizes import MIB
from tcuda._viz.memory import devices, read_snapshot
from tcuda.memory import _dump_snapshot, _record_memory_history, _snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tcuda._runtime.protocol import Runtime

pytestmark = pytest.mark.usefixtures("no_history_left")

PAGES = 3 * MIB


@pytest.fixture(autouse=True)
def _no_cached_memory(runtime: Runtime) -> Iterator[None]:
    """Begin with no unused page-locked memory, so that the first allocation of pages makes a segment."""
    tcuda.synchronize()
    tcuda.memory.empty_host_cache()
    yield
    tcuda.synchronize()
    tcuda.memory.empty_host_cache()


def allocate(size: int = PAGES) -> Any:
    return tcuda.memory.empty_pinned(size, "uint8")


def drop(arrays: list[Any]) -> None:
    arrays.clear()


def give_back() -> None:
    tcuda.memory.empty_host_cache()


def trace() -> list[dict[str, Any]]:
    """Return the events of page-locked memory, without snapshots: this function takes a snapshot itself."""
    return [event for event in _snapshot()["host_trace"] if event["action"] != "snapshot"]


def first_of(owner: dict[str, Any]) -> str | None:
    """Return the innermost function of this file in the stack of an event, a segment or a block."""
    return next((frame["name"] for frame in owner["frames"] if frame["filename"] == __file__), None)


def segments() -> list[dict[str, Any]]:
    return _snapshot()["host_segments"]  # type: ignore[no-any-return]


def segment_at(begin: int) -> dict[str, Any]:
    """Return the segment in which a block begins. CuPy may have page-locked memory of its own in other segments."""
    [segment] = [each for each in segments() if begin in [block["address"] for block in each["blocks"]]]
    return segment


def block_at(begin: int) -> dict[str, Any]:
    [block] = [block for block in segment_at(begin)["blocks"] if block["address"] == begin]
    return block


def begin_of(array: Any) -> int:
    return array.ctypes.data  # type: ignore[no-any-return]


class TestHistory:
    def test_the_life_of_a_block_and_of_its_segment_is_recorded_in_order(self) -> None:
        _record_memory_history()
        arrays = [allocate(PAGES - 5)]
        begin = begin_of(arrays[0])
        drop(arrays)
        assert [(event["action"], event["addr"], event["size"]) for event in trace()] == [
            ("segment_alloc", begin, PAGES),
            ("alloc", begin, PAGES - 5),
            ("free_requested", begin, PAGES - 5),
        ]
        give_back()
        assert [(event["action"], event["addr"], event["size"]) for event in trace()[3:]] == [
            ("free_completed", begin, PAGES - 5),
            ("segment_free", begin, PAGES),
        ]
        times = [event["time_us"] for event in trace()]
        assert times == sorted(times)
        assert {event["stream"] for event in trace()} == {0}

    def test_devices_and_page_locked_memory_have_their_own_events(self, xp: Any) -> None:
        _record_memory_history()
        allocate()
        snapshot = _snapshot()
        assert not any(event["action"] != "snapshot" for events in snapshot["device_traces"] for event in events)
        before = len(trace())
        kept = xp.empty(1000, "B")
        assert len(trace()) == before
        del kept

    def test_nothing_is_recorded_while_the_history_is_off(self) -> None:
        kept = [allocate()]
        assert trace() == []
        assert block_at(begin_of(kept[0]))["frames"] == []
        _record_memory_history()
        drop(kept)
        assert [event["action"] for event in trace()] == ["free_requested"]
        _record_memory_history(enabled=None)
        allocate()
        assert trace() == []

    @pytest.mark.parametrize(
        ("context", "live", "allocating", "freeing", "giving_back"),
        [
            (None, None, None, None, None),
            ("state", "allocate", None, None, None),
            ("alloc", "allocate", "allocate", "allocate", "allocate"),
            ("all", "allocate", "allocate", "drop", "give_back"),
        ],
    )
    def test_the_context_selects_the_stacks(
        self,
        context: str | None,
        live: str | None,
        allocating: str | None,
        freeing: str | None,
        giving_back: str | None,
    ) -> None:
        _record_memory_history(context=context)
        kept = [allocate()]
        assert first_of(block_at(begin_of(kept[0]))) == live
        assert first_of(segment_at(begin_of(kept[0]))) == live
        drop(kept)
        give_back()
        assert [(event["action"], first_of(event)) for event in trace()] == [
            ("segment_alloc", allocating),
            ("alloc", allocating),
            ("free_requested", freeing),
            ("free_completed", giving_back),
            ("segment_free", giving_back),
        ]

    @pytest.mark.parametrize(("context", "innermost"), [(None, None), ("state", None), ("alloc", "allocate")])
    def test_a_failed_allocation_is_an_oom_event(self, context: str | None, innermost: str | None) -> None:
        _record_memory_history(context=context)
        with pytest.raises(tcuda.AcceleratorError, match="page-locked"):
            allocate(1 << 56)
        [event] = trace()
        assert (event["action"], event["size"], first_of(event)) == ("oom", 1 << 56, innermost)
        assert 0 < event["device_free"] < 1 << 56
        assert event["stream"] == 0
        assert "addr" not in event
        kept = allocate()
        assert [event["action"] for event in trace()] == ["oom", "segment_alloc", "alloc"]
        del kept

    def test_a_page_shows_the_failed_allocation(self, tmp_path: Path) -> None:
        _record_memory_history()
        kept = allocate()
        with pytest.raises(tcuda.AcceleratorError):
            allocate(1 << 56)
        path = tmp_path / "snapshot.pickle"
        _dump_snapshot(path)
        found, _ = devices(read_snapshot(path))
        assert found[-1].name == "page-locked host memory"
        assert [mark.size for mark in found[-1].history.marks if mark.action == "oom"] == [1 << 56]
        del kept

    def test_memory_of_cupy_has_the_stack_of_the_program(self, xp: Any) -> None:
        _record_memory_history()

        def stage() -> Any:
            return xp.cuda.alloc_pinned_memory(PAGES)

        kept = stage()
        assert first_of(block_at(kept.ptr)) == "stage"
        del kept

    def test_the_options_of_the_recording_hold_for_page_locked_memory(self) -> None:
        _record_memory_history(max_entries=3, skip_actions=["free_requested"])
        tcuda.memory._set_memory_metadata("epoch 1")
        for _ in range(5):
            allocate(PAGES)
        newest = _snapshot()["host_trace"]
        assert len(newest) == 3
        assert {event["user_metadata"] for event in newest} == {"epoch 1"}
        assert "free_requested" not in {event["action"] for event in newest}
        _record_memory_history(clear_history=True)
        assert trace() == []

    def test_each_snapshot_is_an_event_with_the_active_bytes(self) -> None:
        _record_memory_history()
        kept = allocate()
        _snapshot()
        last = _snapshot()["host_trace"][-1]
        assert (last["action"], last["addr"]) == ("snapshot", 0)
        assert last["size"] == tcuda.host_memory_stats()["active_bytes.current"]
        del kept


class TestSegments:
    def test_segments_and_blocks_add_up_to_the_statistics(self) -> None:
        kept = [allocate(size) for size in (1, 1000, 100_000, PAGES, 2 * PAGES)]
        del kept[1]
        found, stats = segments(), tcuda.host_memory_stats()
        assert sum(segment["total_size"] for segment in found) == stats["allocated_bytes.current"]
        assert sum(segment["allocated_size"] for segment in found) == stats["active_bytes.current"]
        assert sum(segment["active_size"] for segment in found) == stats["active_bytes.current"] + 1024
        assert {segment["device"] for segment in found} == {-1}
        for segment in found:
            at = segment["address"]
            for block in segment["blocks"]:
                assert block["address"] == at
                at += block["size"]
            assert at == segment["address"] + segment["total_size"]
        assert [segment["address"] for segment in found] == sorted(segment["address"] for segment in found)
        block = block_at(begin_of(kept[2]))
        assert (block["size"], block["requested_size"], block["state"]) == (PAGES, PAGES, "active_allocated")
        kinds = {segment["segment_type"] for segment in found if segment["address"] == block["address"]}
        assert kinds == {"large"}

    def test_a_block_that_a_copy_uses_awaits_its_free(self, xp: Any) -> None:
        x, stream, host = xp.zeros(PAGES, "uint8"), tcuda.Stream(), allocate()
        tcuda.synchronize()
        keep_busy(stream)
        x.set(host, stream=xp.cuda.Stream.from_external(stream))
        begin = begin_of(host)
        del host
        xp.cuda.alloc_pinned_memory(0)  # lets CuPy drop the arrays of complete copies
        again = allocate()  # asks about the block
        if not stream.query():
            assert block_at(begin)["state"] in ("active_pending_free", "active_allocated")
            assert begin_of(again) != begin
        stream.synchronize()
        tcuda.synchronize()

    def test_keys_are_those_of_devices(self, xp: Any) -> None:
        _record_memory_history()
        kept = [xp.empty(1000), allocate()]
        snapshot = _snapshot()
        of_device = snapshot["segments"][0]
        assert {type(name) for name in snapshot} == {str}
        for segment in snapshot["host_segments"]:
            assert {name: type(value) for name, value in segment.items()} == {
                name: type(value) for name, value in of_device.items()
            }
            for block in segment["blocks"]:
                assert block.keys() == of_device["blocks"][0].keys()
        [[event, *_], *_] = [events for events in snapshot["device_traces"] if events]
        for of_host in snapshot["host_trace"]:
            assert {name: type(value) for name, value in of_host.items()} == {
                name: type(value) for name, value in event.items()
            }
        kept.clear()

    def test_a_dump_has_the_page_locked_memory(self, tmp_path: Path) -> None:
        _record_memory_history()
        kept = allocate()
        path = tmp_path / "snapshot.pickle"
        _dump_snapshot(path)
        dumped = pickle.loads(path.read_bytes())
        assert [event["action"] for event in dumped["host_trace"]][:2] == ["segment_alloc", "alloc"]
        assert begin_of(kept) in [segment["address"] for segment in dumped["host_segments"]]
        del kept

    def test_references_to_frames_do_not_leak(self) -> None:
        _record_memory_history()
        kept = allocate()
        _snapshot()
        code = allocate.__code__
        before = sys.getrefcount(code)
        for _ in range(10):
            _snapshot()
        assert sys.getrefcount(code) == before
        del kept


def test_a_page_shows_page_locked_memory_as_one_more_device(tmp_path: Path) -> None:
    def on_the_page() -> tuple[int, int]:
        path = tmp_path / "snapshot.pickle"
        _dump_snapshot(path)
        found, _ = devices(read_snapshot(path))
        host = [device for device in found if device.name == "page-locked host memory"]
        assert host == found[-1:] or not host
        return (host[0].bytes_at_end, host[0].reserved_bytes) if host else (0, 0)

    _record_memory_history()
    before = on_the_page()  # CuPy may have page-locked memory of its own
    kept = allocate()
    assert on_the_page() == (before[0] + PAGES, before[1] + PAGES)
    del kept
