"""Snapshots of memory: their contents, and the files that store them."""

from __future__ import annotations

import importlib.util
import io
import pickle
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.blocks import block_of
from support.busy_streams import LONG
from support.sizes import MIB
from support.traces import events
from tcuda.memory import _dump_snapshot, _record_memory_history, _snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from support.fixture_types import OutputOf

pytestmark = pytest.mark.usefixtures("allocator_as_found", "no_history_left")


def allocate(size: int = 1000) -> Any:
    return tcuda.xp.empty(size, "B")


ALLOCATING_LINE = allocate.__code__.co_firstlineno + 1


def own_frames(frames: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Return the functions and lines of this file in a stack."""
    return [(frame["name"], frame["line"]) for frame in frames if frame["filename"] == __file__]


def assert_matches(schema: Any, value: Any, path: str = "snapshot") -> None:
    """Check keys and types against a schema: a dictionary, a list with the schema of its items, or a type name."""
    if isinstance(schema, dict):
        assert type(value) is dict, path
        assert set(value) == set(schema), path
        for key, kind in schema.items():
            assert_matches(kind, value[key], f"{path}[{key!r}]")
    elif isinstance(schema, list):
        assert isinstance(value, (list, tuple)), path
        for index, one in enumerate(value):
            assert_matches(schema[0] if schema else None, one, f"{path}[{index}]")
    else:
        assert type(value).__name__ == schema, path


class TestSnapshots:
    def test_a_snapshot_has_torchs_keys_and_types(self, xp: Any, torch_memory: dict[str, Any]) -> None:
        _record_memory_history()
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            inside = allocate()
        kept = allocate(3 * MIB)
        allocate()
        snapshot = _snapshot()
        assert snapshot["segments"]
        assert snapshot["device_traces"][0]
        for own in ("host_segments", "host_trace"):
            del snapshot[own]
        assert_matches(torch_memory["snapshot_schema"], snapshot)
        assert type(snapshot["segments"][0]["segment_pool_id"]) is tuple
        del kept, inside

    def test_an_oom_event_has_device_free_in_place_of_the_address(self, xp: Any, torch_memory: dict[str, Any]) -> None:
        _record_memory_history()
        with pytest.raises(tcuda.OutOfMemoryError):
            allocate(1 << 50)
        [schema] = torch_memory["snapshot_schema"]["device_traces"][0]
        expected = {"device_free" if key == "addr" else key: kind for key, kind in schema.items()}
        [event] = events()
        assert_matches(expected, event)

    def test_states_and_sizes_of_live_waiting_and_free_blocks(self, xp: Any) -> None:
        side = tcuda.Stream()
        with tcuda.use_mem_pool(tcuda.MemPool()):
            live, waiting, free = (allocate() for _ in range(3))
            pool = block_pool(live)
        with tcuda.stream(side):
            tcuda._sleep(LONG)
        tcuda.memory.record_stream(waiting, side)
        del waiting, free
        [segment] = tcuda.memory_snapshot(pool)
        states = [block["state"] for block in segment["blocks"]]
        assert [states[0], states[2]] == ["active_allocated", "inactive"]
        assert states[1].startswith("active_")
        assert states[1] != "active_allocated"
        assert [block["requested_size"] for block in segment["blocks"]] == [1000, 1000, 0]
        assert (segment["allocated_size"], segment["active_size"], segment["requested_size"]) == (1024, 2048, 2000)
        side.synchronize()
        tcuda.empty_cache()
        del live

    def test_a_block_that_waits_for_a_stream_is_active_pending_free(self, xp: Any) -> None:
        side = tcuda.Stream()
        waiting = allocate()
        address = waiting.data.ptr
        with tcuda.stream(side):
            tcuda._sleep(LONG)
        tcuda.memory.record_stream(waiting, side)
        del waiting
        states = {
            block["state"]
            for segment in tcuda.memory_snapshot()
            for block in segment["blocks"]
            if block["address"] == address
        }
        side.synchronize()
        assert states == {"active_pending_free"}

    def test_without_a_history_there_are_no_stacks(self, xp: Any) -> None:
        kept = allocate()
        snapshot = _snapshot()
        assert snapshot["device_traces"] == [[]] * tcuda.device_count()
        assert not any(block["frames"] for segment in snapshot["segments"] for block in segment["blocks"])
        assert block_of(kept)["state"] == "active_allocated"
        del kept

    def test_a_snapshot_may_be_of_one_pool(self, xp: Any) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            inside = allocate()
        outside = allocate()
        assert [segment["segment_pool_id"] for segment in tcuda.memory_snapshot(pool.id)] == [pool.id]
        assert tcuda.memory_snapshot(mempool_id=pool.id, include_traces=False) == tcuda.memory_snapshot(pool.id)
        assert {segment["segment_pool_id"] for segment in tcuda.memory_snapshot((0, 0))} == {(0, 0)}
        del inside, outside

    @pytest.mark.parametrize("pool", [5, "x", (1,), (1, 2, 3), (-1, 0), (0, 2**64), (0, 1.0), (None, 0)])
    def test_an_invalid_pool_id_is_refused(self, xp: Any, pool: Any) -> None:
        with pytest.raises(TypeError, match="mempool_id must be what graph_pool_handle\\(\\), MemPool.id"):
            tcuda.memory_snapshot(pool)

    def test_an_unknown_pool_has_no_segments(self, xp: Any) -> None:
        assert tcuda.memory_snapshot((0, 2**64 - 1)) == []

    def test_segments_are_in_the_order_of_devices_and_addresses(self, xp: Any) -> None:
        last = tcuda.device_count() - 1
        kept = []
        for device in (last, 0):
            with tcuda.device(device):
                kept += [allocate(), allocate(30 * MIB)]
                with tcuda.stream(tcuda.Stream()):
                    kept.append(allocate())
        places = [(segment["device"], segment["address"]) for segment in tcuda.memory_snapshot()]
        assert places == sorted(places)
        assert {device for device, _ in places} == {0, last}
        del kept

    def test_the_blocks_of_a_segment_have_no_gaps(self, xp: Any) -> None:
        kept = [allocate(size) for size in (1000, 3 * MIB, 100_000, 30 * MIB)]
        del kept[1]
        for segment in tcuda.memory_snapshot():
            address = segment["address"]
            for block in segment["blocks"]:
                assert block["address"] == address
                address += block["size"]
            assert address == segment["address"] + segment["total_size"]
            assert segment["segment_type"] == ("large" if segment["total_size"] > 2 * MIB else "small")
        del kept


class TestDumping:
    class Plain(pickle.Unpickler):
        """An unpickler that imports nothing."""

        def find_class(self, module: str, name: str) -> Any:
            raise AssertionError(f"{module}.{name}")

    def test_the_file_has_the_snapshot_and_can_be_loaded_without_imports(self, xp: Any, tmp_path: Path) -> None:
        _record_memory_history(skip_actions=["snapshot"])
        kept = allocate()
        path = tmp_path / "snapshot.pickle"
        _dump_snapshot(path)
        loaded = self.Plain(io.BytesIO(path.read_bytes())).load()
        assert loaded == _snapshot()
        assert own_frames(loaded["device_traces"][0][-1]["frames"])[0] == ("allocate", ALLOCATING_LINE)
        del kept

    def test_the_default_file_name_is_torchs(self, xp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        _dump_snapshot()
        _dump_snapshot("other.pickle", True)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["dump_snapshot.pickle", "other.pickle"]

    def test_a_file_that_cannot_be_written_is_an_error(self, xp: Any, tmp_path: Path) -> None:
        _record_memory_history()
        with pytest.raises(FileNotFoundError):
            _dump_snapshot(tmp_path / "nowhere" / "snapshot.pickle")
        with pytest.raises(IsADirectoryError):
            _dump_snapshot(tmp_path)
        assert list(tmp_path.iterdir()) == []
        assert _snapshot()["device_traces"][0] == []

    @pytest.mark.parametrize("filename", [1, None, 2.5, ["a"]])
    def test_an_invalid_file_name_is_refused(self, xp: Any, filename: Any) -> None:
        with pytest.raises(TypeError, match="PathLike"):  # open(1) would write to the standard output
            _dump_snapshot(filename)

    def test_without_a_device_the_file_is_not_touched(self, output_of: OutputOf, tmp_path: Path) -> None:
        path = tmp_path / "snapshot.pickle"
        path.write_text("before")
        program = f"""
import tcuda
try:
    tcuda.memory._dump_snapshot({str(path)!r})
except RuntimeError as error:
    print(type(error).__name__)
"""
        assert output_of(program, TCUDA_RUNTIME="cuda", CUDA_VISIBLE_DEVICES="") == "RuntimeError"
        assert path.read_text() == "before"

    @pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch, which is not installed")
    def test_the_tools_of_torch_read_the_file(self, output_of: OutputOf) -> None:
        program = """
import warnings; warnings.simplefilter("ignore")  # the import of torch warns
import pickle, tcuda
from torch.cuda import _memory_viz
from tcuda import xp
m = tcuda.memory

m._record_memory_history()
with tcuda.device(tcuda.device_count() - 1):
    elsewhere = xp.empty(1000)
kept = [xp.empty(1 << 20), xp.empty(1000), xp.empty(30 << 20)]
m._dump_snapshot("before.pickle")
with tcuda.use_mem_pool(tcuda.MemPool()):
    kept.append(xp.empty(1000))
del kept[0]
try:
    xp.empty(1 << 47)
except tcuda.OutOfMemoryError:
    pass
m._dump_snapshot("after.pickle")

def load(name):
    with open(name, "rb") as file:
        return pickle.load(file)

before, after = load("before.pickle"), load("after.pickle")
for tool in (_memory_viz.segments, _memory_viz.memory):
    lines = tool(after, format_flamegraph=str).splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == sum(s["total_size"] for s in after["segments"])
    assert any("active_allocated" in line and "<string>:" in line for line in lines), lines
assert "only_after" in _memory_viz.compare(before["segments"], after["segments"], format_flamegraph=str)
trace = _memory_viz.trace(after)
assert "raise OutOfMemoryError" in trace and "1.0PiB requested" in trace, trace
assert "del " in trace and "= " in trace
assert f"segments: {len(after['segments'])}" in _memory_viz.segsum(after)
for page in (_memory_viz.trace_plot(after), _memory_viz.trace_plot(after, plot_segments=True),
             _memory_viz.segment_plot(after)):
    assert "<script" in page
print("read")
"""
        assert output_of(program).splitlines()[-1] == "read"


def block_pool(array: Any) -> tuple[int, int]:
    """Return the id of the pool of the block of ``array``."""
    [pool] = [
        segment["segment_pool_id"]
        for segment in tcuda.memory_snapshot()
        if segment["address"] <= int(array.data.ptr) < segment["address"] + segment["total_size"]
    ]
    return tuple(pool)
