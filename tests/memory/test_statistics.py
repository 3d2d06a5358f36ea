"""The statistics of memory: their keys, their counts, and the summary."""

from __future__ import annotations

import collections
import json
import random
import threading
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.busy_streams import LONG
from support.devices import last_device
from support.sizes import KIB, MIB
from support.threads import in_threads
from tcuda._process import ledger
from tcuda.memory import _summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.fixture_types import Changes, OutputOf

pytestmark = pytest.mark.usefixtures("allocator_as_found", "statistics_of_no_scope")

FIGURES = ("allocated", "current", "freed", "peak")


def spread(counters: dict[str, int], pool: str, figures: tuple[str, ...]) -> dict[str, int]:
    """Return the changes when ``counters`` change in ``pool``, and therefore in the sum of both pools."""
    changed = {}
    for counter, amount in counters.items():
        for scope in ("all", pool):
            for figure in figures:
                changed[f"{counter}.{scope}.{figure}"] = amount if figure == "current" else abs(amount)
    return changed


def without_peaks(changed: dict[str, int]) -> dict[str, int]:
    return {key: amount for key, amount in changed.items() if not key.endswith(".peak")}


SLEEPING = 12
"""The keys of memory that sleeps, which torch does not have: three pools with four figures."""


class TestKeys:
    def test_keys_and_their_order_are_torchs(self, runtime: Any, torch_memory: dict[str, Any]) -> None:
        stats = tcuda.memory_stats()
        assert list(stats)[: len(stats) - SLEEPING] == torch_memory["memory_stats_keys"]
        assert all(key.startswith("sleeping_bytes.") for key in list(stats)[len(stats) - SLEEPING :])
        assert len(stats) == 123 + SLEEPING
        assert {type(value) for value in stats.values()} == {int}

    def test_the_nested_dictionary_has_the_same_numbers(self, runtime: Any) -> None:
        nested = tcuda.memory_stats_as_nested_dict()
        assert set(nested["allocation"]) == {"all", "large_pool", "small_pool"}
        assert set(nested["oversize_segments"]) == set(nested["active"]["small_pool"]) == set(FIGURES)

        def flat(inner: dict[str, Any], path: str = "") -> dict[str, int]:
            parts = [
                flat(value, f"{path}{key}.") if isinstance(value, dict) else {path + key: value}
                for key, value in inner.items()
            ]
            return {key: value for part in parts for key, value in part.items()}

        assert flat(nested) == tcuda.memory_stats()

    def test_every_call_returns_a_dictionary_of_its_own(self, runtime: Any) -> None:
        tcuda.memory_stats().clear()
        tcuda.memory_stats_as_nested_dict()["allocation"].clear()
        assert len(tcuda.memory_stats()) == 123 + SLEEPING
        assert tcuda.memory_stats_as_nested_dict()["allocation"]

    def test_memory_allocated_and_its_kin_are_figures_of_the_statistics(self, xp: Any) -> None:
        xp.empty(40 * MIB, "B")
        tcuda.empty_cache()
        kept = xp.empty(3000, "B")
        stats = tcuda.memory_stats()
        assert stats["reserved_bytes.all.peak"] > stats["reserved_bytes.all.current"]
        assert stats["allocated_bytes.all.peak"] > stats["allocated_bytes.all.current"]
        assert tcuda.memory_allocated() == stats["allocated_bytes.all.current"] >= kept.nbytes
        assert tcuda.max_memory_allocated() == stats["allocated_bytes.all.peak"]
        assert tcuda.memory_reserved() == stats["reserved_bytes.all.current"]
        assert tcuda.max_memory_reserved() == stats["reserved_bytes.all.peak"]


