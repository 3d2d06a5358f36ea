"""The memory history: its events, and the stacks of the events."""

from __future__ import annotations

import functools
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.blocks import block_of
from support.busy_streams import LONG
from support.sizes import MIB
from support.threads import in_thread, in_threads
from support.traces import events, trace_of
from tcuda import _core
from tcuda._process.ledger import ledger, release_stacks, want_stacks
from tcuda.memory import _record_memory_history, _snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.fixture_types import CompiledCpp, HoldAtMost, OutputOf

pytestmark = pytest.mark.usefixtures("allocator_as_found", "no_history_left")


def allocate(size: int = 1000) -> Any:
    return tcuda.xp.empty(size, "B")


ALLOCATING_LINE = allocate.__code__.co_firstlineno + 1


def drop(arrays: list[Any]) -> int:
    """Free arrays, and return the line that frees them."""
    arrays.clear()
    return here() - 1


def give_back() -> None:
    tcuda.empty_cache()


def here() -> int:
    """Return the line of the caller."""
    return sys._getframe(1).f_lineno


def actions(device: int = 0) -> list[str]:
    return [event["action"] for event in events(device)]


def own_frames(frames: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Return the functions and lines of this file in a stack."""
    return [(frame["name"], frame["line"]) for frame in frames if frame["filename"] == __file__]


def first_of(event: dict[str, Any]) -> str | None:
    """Return the innermost function of this file in the stack of an event."""
    return next((name for name, _ in own_frames(event["frames"])), None)


class TestRecording:
    def test_an_allocation_and_its_free_are_recorded_in_order(self, xp: Any) -> None:
        _record_memory_history()
        array = allocate()
        address = array.data.ptr
        del array
        assert [(event["action"], event["addr"]) for event in events()] == [
            ("alloc", address),
            ("free_requested", address),
            ("free_completed", address),
        ]

    def test_nothing_is_recorded_while_the_history_is_off(self, xp: Any) -> None:
        allocate()
        assert actions() == []
        _record_memory_history()
        allocate()
        assert len(actions()) == 3
        _record_memory_history(enabled=None)
        assert actions() == []
        allocate()
        assert actions() == []

    def test_the_context_may_change_while_recording(self, xp: Any) -> None:
        kept = []
        for context in ("all", None, "all"):
            _record_memory_history(context=context, stacks="python")
            kept.append(allocate())
        assert [first_of(event) for event in events() if event["action"] == "alloc"] == ["allocate", None, "allocate"]
        kept.clear()

    @pytest.mark.parametrize(("enabled", "count"), [("all", 3), (True, 3), ("state", 1), (None, 0), (False, 0)])
    def test_each_value_of_enabled(self, xp: Any, enabled: Any, count: int) -> None:
        _record_memory_history(enabled)
        allocate()
        assert len(actions()) == count
        kept = allocate()
        assert bool(own_frames(block_of(kept)["frames"])) == bool(enabled)
        del kept

    @pytest.mark.parametrize(
        ("context", "live", "freeing"),
        [(None, False, None), ("state", True, None), ("alloc", True, "allocate"), ("all", True, "drop")],
    )
    def test_the_context_selects_the_events_with_a_stack(
        self, xp: Any, context: Any, live: bool, freeing: str | None
    ) -> None:
        _record_memory_history(context=context)
        drop([allocate()])
        kept = allocate()
        innermost = [first_of(event) for event in events()]
        allocating = None if freeing is None else "allocate"
        assert innermost == [allocating, freeing, freeing, allocating]
        assert bool(own_frames(block_of(kept)["frames"])) == live
        del kept

    @pytest.mark.parametrize(
        ("context", "allocating", "freeing"),
        [
            (None, None, None),
            ("state", None, None),
            ("alloc", "allocate", "allocate"),
            ("all", "allocate", "give_back"),
        ],
    )
    @pytest.mark.parametrize("expandable", [True, False])
    def test_segment_events_have_the_stack_of_their_call(
        self, xp: Any, alloc_settings: Any, expandable: bool, context: Any, allocating: str | None, freeing: str | None
    ) -> None:
        with alloc_settings(f"expandable_segments:{expandable}"), tcuda.stream(tcuda.Stream()):
            tcuda.empty_cache()
            _record_memory_history(context=context)
            allocate(30 * MIB)
            give_back()
        trace = [event for event in trace_of() if event["action"].startswith("segment")]
        taken = {first_of(event) for event in trace if event["action"] in ("segment_alloc", "segment_map")}
        given = {first_of(event) for event in trace if event["action"] in ("segment_free", "segment_unmap")}
        assert (taken, given) == ({allocating}, {freeing})

    @pytest.mark.parametrize(("context", "innermost"), [("state", None), ("alloc", "allocate"), ("all", "allocate")])
    def test_an_oom_event_has_the_stack_of_the_allocation(self, xp: Any, context: Any, innermost: str | None) -> None:
        _record_memory_history(context=context)
        with pytest.raises(tcuda.OutOfMemoryError):
            allocate(1 << 50)
        assert [(event["action"], first_of(event)) for event in events()] == [("oom", innermost)]

    @pytest.mark.parametrize(
        ("context", "completing", "requested", "completed"),
        [
            ("alloc", "allocate", "allocate", "allocate_again"),
            ("alloc", "give_back", "allocate", "allocate"),  # empty_cache() has no stack: that of the block is used
            ("all", "allocate", "drop", "allocate_again"),
            ("all", "give_back", "drop", "give_back"),
        ],
    )
    def test_a_free_that_is_completed_later_has_the_stack_of_the_completing_call(
        self, xp: Any, context: Any, completing: str, requested: str, completed: str
    ) -> None:
        def allocate_again() -> Any:
            return xp.empty(1000, "B")

        side = tcuda.Stream()
        _record_memory_history(context=context)
        arrays = [allocate()]
        with tcuda.stream(side):
            tcuda._sleep(LONG)
        tcuda.memory.record_stream(arrays[0], side)
        drop(arrays)
        side.synchronize()
        kept = allocate_again() if completing == "allocate" else give_back()
        frees = [event for event in events() if event["action"].startswith("free")]
        del kept
        assert [(event["action"], first_of(event)) for event in frees] == [
            ("free_requested", requested),
            ("free_completed", completed),
        ]

    def test_a_snapshot_does_not_show_its_own_event_as_in_torch(self, xp: Any) -> None:
        kept = allocate()
        _record_memory_history()
        assert _snapshot()["device_traces"][0] == []
        tcuda.memory_snapshot()
        first, second = _snapshot()["device_traces"][0]
        active = tcuda.memory_stats()["active_bytes.all.current"]
        for event in (first, second):
            assert (event["action"], event["addr"], event["size"], event["stream"]) == ("snapshot", 0, active, 0)
            assert event["frames"] == []
        del kept

    def test_a_thread_gets_stacks_again_after_host_memory_was_short(
        self, fresh_output_of: OutputOf, compiled_cpp: CompiledCpp
    ) -> None:
        program = """
import ctypes, os, threading
import tcuda
from tcuda import xp
news_left_here = ctypes.CDLL(os.environ["LD_PRELOAD"]).news_left_here
news_left_here.restype = ctypes.POINTER(ctypes.c_long)
tcuda.memory._record_memory_history()
failed, framed = [], []
def allocate(news):
    left = news_left_here()
    left[0] = news
    try:
        first = xp.empty(1000)
    except MemoryError:
        first = None
    failed.append(left[0] == -1)
    left[0] = -1
    second = xp.empty(1000)
    [blocks] = [segment["blocks"] for segment in tcuda.memory_snapshot()]
    framed.extend(bool(block["frames"]) for block in blocks if block["address"] == second.data.ptr)
for news in range(12):
    thread = threading.Thread(target=allocate, args=(news,))
    thread.start()
    thread.join()
print(sum(failed) >= 4, len(framed), all(framed))
"""
        assert fresh_output_of(program, LD_PRELOAD=compiled_cpp("failing_new")) == "True 12 True"

    def test_a_segment_is_mapped_by_the_first_allocation_and_unmapped_with_its_pool(self, xp: Any) -> None:
        pool = tcuda.MemPool()
        _record_memory_history()
        with tcuda.use_mem_pool(pool):
            array = allocate()
        [segment, _] = trace = _snapshot()["device_traces"][0]
        assert [event["action"] for event in trace] == ["segment_map", "alloc"]
        assert (segment["addr"], segment["size"]) == (array.data.ptr, 2 * MIB)
        assert own_frames(segment["frames"])[0] == ("allocate", ALLOCATING_LINE)
        assert own_frames(pool.snapshot()[0]["frames"])[0] == ("allocate", ALLOCATING_LINE)
        del array, pool
        assert _snapshot()["device_traces"][0][-1]["action"] == "segment_unmap"

    def test_segments_that_do_not_grow_are_allocated_and_freed(self, xp: Any, alloc_settings: Any) -> None:
        pool = tcuda.MemPool()
        _record_memory_history()
        with alloc_settings("expandable_segments:False"), tcuda.use_mem_pool(pool):
            allocate()
        del pool
        trace = _snapshot()["device_traces"][0]
        assert [event["action"] for event in (trace[0], trace[-1])] == ["segment_alloc", "segment_free"]
        assert (trace[0]["addr"], trace[0]["size"]) == (trace[-1]["addr"], trace[-1]["size"])
        assert trace[0]["size"] == 2 * MIB

    def test_only_the_last_max_entries_events_are_kept(self, xp: Any) -> None:
        _record_memory_history(max_entries=4)
        for size in (100, 200, 300):
            allocate(size)
        kept = [(event["action"], event["size"]) for event in _snapshot()["device_traces"][0]]
        assert len(kept) == 4
        assert kept[-2:] == [("free_requested", 300), ("free_completed", 300)]
        assert kept[0] == ("free_completed", 200)

    def test_max_entries_can_change_while_recording(self, xp: Any) -> None:
        _record_memory_history(max_entries=5, skip_actions=["snapshot"])
        for _ in range(3):
            allocate()
        before = _snapshot()["device_traces"][0]
        _record_memory_history(max_entries=7, skip_actions=["snapshot"])
        assert _snapshot()["device_traces"][0] == before
        allocate()
        longer = _snapshot()["device_traces"][0]
        assert len(longer) == 7
        assert longer[:4] == before[1:]
        _record_memory_history(max_entries=2, skip_actions=["snapshot"])
        assert _snapshot()["device_traces"][0] == longer[-2:]
        _record_memory_history(max_entries=0)
        allocate()
        assert _snapshot()["device_traces"][0] == []

    @pytest.mark.parametrize(
        ("skipped", "left"),
        [
            (["free_requested"], ["alloc", "free_completed", "oom"]),
            (["alloc", "oom"], ["free_requested", "free_completed"]),
            (["free_requested", "free_completed", "alloc", "oom", "segment_map", "segment_unmap"], []),
            ([], ["alloc", "free_requested", "free_completed", "oom"]),
        ],
    )
    def test_skip_actions_leaves_out_kinds_of_events(self, xp: Any, skipped: list[str], left: list[str]) -> None:
        _record_memory_history(skip_actions=skipped)
        allocate()
        with pytest.raises(tcuda.OutOfMemoryError):
            allocate(1 << 50)
        assert actions() == left
        _record_memory_history()
        allocate()
        assert len(actions()) == len(left) + 3

    def test_clear_history_begins_a_new_history(self, xp: Any) -> None:
        _record_memory_history()
        allocate()
        _record_memory_history()
        assert len(actions()) == 3
        _record_memory_history(clear_history=True)
        assert actions() == []

    @pytest.mark.parametrize(
        ("arguments", "kind", "text"),
        [
            ({"enabled": "yes"}, RuntimeError, "Expected enabled to be one of None, 'state', 'all'; got 'yes'."),
            ({"enabled": ""}, RuntimeError, "Expected enabled to be one of None, 'state', 'all'; got ''."),
            ({"enabled": 5}, TypeError, "Expected enabled to be one of None, 'state', 'all'; got 5."),
            ({"enabled": ["all"]}, TypeError, "Expected enabled to be one of None, 'state', 'all'; got ['all']."),
            ({"context": "x"}, RuntimeError, "Expected context to be one of None, 'state', 'alloc', 'all'; got 'x'."),
            ({"context": {}}, TypeError, "Expected context to be one of None, 'state', 'alloc', 'all'; got {}."),
            ({"stacks": "c++"}, RuntimeError, "Expected stacks to be one of 'python', 'all'; got 'c++'."),
            ({"stacks": None}, TypeError, "Expected stacks to be one of 'python', 'all'; got None."),
            ({"clear_history": "no"}, TypeError, "Expected clear_history to be True or False; got 'no'."),
            *(
                (
                    {"max_entries": number},
                    TypeError,
                    f"Expected max_entries to be an integer from 0 to 2**64 - 1; got {number}.",
                )
                for number in (-1, 2**64, 10**400, float("nan"), float("inf"), 5.0, [5], None)
            ),
            (
                {"max_entries": 1 << 20_000},
                TypeError,
                "Expected max_entries to be an integer from 0 to 2**64 - 1; got one of 20001 bits.",
            ),
            (
                {"skip_actions": ["alloc", "free"]},
                RuntimeError,
                "Expected skip_actions to be one of 'alloc', 'free_requested', 'free_completed', 'segment_alloc', "
                "'segment_free', 'segment_map', 'segment_unmap', 'snapshot', 'oom'; got 'free'.",
            ),
            (
                {"skip_actions": [5]},
                TypeError,
                "Expected skip_actions to be one of 'alloc', 'free_requested', 'free_completed', 'segment_alloc', "
                "'segment_free', 'segment_map', 'segment_unmap', 'snapshot', 'oom'; got 5.",
            ),
            (
                {"skip_actions": "alloc"},
                TypeError,
                "Expected skip_actions to be a list of actions, or None; got 'alloc'.",
            ),
            ({"skip_actions": 5}, TypeError, "Expected skip_actions to be a list of actions, or None; got 5."),
        ],
    )
    def test_bad_arguments_are_refused_and_change_nothing(
        self, xp: Any, arguments: dict[str, Any], kind: type[Exception], text: str
    ) -> None:
        _record_memory_history()
        allocate()
        with pytest.raises(kind, match="^Expected") as raised:
            _record_memory_history(**({"clear_history": True, "max_entries": 1} | arguments))
        assert str(raised.value) == text
        allocate()
        assert len(actions()) == 6

    @pytest.mark.parametrize(
        ("device", "kind"), [("cpu", ValueError), (99, RuntimeError), ("nonsense", RuntimeError), (-2, RuntimeError)]
    )
    def test_a_device_that_does_not_exist_is_refused(self, xp: Any, device: Any, kind: type[Exception]) -> None:
        _record_memory_history()
        allocate()
        for call in (_snapshot, functools.partial(_record_memory_history, clear_history=True)):
            with pytest.raises(kind):
                call(device=device)
        assert len(actions()) == 3

    @pytest.mark.parametrize("entries", [2**63, 2**64 - 1, True, np.int64(1000)])
    def test_max_entries_may_be_every_integer_of_64_bits(self, xp: Any, entries: Any) -> None:
        _record_memory_history(max_entries=entries)
        allocate()
        assert actions()[-1] == "free_completed"

    @pytest.mark.parametrize("stacks", ["python", "all"])
    def test_arguments_of_torch_without_an_effect_are_accepted(self, xp: Any, stacks: str) -> None:
        _record_memory_history(
            "all", "all", stacks, 1000, "cuda:0", False, compile_context=True, global_record_annotations=True
        )
        allocate()
        assert own_frames(events()[0]["frames"])[0] == ("allocate", ALLOCATING_LINE)


class TestStacks:
    def test_a_stack_has_functions_files_and_lines_innermost_first(self, xp: Any) -> None:
        def outer() -> tuple[Any, int]:
            array = [allocate() for _ in range(1)]
            return array, here() - 1

        _record_memory_history()
        array, middle = outer()
        line = here() - 1
        [event] = events()
        frames = own_frames(event["frames"])
        name = "test_a_stack_has_functions_files_and_lines_innermost_first"
        # Since Python 3.12 a comprehension is no longer a function of its own.
        assert [frame for frame in frames if frame[0] != "<listcomp>"] == [
            ("allocate", ALLOCATING_LINE),
            ("outer", middle),
            (name, line),
        ]
        assert all(set(frame) == {"name", "filename", "line"} for frame in event["frames"])
        assert all(frame["line"] > 0 for frame in event["frames"])
        del array

    def test_two_lines_are_two_stacks_and_one_line_is_one(self, xp: Any) -> None:
        _record_memory_history(skip_actions=["free_requested", "free_completed"])
        for _ in range(3):
            allocate()
            allocate()
        stacks = [event["frames"] for event in events()]
        assert stacks[0] is stacks[2] is stacks[4]
        assert stacks[0] != stacks[1] == stacks[3]
        assert own_frames(stacks[1])[1][1] == own_frames(stacks[0])[1][1] + 1

    def test_a_free_has_the_stack_of_the_call_that_frees(self, xp: Any) -> None:
        arrays = [allocate()]
        _record_memory_history()
        line = drop(arrays)
        assert own_frames(events()[0]["frames"])[0] == ("drop", line)

    def test_an_event_has_the_stack_of_its_own_thread(self, xp: Any) -> None:
        def work() -> None:
            allocate()

        _record_memory_history()
        in_thread(work)
        assert own_frames(events()[0]["frames"]) == [
            ("allocate", ALLOCATING_LINE),
            ("work", work.__code__.co_firstlineno + 1),
        ]

    def test_a_deep_recursion_is_recorded_in_full(self, xp: Any) -> None:
        def descend(depth: int) -> Any:
            return descend(depth - 1) if depth else allocate()

        _record_memory_history()
        descend(200)
        frames = own_frames(events()[0]["frames"])
        assert [name for name, _ in frames].count("descend") == 201

    def test_a_stack_names_code_that_no_longer_exists(self, xp: Any) -> None:
        namespace: dict[str, Any] = {"allocate": allocate}
        exec(compile("def passing():\n    return allocate()\n", "nowhere.py", "exec"), namespace)
        _record_memory_history()
        kept = namespace.pop("passing")()
        [frame] = [frame for frame in block_of(kept)["frames"] if frame["filename"] == "nowhere.py"]
        assert frame == {"name": "passing", "filename": "nowhere.py", "line": 2}
        del kept

    def test_a_reused_block_has_the_stack_of_its_present_array(self, xp: Any) -> None:
        def first() -> int:
            return int(allocate().data.ptr)

        _record_memory_history("state")
        address = first()
        kept = allocate()
        assert kept.data.ptr == address
        assert [name for name, _ in own_frames(block_of(kept)["frames"])][:1] == ["allocate"]
        assert "first" not in [name for name, _ in own_frames(block_of(kept)["frames"])]
        del kept


class TestEvents:
    def test_events_have_sizes_streams_and_times(self, xp: Any) -> None:
        side = tcuda.Stream()
        _record_memory_history()
        before = time.time_ns() // 1000
        with tcuda.stream(side):
            allocate(1000)
        after = time.time_ns() // 1000
        assert {event["stream"] for event in events()} == {side.cuda_stream}
        assert [event["size"] for event in events()][1:] == [1000, 1000]
        times = [event["time_us"] for event in events()]
        assert times == sorted(times)
        assert before <= times[0]
        assert times[-1] <= after

    def test_event_sizes_are_the_requested_sizes_as_in_torch(self, xp: Any, torch_memory: dict[str, Any]) -> None:
        assert [event["size"] for event in torch_memory["trace_example"]] == [
            12 * MIB,
            12_000_000,
            12_000_000,
            12_000_000,
        ]
        _record_memory_history()
        allocate(12_000_000)
        assert [event["size"] for event in events()] == [12_000_000] * 3

    def test_a_free_that_waits_for_a_stream_is_completed_later(self, xp: Any) -> None:
        side = tcuda.Stream()
        array = allocate()
        with tcuda.stream(side):
            tcuda._sleep(LONG)
        tcuda.memory.record_stream(array, side)
        _record_memory_history()
        del array
        assert actions() == ["free_requested"]
        side.synchronize()
        tcuda.empty_cache()
        assert actions() == ["free_requested", "free_completed"]

    @pytest.mark.alone
    def test_a_failed_allocation_is_an_oom_event(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        kept = allocate(30 * MIB)
        with hold_at_most(20 * MIB):
            _record_memory_history()
            with pytest.raises(tcuda.OutOfMemoryError):
                allocate(100 * MIB)
            free, total = tcuda.mem_get_info()
        [event] = events()
        assert free < total
        del kept
        assert (event["action"], event["size"], event["device_free"]) == ("oom", 100 * MIB, free)
        assert "addr" not in event
        assert own_frames(event["frames"])[0] == ("allocate", ALLOCATING_LINE)

    def test_metadata_is_attached_to_events(self, xp: Any) -> None:
        _record_memory_history()
        assert tcuda.memory._get_memory_metadata() == ""
        for text in ("first layer", "", "zweite Schicht \N{SNOWMAN}"):
            tcuda.memory._set_memory_metadata(text)
            assert tcuda.memory._get_memory_metadata() == text
            allocate()
        assert [event["user_metadata"] for event in events() if event["action"] == "alloc"] == [
            "first layer",
            "",
            "zweite Schicht \N{SNOWMAN}",
        ]

    def test_a_dictionary_becomes_a_text(self, xp: Any) -> None:
        tcuda.memory._set_memory_metadata({"layer": 1, "kind": "weights"})
        assert tcuda.memory._get_memory_metadata() == '{"layer":1,"kind":"weights"}'
        with pytest.raises(TypeError, match="not JSON serializable"):
            tcuda.memory._set_memory_metadata({"layer": xp})
        assert tcuda.memory._get_memory_metadata() == '{"layer":1,"kind":"weights"}'

    @pytest.mark.parametrize("metadata", [5, None, b"text", ["text"], "\ud800"])
    def test_metadata_that_is_no_text_is_refused(self, xp: Any, metadata: Any) -> None:
        tcuda.memory._set_memory_metadata("before")
        with pytest.raises(TypeError, match="^Expected the metadata as a dict or as a str"):
            tcuda.memory._set_memory_metadata(metadata)
        assert tcuda.memory._get_memory_metadata() == "before"

    @pytest.mark.long
    def test_metadata_without_an_event_is_not_kept(self, output_of: OutputOf) -> None:
        program = """
import resource
import tcuda
from tcuda.memory import _record_memory_history, _set_memory_metadata
tcuda.init()

def held():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

def attach(texts):
    for number in range(texts):
        _set_memory_metadata(f"a text of some eighty bytes, which is not like any of the others, number {number}")
        if number % 100 == 0:
            tcuda.xp.empty(10)

for entries in (0, 50):
    _record_memory_history(max_entries=entries)
    attach(20_000)
    before = held()
    attach(200_000)
    print(held() - before)
print(tcuda.memory._snapshot()["device_traces"][0][-1]["user_metadata"][-6:], tcuda.memory._get_memory_metadata()[-6:])
"""
        unrecorded, recorded, texts = output_of(program).splitlines()
        assert max(int(unrecorded), int(recorded)) < 4 * MIB
        assert texts == "199900 199999"

    def test_every_device_has_its_own_history(self, xp: Any) -> None:
        last = tcuda.device_count() - 1
        _record_memory_history(device=0)
        with tcuda.device(last):
            kept = allocate()
        assert len(_snapshot()["device_traces"]) == tcuda.device_count()
        [event] = events(last)
        assert event["addr"] == kept.data.ptr
        assert len(actions(0)) == (1 if last == 0 else 0)
        assert len(_snapshot(last)["device_traces"]) == tcuda.device_count()  # a snapshot has all devices, as in torch
        del kept

    def test_threads_may_record_allocate_and_take_snapshots_at_once(self, xp: Any) -> None:
        _record_memory_history(max_entries=50)
        together = threading.Barrier(4)

        def work() -> None:
            together.wait()
            for turn in range(30):
                allocate()
                if turn % 10 == 0:
                    snapshot = _snapshot()
                    assert len(snapshot["device_traces"][0]) <= 60
                    _record_memory_history(max_entries=50 + turn // 3)

        in_threads(work, 4 * [()])


class TestKeptStacks:
    """The stacks of allocations that a check of kernels needs, with and without a history."""

    @pytest.fixture(autouse=True)
    def kept(self) -> Iterator[None]:
        want_stacks()
        yield
        release_stacks()

    def line_of(self, array: Any) -> int | None:
        frames = _core.frames_of(ledger().stack_of(array.data.device_id, array.data.mem.ptr))
        return next((line for _, line in own_frames(frames)), None)

    def test_the_stack_of_an_allocation_is_found_by_its_address(self, xp: Any) -> None:
        assert self.line_of(allocate()) == ALLOCATING_LINE

    def test_an_address_inside_of_an_allocation_has_no_stack(self, xp: Any) -> None:
        array = allocate()
        assert ledger().stack_of(array.data.device_id, array.data.mem.ptr + 1) == 0

    def test_the_end_of_a_history_does_not_end_the_stacks(self, xp: Any) -> None:
        _record_memory_history()
        _record_memory_history(enabled=None)
        assert self.line_of(allocate()) == ALLOCATING_LINE
        assert events() == []

    def test_a_history_without_stacks_stays_so(self, xp: Any) -> None:
        _record_memory_history(context=None)
        array = allocate()
        assert self.line_of(array) == ALLOCATING_LINE
        assert [event["frames"] for event in events()] == [[]]

    def test_nothing_is_noted_once_nobody_needs_the_stacks(self, xp: Any) -> None:
        release_stacks()
        assert self.line_of(allocate()) is None
        want_stacks()
