"""``tcuda.memory.scope()``: memory by part of the program."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import itertools
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.blocks import block_of
from support.busy_streams import LONG
from support.devices import last_device
from support.folders import REPOSITORY
from support.threads import in_thread
from support.traces import events, trace_of
from tcuda._process.scopes import ranges_are_scopes
from tcuda.memory import _record_memory_history, scope

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.fixture_types import OutputOf, RunPython

pytestmark = pytest.mark.usefixtures("allocator_as_found", "no_history_left", "statistics_of_no_scope")


def array(size: int) -> Any:
    return tcuda.xp.empty(size, "B")


def scope_bytes(device: int | None = None) -> dict[str, tuple[int, int]]:
    """Return the current and the peak bytes of each scope."""
    stats = tcuda.memory_stats(device)
    names = [key.split(".")[1] for key in stats if key.startswith("scope_bytes.") and key.endswith(".peak")]
    return {name: (stats[f"scope_bytes.{name}.current"], stats[f"scope_bytes.{name}.peak"]) for name in names}


def scope_of(kept: Any) -> str | None:
    """Return the scope of the block of an array; None outside of all scopes."""
    found: str | None = block_of(kept).get("scope")
    return found


class TestStatistics:
    def test_memory_counts_for_the_scope_in_which_it_is_allocated(self, xp: Any) -> None:
        before = array(4000)
        with scope("fft"):
            first, second = array(1000), array(2000)
            del first
        after = array(8000)
        assert scope_bytes() == {"fft": (2048, 3072)}
        del before, second, after
        assert scope_bytes() == {"fft": (0, 3072)}

    def test_sums_of_a_scope_are_figures_too(self, xp: Any) -> None:
        with scope("fft"):
            kept = array(1000)
            array(2000)
        stats = tcuda.memory_stats()
        assert (stats["scope_bytes.fft.allocated"], stats["scope_bytes.fft.freed"]) == (3072, 2048)
        tcuda.reset_accumulated_memory_stats()
        stats = tcuda.memory_stats()
        assert (stats["scope_bytes.fft.allocated"], stats["scope_bytes.fft.freed"]) == (0, 0)
        del kept

    def test_reset_peak_memory_stats_resets_the_peak(self, xp: Any) -> None:
        with scope("fft"):
            kept = array(1000)
            array(5000)
        tcuda.reset_peak_memory_stats()
        assert scope_bytes() == {"fft": (1024, 1024)}
        with scope("fft"):
            array(2000)
        assert scope_bytes() == {"fft": (1024, 3072)}
        del kept

    def test_both_resets_forget_scopes_without_memory(self, xp: Any) -> None:
        with scope("kept"):
            kept = array(1000)
        with scope("gone"):
            array(1000)
        tcuda.reset_peak_memory_stats()
        assert set(scope_bytes()) == {"gone", "kept"}
        tcuda.reset_accumulated_memory_stats()
        assert set(scope_bytes()) == {"kept"}
        del kept

    def test_keys_are_sorted_and_nest_like_the_others(self, xp: Any) -> None:
        assert not any("scope_bytes" in key for key in tcuda.memory_stats())
        with scope("fft"):
            kept = array(1000)
        stats = tcuda.memory_stats()
        assert list(stats) == sorted(stats)
        nested = tcuda.memory_stats_as_nested_dict()
        assert nested["scope_bytes"] == {"fft": {"allocated": 1024, "current": 1024, "freed": 0, "peak": 1024}}
        del kept

    def test_each_device_counts_its_own_memory(self, xp: Any) -> None:
        last = last_device()
        if last == 0:
            pytest.skip("needs two devices, and there is one")
        with scope("fft"):
            first = array(1000)
            with tcuda.device(last):
                second = array(2000)
        assert (scope_bytes(0), scope_bytes(last)) == ({"fft": (1024, 1024)}, {"fft": (2048, 2048)})
        tcuda.reset_peak_memory_stats(0)
        del first, second
        assert (scope_bytes(0), scope_bytes(last)) == ({"fft": (0, 1024)}, {"fft": (0, 2048)})

    def test_a_summary_has_a_row_for_each_scope(self, xp: Any) -> None:
        assert "scope" not in tcuda.memory_summary()
        with scope("fft"):
            kept = array(1000)
            array(2000)
        with scope("a name that is longer than the column"):
            array(2000)
        lines = tcuda.memory_summary(abbreviated=True).splitlines()
        assert {len(line) for line in lines if line} == {77}
        start = next(place for place, line in enumerate(lines) if "Allocated memory by scope" in line)
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[start + 1 : start + 3]]
        assert rows == [
            ["a name that is lon…", "0 B", "2048 B", "2048 B", "2048 B"],
            ["fft", "1024 B", "3072 B", "3072 B", "2048 B"],
        ]
        del kept


class TestNesting:
    def test_memory_counts_for_all_open_scopes(self, xp: Any) -> None:
        with scope("step"):
            outer = array(1000)
            with scope("fft"):
                inner = array(2000)
            again = array(4000)
        assert scope_bytes() == {"fft": (2048, 2048), "step": (7168, 7168)}
        assert list(map(scope_of, [outer, inner, again])) == ["step", "step.fft", "step"]
        del outer, inner, again

    def test_a_name_counts_wherever_it_is_open(self, xp: Any) -> None:
        with scope("forward"), scope("fft"):
            first = array(1000)
        with scope("backward"), scope("fft"):
            second = array(2000)
        assert scope_bytes() == {"backward": (2048, 2048), "fft": (3072, 3072), "forward": (1024, 1024)}
        assert (scope_of(first), scope_of(second)) == ("forward.fft", "backward.fft")
        del first, second

    def test_an_open_name_is_not_opened_again(self, xp: Any) -> None:
        with scope("a"), scope("b"):
            with scope("a"):
                kept = array(1000)
            also = array(1000)
        assert (scope_of(kept), scope_of(also)) == ("a.b", "a.b")
        assert scope_bytes() == {"a": (2048, 2048), "b": (2048, 2048)}
        del kept, also

    def test_scopes_may_end_in_any_order(self, xp: Any) -> None:
        first, second = scope("first"), scope("second")
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        kept = array(1000)
        second.__exit__(None, None, None)
        after = array(1000)
        assert (scope_of(kept), scope_of(after)) == ("second", None)
        del kept, after

    def test_a_scope_ends_with_an_exception(self, xp: Any) -> None:
        with pytest.raises(ZeroDivisionError), scope("fft"):
            1 / 0  # noqa: B018
        kept = array(1000)
        assert scope_of(kept) is None
        del kept

    def test_a_decorated_function_runs_in_the_scope(self, xp: Any) -> None:
        @scope("solver")
        def solve(size: int) -> Any:
            return array(size), None if size == 0 else solve(size - 1000)

        kept = solve(2000)
        assert solve.__name__ == "solve"
        assert scope_bytes() == {"solver": (3072, 3072)}
        del kept

    @pytest.mark.parametrize("kind", ["generator", "coroutine", "asynchronous generator"])
    def test_a_function_whose_body_runs_later_is_refused(self, kind: str) -> None:
        def generator() -> Iterator[None]:
            yield

        async def coroutine() -> None: ...

        async def both() -> Any:
            yield

        later: Any = {"generator": generator, "coroutine": coroutine, "asynchronous generator": both}[kind]
        with pytest.raises(
            TypeError, match=rf"got .*{later.__name__}\(\), whose body runs after the call. Write `with"
        ):
            scope("fft")(later)

    def test_a_block_cannot_be_entered_twice(self) -> None:
        used = scope("fft")
        with used:
            pass
        with pytest.raises(RuntimeError, match="was entered before; make a new one"), used:
            pass


class TestFrees:
    def test_memory_leaves_its_scope_wherever_it_is_freed(self, xp: Any) -> None:
        with scope("fft"):
            kept = [array(1000), array(2000), array(4000)]
        with scope("other"):
            kept.pop()
        assert scope_bytes() == {"fft": (3072, 7168)}
        in_thread(kept.pop)
        assert scope_bytes() == {"fft": (1024, 7168)}
        kept.clear()
        assert scope_bytes() == {"fft": (0, 7168)}

    def test_memory_that_awaits_other_streams_leaves_its_scope_at_the_free(self, xp: Any) -> None:
        side = tcuda.Stream()
        with scope("fft"):
            kept = array(1000)
        with tcuda.stream(side):
            tcuda._sleep(LONG)
        tcuda.memory.record_stream(kept, side)
        address = kept.data.ptr
        del kept
        assert scope_bytes() == {"fft": (0, 1024)}
        blocks = [block for segment in tcuda.memory_snapshot() for block in segment["blocks"]]
        assert [block.get("scope") for block in blocks if block["address"] == address] == ["fft"]
        side.synchronize()
        tcuda.empty_cache()
        assert scope_bytes() == {"fft": (0, 1024)}

    def test_reused_memory_has_the_scope_of_its_last_allocation(self, xp: Any) -> None:
        with scope("first"):
            array(1000)
        kept = array(1000)
        assert scope_of(kept) is None
        del kept
        with scope("second"):
            kept = array(1000)
        assert scope_of(kept) == "second"
        assert scope_bytes() == {"first": (0, 1024), "second": (1024, 1024)}
        del kept

    def test_memory_of_a_plugged_allocator_has_scopes(self, output_of: OutputOf) -> None:
        code = """