class TestCounting:
    def test_a_small_array_in_a_new_pool(self, xp: Any, changes: Changes) -> None:
        pool = tcuda.MemPool()
        with changes() as changed, tcuda.use_mem_pool(pool):
            kept = xp.empty(1000, "B")
        grown = {
            "active": 1,
            "active_bytes": 1 * KIB,
            "allocated_bytes": 1 * KIB,
            "allocation": 1,
            "inactive_split": 1,
            "inactive_split_bytes": 2 * MIB - 1 * KIB,
            "requested_bytes": 1000,
            "reserved_bytes": 2 * MIB,
            "segment": 1,
        }
        expected = spread(grown, "small_pool", ("allocated", "current")) | {"num_device_alloc": 1}
        assert without_peaks(changed) == expected
        del kept

    def test_a_large_array_in_a_new_pool(self, xp: Any, changes: Changes) -> None:
        pool = tcuda.MemPool()
        with changes() as changed, tcuda.use_mem_pool(pool):
            kept = xp.empty(2_000_000, "B")
        grown = {
            "active": 1,
            "active_bytes": 2_000_384,
            "allocated_bytes": 2_000_384,
            "allocation": 1,
            "inactive_split": 1,
            "inactive_split_bytes": 20 * MIB - 2_000_384,
            "requested_bytes": 2_000_000,
            "reserved_bytes": 20 * MIB,
            "segment": 1,
        }
        found = without_peaks(changed)
        assert found.pop("num_device_alloc") >= 1  # one for each piece
        assert found == spread(grown, "large_pool", ("allocated", "current"))
        del kept

    def test_an_array_that_dies_leaves_its_memory_reserved(self, xp: Any, changes: Changes) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            doomed = xp.empty(1000, "B")
        with changes() as changed:
            del doomed
        gone = {
            "active": -1,
            "active_bytes": -1 * KIB,
            "allocated_bytes": -1 * KIB,
            "allocation": -1,
            "inactive_split": -1,
            "inactive_split_bytes": 1 * KIB - 2 * MIB,
            "requested_bytes": -1000,
        }
        assert without_peaks(changed) == spread(gone, "small_pool", ("current", "freed"))

    def test_memory_that_goes_back_to_the_device(self, xp: Any, changes: Changes) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            doomed = xp.empty(1000, "B")
        del doomed
        with changes() as changed:
            del pool
        gone = spread({"reserved_bytes": -2 * MIB, "segment": -1}, "small_pool", ("current", "freed"))
        assert without_peaks(changed) == gone | {"num_device_free": 1, "num_sync_all_streams": 1}

    def test_each_emptying_of_the_cache_counts_as_a_wait_for_all_streams(self, xp: Any, changes: Changes) -> None:
        tcuda.empty_cache()
        with changes() as changed:
            tcuda.empty_cache()
        assert changed == {"num_sync_all_streams": 1}

    def test_memory_that_is_used_again_is_not_reserved_again(self, xp: Any, changes: Changes) -> None:
        with tcuda.use_mem_pool(tcuda.MemPool()):
            doomed = xp.empty(1000, "B")
            del doomed
            with changes() as changed:
                for _ in range(5):
                    xp.empty(1000, "B")
        assert changed["allocation.all.allocated"] == changed["allocation.all.freed"] == 5
        assert not [key for key in changed if key.startswith(("reserved", "segment", "num"))]

    def test_views_count_once(self, xp: Any, changes: Changes) -> None:
        with changes() as changed:
            base = xp.empty(4096, "B")
            views = [base[10:], base.reshape(64, 64), base.view("f4"), base[::2]]
        assert changed["allocation.all.current"] == 1
        assert changed["allocated_bytes.all.current"] == 4096
        with changes() as changed:
            del base
        assert changed == {}
        with changes() as changed:
            del views
        assert changed["allocation.all.current"] == -1

    def test_an_array_without_elements_counts_nothing(self, xp: Any, changes: Changes) -> None:
        with changes() as changed:
            kept = xp.empty((3, 0))
        assert changed == {}
        del kept

    @pytest.mark.parametrize(
        ("requested", "size", "pool"),
        [
            (1, 512, "small_pool"),
            (512, 512, "small_pool"),
            (513, 1024, "small_pool"),
            (MIB - 1, MIB, "small_pool"),
            (MIB, MIB, "small_pool"),
            (MIB + 1, MIB + 512, "large_pool"),
            (10 * MIB, 10 * MIB, "large_pool"),
            (12_000_001, 12_000_256, "large_pool"),
        ],
    )
    def test_sizes_are_rounded_up_to_multiples_of_512(
        self, xp: Any, changes: Changes, requested: int, size: int, pool: str
    ) -> None:
        with changes() as changed:
            kept = xp.empty(requested, "B")
        assert changed["allocated_bytes.all.current"] == changed[f"allocated_bytes.{pool}.current"] == size
        assert changed["active_bytes.all.current"] == size
        assert changed["requested_bytes.all.current"] == requested
        assert tcuda.memory_allocated() % 512 == 0
        del kept

    def test_memory_that_another_stream_still_uses_is_active_but_no_longer_allocated(
        self, xp: Any, changes: Changes
    ) -> None:
        side = tcuda.Stream()
        array = xp.empty(1000, "B")
        with tcuda.stream(side):
            tcuda._sleep(LONG)
        tcuda.memory.record_stream(array, side)
        with changes() as changed:
            del array
        assert changed["allocation.all.current"] == -1
        assert changed["allocated_bytes.all.current"] == -1 * KIB
        assert not [key for key in changed if key.startswith(("active", "requested"))]
        side.synchronize()
        with changes() as changed:
            xp.empty(1000, "B")
        assert changed["active.all.current"] == -1
        assert changed["active_bytes.all.current"] == -1 * KIB
        assert changed["requested_bytes.all.current"] == -1000

    def test_every_device_has_its_own_statistics(self, xp: Any, changes: Changes) -> None:
        last = last_device()
        with tcuda.device(last), changes(last) as there, changes(0) as here:
            kept = xp.empty(1000, "B")
        assert there["allocation.all.current"] == 1
        assert bool(here) == (last == 0)
        del kept

    def test_threads_that_allocate_at_once_add_up(self, xp: Any, changes: Changes) -> None:
        rounds, threads, size = 100, 4, 3 * KIB
        together = threading.Barrier(threads)
        left: list[Any] = []

        def churn() -> None:
            with tcuda.stream(tcuda.Stream()):
                together.wait()
                for _ in range(rounds):
                    xp.empty(size, "B")
                left.append(xp.empty(size, "B"))

        with changes() as changed:
            in_threads(churn, threads * [()])
        assert changed["allocation.all.allocated"] == threads * (rounds + 1)
        assert changed["allocated_bytes.small_pool.allocated"] == threads * (rounds + 1) * size
        assert changed["allocation.all.freed"] == threads * rounds
        assert changed["allocation.all.current"] == len(left) == threads
        assert changed["requested_bytes.all.current"] == threads * size