import tcuda
tcuda.memory.caching_allocator_enable(False)
with tcuda.memory.scope("fft"):
    kept = tcuda.xp.empty(1000, "B")
stats = tcuda.memory_stats()
[block] = [block for segment in tcuda.memory_snapshot() for block in segment["blocks"]]
print(stats["scope_bytes.fft.current"] == stats["allocated_bytes.all.current"] > 0, block["scope"])
del kept
print(tcuda.memory_stats()["scope_bytes.fft.current"])
"""
        assert output_of(code).splitlines() == ["True fft", "0"]


class TestContexts:
    def test_a_new_thread_begins_without_a_scope(self, xp: Any) -> None:
        def work(name: str) -> tuple[Any, Any]:
            first = array(1000)
            with scope(name):
                return first, array(1000)

        with scope("main"):
            first, second = in_thread(contextvars.Context().run, work, "thread")
            third = array(1000)
        assert list(map(scope_of, [first, second, third])) == [None, "thread", "main"]
        del first, second, third

    def test_a_thread_in_a_copy_of_the_context_goes_on_in_the_scope(self, xp: Any) -> None:
        with scope("main"):
            context = contextvars.copy_context()
        kept = in_thread(context.run, array, 1000)
        assert scope_of(kept) == "main"
        del kept

    def test_each_task_has_its_own_scopes(self, xp: Any) -> None:
        async def work(name: str, size: int) -> list[Any]:
            kept = []
            with scope(name):
                for _ in range(3):
                    kept.append(array(size))
                    await asyncio.sleep(0)
            return kept

        async def both() -> list[Any]:
            with scope("all"):
                return await asyncio.gather(work("first", 512), work("second", 1024))

        first, second = asyncio.run(both())
        assert {scope_of(each) for each in first} == {"all.first"}
        assert {scope_of(each) for each in second} == {"all.second"}
        assert scope_bytes() == {"all": (4608, 4608), "first": (1536, 1536), "second": (3072, 3072)}
        first.clear()
        second.clear()

    def test_a_scope_that_ends_in_another_context_changes_nothing_there(self, xp: Any) -> None:
        used = scope("fft")
        contextvars.copy_context().run(used.__enter__)
        with scope("other"):
            used.__exit__(None, None, None)
            kept = array(1000)
        assert scope_of(kept) == "other"
        del kept

    def test_memory_that_is_taken_without_pythons_lock_has_the_scope_of_the_thread(self, output_of: OutputOf) -> None:
        code = """
import ctypes, tcuda
from support.threads import in_thread
from tcuda import _core
from tcuda._process.ledger import ledger
before = tcuda.xp.empty(1)
ledger().share()
library = ctypes.CDLL(_core.__file__)  # its functions are called without the lock, as torch calls them
library.tcuda_torch_malloc.restype = ctypes.c_void_p
library.tcuda_torch_malloc.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
library.tcuda_torch_free.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
def take():
    return library.tcuda_torch_malloc(1000, 0, None)
with tcuda.memory.scope("model"):
    with tcuda.memory.scope("loss"):
        addresses = [take()]
    addresses += [take(), in_thread(take)]
addresses.append(take())
blocks = {block["address"]: block for segment in tcuda.memory_snapshot() for block in segment["blocks"]}
print([blocks[address].get("scope") for address in addresses])
for address in addresses:
    library.tcuda_torch_free(address, 1000, 0, None)
print(tcuda.memory_stats()["scope_bytes.model.current"])
"""
        found = output_of(code, PYTHONPATH=str(REPOSITORY / "tests")).splitlines()
        assert found == [str(["model.loss", "model", None, None]), "0"]


class TestHistory:
    def test_events_have_the_scope_of_the_memory(self, xp: Any) -> None:
        _record_memory_history(context=None)
        with scope("fft"):
            kept = array(1000)
        with scope("other"):
            del kept
        array(1000)
        found = [(event["action"], event.get("scope")) for event in events()]
        frees = ["free_requested", "free_completed"]
        assert found == [
            ("alloc", "fft"),
            *((action, "fft") for action in frees),
            *((action, None) for action in ("alloc", *frees)),
        ]

    def test_segments_and_lacks_of_memory_have_the_scope_of_the_allocation(self, xp: Any) -> None:
        _record_memory_history()
        with scope("fft"), scope("plan"):
            kept = array(1000)
            with pytest.raises(tcuda.OutOfMemoryError):
                array(1 << 50)
        found = {event["action"]: event.get("scope") for event in trace_of()}
        assert found.pop("oom") == "fft.plan"
        assert set(found.values()) == {"fft.plan"}
        del kept

    def test_captured_memory_has_a_scope(self, xp: Any) -> None:
        x = xp.ones(1000, "float32")
        graph = tcuda.CUDAGraph()
        with scope("model"), tcuda.graph(graph):
            y = x + 1
            with scope("loss"):
                z = y * 2
        with scope("replay"):
            graph.replay()
        assert (scope_of(y), scope_of(z)) == ("model", "model.loss")
        found = scope_bytes()
        assert found["model"][0] >= 8192
        assert found["loss"] == (4096, 4096)
        assert "replay" not in found
        del x, y, z
        graph.reset()
        del graph
        tcuda.synchronize()
        gc.collect()
        assert scope_bytes()["model"][0] == 0

    def test_pools_have_scopes(self, xp: Any) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool), scope("fft"):
            kept = array(1000)
        blocks = [block for segment in pool.snapshot() for block in segment["blocks"]]
        assert [block.get("scope") for block in blocks if block["state"] == "active_allocated"] == ["fft"]
        del kept, pool


class TestNames:
    @pytest.mark.parametrize("name", ["", "a.b", ".", "two\nlines", "tab\t", "\0", "\ud800"], ids=ascii)
    def test_a_name_that_would_not_make_a_key_is_refused(self, name: str) -> None:
        with pytest.raises(ValueError, match=r"^scope\(\): name must be a text in one line, without dots") as raised:
            scope(name)
        assert repr(name) in str(raised.value)
        assert "Choose another name" in str(raised.value)

    @pytest.mark.parametrize("name", [None, 3, b"fft", ["fft"]], ids=repr)
    def test_a_name_must_be_a_text(self, name: Any) -> None:
        with pytest.raises(TypeError, match=r"^scope\(\): name must be a str; got "):
            scope(name)

    @pytest.mark.parametrize("name", ["fft", "current", "peak", "all", "a/b: c [1]", "größe", "傅里叶"])
    def test_other_names_make_keys_that_can_be_told_apart(self, xp: Any, name: str) -> None:
        with scope(name):
            kept = array(1000)
        assert scope_bytes() == {name: (1024, 1024)}
        assert tcuda.memory_stats_as_nested_dict()["scope_bytes"][name]["current"] == 1024
        assert scope_of(kept) == name
        del kept

    def test_many_names_count_apart(self, xp: Any) -> None:
        kept = []
        for number in range(300):
            with scope(f"request {number}"):
                kept.append(array(512 * (number + 1)))
        assert scope_bytes() == {f"request {number}": (512 * (number + 1),) * 2 for number in range(300)}
        kept.clear()


_RANGES = """
import tcuda
from tcuda import nvtx
nvtx.range_push("epoch 1.2")
with nvtx.range("fft"):
    with tcuda.memory.scope("plan"):
        kept = tcuda.xp.empty(1000, "B")
        nvtx.range_pop()
        also = tcuda.xp.empty(1000, "B")
    nvtx.range_push("")
    none = tcuda.xp.empty(1000, "B")