def by_segments() -> dict[int, collections.Counter[str]]:
    """Return, for each device, the statistics that the segments of a snapshot add up to."""
    found: dict[int, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for segment in tcuda.memory_snapshot():
        blocks = segment["blocks"]
        active = [block for block in blocks if block["state"].startswith("active_")]
        unused = [block for block in blocks if block["state"] == "inactive" and len(blocks) > 1]
        assert segment["requested_size"] == sum(block["requested_size"] for block in active)
        counters = {
            "segment": 1,
            "allocation": sum(block["state"] == "active_allocated" for block in blocks),
            "active": len(active),
            "allocated_bytes": segment["allocated_size"],
            "active_bytes": segment["active_size"],
            "requested_bytes": segment["requested_size"],
            "reserved_bytes": segment["total_size"],
            "inactive_split": len(unused),
            "inactive_split_bytes": sum(block["size"] for block in unused),
        }
        for counter, amount in counters.items():
            for scope in ("all", f"{segment['segment_type']}_pool"):
                found[segment["device"]][f"{counter}.{scope}.current"] += amount
    return found


@pytest.mark.parametrize("expandable", [False, True])
def test_the_statistics_are_the_sums_of_the_snapshot(xp: Any, expandable: bool) -> None:
    program = random.Random(1)
    before = ledger.conf()
    live: list[Any] = []
    tcuda.memory._set_allocator_settings(f"expandable_segments:{expandable}")
    try:
        for _ in range(200):
            if live and program.random() < 0.45:
                live.pop(program.randrange(len(live)))
            elif program.random() < 0.05:
                tcuda.empty_cache()
            else:
                with tcuda.device(program.randrange(tcuda.device_count())):
                    live.append(xp.empty(program.choice([1, 300, 5 * KIB, MIB, 3 * MIB, 12 * MIB]), "B"))
            for device, expected in by_segments().items():
                stats = tcuda.memory_stats(device)
                assert {key: stats[key] for key in expected} == expected
    finally:
        live.clear()
        ledger.change_conf(before)


class TestResetting:
    def test_a_peak_is_the_highest_value_since_it_was_reset(self, xp: Any) -> None:
        tcuda.reset_peak_memory_stats()
        before = tcuda.memory_allocated()
        assert tcuda.max_memory_allocated() == before
        first, second = xp.empty(1 * MIB, "B"), xp.empty(2 * MIB, "B")
        del first
        third = xp.empty(512 * KIB, "B")
        assert tcuda.max_memory_allocated() == before + 3 * MIB
        assert tcuda.memory_allocated() == before + 2 * MIB + 512 * KIB
        del second, third
        assert tcuda.max_memory_allocated() == before + 3 * MIB
        tcuda.reset_peak_memory_stats()
        assert tcuda.max_memory_allocated() == before
        kept = xp.empty(512, "B")
        assert tcuda.max_memory_allocated() == before + 512
        del kept

    def test_resetting_makes_every_peak_the_current_value_and_changes_nothing_else(self, xp: Any) -> None:
        xp.empty(3 * MIB, "B")
        kept = xp.empty(1000, "B")
        before = tcuda.memory_stats()
        assert before["allocated_bytes.all.peak"] > before["allocated_bytes.all.current"]
        tcuda.reset_peak_memory_stats()
        after = tcuda.memory_stats()
        peaks = {key for key in before if key.endswith(".peak")}
        assert all(after[key] == before[key.replace(".peak", ".current")] for key in peaks)
        assert all(after[key] == before[key] for key in before.keys() - peaks)
        del kept

    def test_resetting_the_sums_sets_them_to_0_and_changes_nothing_else(self, xp: Any) -> None:
        xp.empty(3 * MIB, "B")
        with pytest.raises(tcuda.OutOfMemoryError):
            xp.empty(1 << 50, "B")
        kept = xp.empty(1000, "B")
        before = tcuda.memory_stats()
        tcuda.reset_accumulated_memory_stats()
        after = tcuda.memory_stats()
        sums = {key for key in before if key.endswith((".allocated", ".freed")) or key.startswith("num_")}
        assert all(before[key] for key in sums - {"num_oom_rejections"} if key.startswith("num_"))
        assert not any(after[key] for key in sums)
        assert all(after[key] == before[key] for key in before.keys() - sums)
        del kept
        assert tcuda.memory_stats()["allocated_bytes.all.freed"] == 1 * KIB

    def test_other_devices_are_not_reset(self, xp: Any) -> None:
        last = last_device()
        if last == 0:
            pytest.skip("needs two devices, and there is one")
        with tcuda.device(last):
            xp.empty(3 * MIB, "B")
        before = tcuda.memory_stats(last)
        tcuda.reset_peak_memory_stats()
        tcuda.reset_accumulated_memory_stats(0)
        assert tcuda.memory_stats(last) == before
        tcuda.reset_peak_memory_stats(f"cuda:{last}")
        tcuda.reset_accumulated_memory_stats(f"cuda:{last}")
        after = tcuda.memory_stats(last)
        assert after["allocation.all.peak"] == after["allocation.all.current"]
        assert after["allocation.all.allocated"] == 0


class TestOldNames:
    @pytest.mark.parametrize(
        ("name", "warning"),
        [
            ("memory_cached", "`tcuda.memory_cached` has been renamed to `tcuda.memory_reserved`"),
            ("max_memory_cached", "`tcuda.max_memory_cached` has been renamed to `tcuda.max_memory_reserved`"),
            (
                "reset_max_memory_allocated",
                "tcuda.reset_max_memory_allocated now calls tcuda.reset_peak_memory_stats, which resets /all/ peak "
                "memory stats.",
            ),
            (
                "reset_max_memory_cached",
                "tcuda.reset_max_memory_cached now calls tcuda.reset_peak_memory_stats, which resets /all/ peak "
                "memory stats.",
            ),
        ],
    )
    def test_old_names_warn_in_torchs_words_at_the_line_of_the_caller(
        self, runtime: Any, name: str, warning: str
    ) -> None:
        with pytest.warns(FutureWarning) as caught:
            getattr(tcuda, name)()
        assert [str(one.message) for one in caught] == [warning]
        assert caught[0].filename == __file__

    @pytest.mark.filterwarnings("ignore::FutureWarning")
    def test_old_names_do_the_same_as_the_new_names(self, xp: Any) -> None:
        last = last_device()
        with tcuda.device(last):
            kept = xp.empty(40 * MIB, "B")
        assert tcuda.memory_cached(last) == tcuda.memory_reserved(last)
        assert tcuda.max_memory_cached(last) == tcuda.max_memory_reserved(last)
        del kept
        for reset in (tcuda.reset_max_memory_allocated, tcuda.reset_max_memory_cached):
            xp.empty(3 * MIB, "B")
            assert tcuda.max_memory_allocated() > tcuda.memory_allocated()
            reset(0)
            assert tcuda.max_memory_allocated() == tcuda.memory_allocated()


ASKING = [
    tcuda.memory_allocated,
    tcuda.max_memory_allocated,
    tcuda.memory_reserved,
    tcuda.max_memory_reserved,
    tcuda.memory_stats,
    tcuda.memory_stats_as_nested_dict,
    tcuda.memory_summary,
]
RESETTING = [tcuda.reset_peak_memory_stats, tcuda.reset_accumulated_memory_stats]


class TestDeviceArguments:
    @pytest.mark.parametrize("function", ASKING, ids=lambda function: function.__name__)
    def test_a_device_may_be_an_index_a_text_an_object_or_none(self, xp: Any, function: Callable[..., Any]) -> None:
        last = last_device()
        tcuda.reset_peak_memory_stats(0)
        with tcuda.device(last):
            kept = xp.empty(5 * MIB, "B")
            xp.empty(70 * MIB, "B")
            there = function()
            assert function(None) == function("cuda") == there
        assert function(last) == function(f"cuda:{last}") == function(kept.device) == there
        assert (function() == there) == (last == 0)
        del kept

    @pytest.mark.parametrize("function", ASKING + RESETTING, ids=lambda function: function.__name__)
    def test_an_invalid_device_is_refused(self, runtime: Any, function: Callable[..., Any]) -> None:
        count = tcuda.device_count()
        for index in (count, 99, -1, f"cuda:{count}"):
            number = str(index).removeprefix("cuda:")
            with pytest.raises(RuntimeError, match=f"^Invalid device argument {number}: did you call init"):
                function(index)
        with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
            function("cpu")
        with pytest.raises(RuntimeError, match="device string"):
            function("hello")


def test_before_initialisation_the_figures_are_0_and_reading_them_does_not_initialise(output_of: OutputOf) -> None:
    program = """
import json, tcuda
m = tcuda.memory
told = [m.memory_allocated(), m.max_memory_allocated(), m.memory_reserved(), m.max_memory_reserved(), m.memory_stats(),
        m.memory_stats_as_nested_dict(), m.memory_allocated(99), m.memory_stats("cuda:99")]
m.empty_cache()
print(json.dumps([told, tcuda.is_initialized()]))
"""
    assert json.loads(output_of(program)) == [[0, 0, 0, 0, {}, {}, 0, {}], False]


def torchs_statistics() -> dict[str, int]:
    """Return the statistics that are shown in the recorded summary of torch."""
    large = {
        "allocated_bytes": (12 * MIB, 12 * MIB, 24 * MIB, 12 * MIB),
        "active_bytes": (12 * MIB, 12 * MIB, 24 * MIB, 12 * MIB),
        "requested_bytes": (12_000_000, 12_000_000, 24_000_000, 12_000_000),
        "reserved_bytes": (12 * MIB, 12 * MIB, 12 * MIB, 0),
        "inactive_split_bytes": (0, 0, 0, 0),
        "allocation": (1, 1, 2, 1),
        "active": (1, 1, 2, 1),
        "segment": (1, 1, 1, 0),
        "inactive_split": (0, 0, 0, 0),
    }
    small = {
        "allocated_bytes": (4608, 4608, 4608, 0),
        "active_bytes": (4608, 4608, 4608, 0),
        "requested_bytes": (4400, 4400, 4400, 0),
        "reserved_bytes": (2 * MIB, 2 * MIB, 2 * MIB, 0),
        "inactive_split_bytes": (2 * MIB - 4608, 2 * MIB - 4096, 2 * MIB - 4096, 512),
        "allocation": (2, 2, 2, 0),
        "active": (2, 2, 2, 0),
        "segment": (1, 1, 1, 0),
        "inactive_split": (1, 1, 1, 0),
    }
    stats = {"num_ooms": 0, "num_alloc_retries": 0}
    figures = ("current", "peak", "allocated", "freed")
    for counter in large:
        for figure, big, little in zip(figures, large[counter], small[counter], strict=True):
            stats[f"{counter}.large_pool.{figure}"] = big
            stats[f"{counter}.small_pool.{figure}"] = little
            stats[f"{counter}.all.{figure}"] = big + little
    for counter in ("oversize_allocations", "oversize_segments"):
        stats.update({f"{counter}.{figure}": 0 for figure in figures})
    return stats


class TestSummary:
    @pytest.mark.parametrize("abbreviated", [False, True])
    def test_the_summary_is_torchs_except_for_the_title(self, torch_memory: dict[str, Any], abbreviated: bool) -> None:
        expected = torch_memory["memory_summary_abbrev" if abbreviated else "memory_summary"]
        lines = [f"|{line}|" for line in _summary._lines(0, torchs_statistics(), abbreviated)]
        assert lines[:1] + lines[2:] == expected[:1] + expected[2:]
        assert lines[1].strip("| ") == "tcuda memory summary, device ID 0"
        assert {len(line) for line in lines} == {77}

    def test_the_summary_shows_the_present_statistics_and_ends_with_a_line(self, xp: Any) -> None:
        last = last_device()
        with tcuda.device(last):
            kept = xp.empty(1000, "B")
        summary = tcuda.memory_summary(last)
        assert summary.endswith("=|\n")
        lines = summary.splitlines()
        assert lines[1].strip("| ") == f"tcuda memory summary, device ID {last}"
        stats = tcuda.memory_stats(last)
        [row] = [line for line in lines if line.startswith("| Allocations ")]
        shown = [int(cell) for cell in row.split("|")[2:6]]
        assert shown == [stats[f"allocation.all.{figure}"] for figure in ("current", "peak", "allocated", "freed")]
        [head] = [line for line in lines if "CUDA OOMs" in line]
        ooms, retries = (part.split(":")[1].strip("| ") for part in head.split(" | "))
        assert (int(ooms), int(retries)) == (stats["num_ooms"], stats["num_alloc_retries"])
        del kept

    def test_the_abbreviated_summary_has_no_pools(self, runtime: Any) -> None:
        full, short = tcuda.memory_summary(), tcuda.memory_summary(abbreviated=True)
        assert [line for line in full.splitlines() if "pool" not in line] == short.splitlines()
        assert len(short.splitlines()) == len(full.splitlines()) - 18

    @pytest.mark.parametrize(
        ("size", "shown"),
        [
            (0, "0 B  "),
            (768 * KIB - 1, "786431 B  "),
            (768 * KIB, "768 KiB"),
            (768 * MIB - 1, "786431 KiB"),
            (768 * MIB, "768 MiB"),
            (5 << 30, "5120 MiB"),
            (139 << 30, "142336 MiB"),
            (1 << 40, "1024 GiB"),
            (1 << 50, "1024 TiB"),
            (1 << 60, "1024 PiB"),
        ],
    )
    def test_sizes_have_the_largest_unit_that_leaves_768_or_more(self, size: int, shown: str) -> None:
        assert _summary._size(size, size).strip() == shown.strip()
        assert len(_summary._size(size, size)) == 10

    @pytest.mark.parametrize(
        ("count", "shown"),
        [(0, "0"), (749_999, "749999"), (750_000, "750 K"), (750_000_000, "750 M"), (10**12, "1000000 M")],
    )
    def test_counts_have_thousands_and_millions(self, count: int, shown: str) -> None:
        assert _summary._count(count, count).strip() == shown
        assert len(_summary._count(count, count)) == 10