nvtx.range_pop()
after = tcuda.xp.empty(1000, "B")
nvtx.range_pop()
number = nvtx.range_start("started")
last = tcuda.xp.empty(1000, "B")
nvtx.range_end(number)
nvtx.mark("mark")
blocks = [block for segment in tcuda.memory_snapshot() for block in segment["blocks"]]
scopes = {block["address"]: block.get("scope") for block in blocks}
print([scopes[each.data.ptr] for each in (kept, also, none, after, last)])
"""


class TestRanges:
    def test_nvtx_ranges_are_scopes_if_the_environment_says_so(self, output_of: OutputOf) -> None:
        found = output_of(_RANGES, TCUDA_MEMORY_SCOPES="nvtx")
        assert found == str(["epoch 1_2.fft.plan", "epoch 1_2.plan", "epoch 1_2", None, None])

    @pytest.mark.parametrize("value", ["", None])
    def test_nvtx_ranges_are_no_scopes_otherwise(self, output_of: OutputOf, value: str | None) -> None:
        assert output_of(_RANGES, TCUDA_MEMORY_SCOPES=value) == str(
            [None if part else "plan" for part in (0, 0, 1, 1, 1)]
        )

    @pytest.mark.emulated
    def test_a_trace_leaves_the_scopes_alone(self, output_of: OutputOf, tmp_path: Path) -> None:
        code = f"""
import tcuda
from tcuda import nvtx
with nvtx.range("outer"), tcuda.profiler.trace({str(tmp_path / "out.json")!r}), nvtx.range("inner"):
    kept = tcuda.xp.empty(1000, "B")
print([key for key in tcuda.memory_stats() if key.startswith("scope_bytes") and key.endswith("peak")])
"""
        keys = [f"scope_bytes.{name}.peak" for name in ("inner", "outer")]
        assert output_of(code, TCUDA_MEMORY_SCOPES="nvtx") == str(keys)

    @pytest.mark.parametrize("first", ["tcuda.init()", "tcuda.nvtx.range_push('a')"])
    def test_a_wrong_value_is_refused(self, run_python: RunPython, first: str) -> None:
        done = run_python(f"import tcuda; {first}", TCUDA_MEMORY_SCOPES="yes")
        assert "ValueError: TCUDA_MEMORY_SCOPES is 'yes'; write nvtx, or remove the variable." in done.stderr

    @pytest.mark.parametrize("value", ["NVTX", "1", "nvtx,", "0"])
    def test_only_one_word_is_allowed(self, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
        monkeypatch.setenv("TCUDA_MEMORY_SCOPES", value)
        with pytest.raises(
            ValueError, match=f"^TCUDA_MEMORY_SCOPES is '{value}'; write nvtx, or remove the variable.$"
        ):
            ranges_are_scopes()


def test_random_scopes_count_as_a_model_does(xp: Any) -> None:
    """Compare the counters after each of many steps with sums over the live arrays."""
    steps = itertools.cycle([3, 0, 2, 5, 1, 4, 2, 0, 1, 3, 0, 5])
    names = ["a", "b", "c"]
    opened: list[scope] = []
    live: list[tuple[Any, set[str], int]] = []
    peaks: dict[str, int] = {}
    stack: list[str] = []
    for number, step in zip(range(400), steps, strict=False):
        if step == 0 and len(stack) < 6:
            name = names[number * 7 % 3]
            opened.append(scope(name))
            opened[-1].__enter__()
            stack.append(name)
        elif step == 1 and stack:
            place = number * 5 % len(stack)
            opened.pop(place).__exit__(None, None, None)
            stack.pop(place)
        elif step in (2, 3):
            size = 512 * (1 + number * 11 % 9)
            live.append((array(size), set(stack), size))
        elif step in (4, 5) and live:
            live.pop(number * 3 % len(live))
        current = {name: sum(size for _, scopes, size in live if name in scopes) for name in names}
        for name in names:
            peaks[name] = max(peaks.get(name, 0), current[name])
        assert scope_bytes() == {name: (current[name], peaks[name]) for name in names if peaks[name]}
    while opened:
        opened.pop().__exit__(None, None, None)
    live.clear()
