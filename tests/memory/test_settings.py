"""The settings of the allocator that change while a program runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.busy_streams import LONG
from support.sizes import KIB, MIB
from tcuda._base.errors import AllocatorSettingsError
from tcuda._process import ledger
from tcuda.memory import _set_allocator_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from support.fixture_types import Changes, HoldAtMost

    AllocSettings = Callable[[str], AbstractContextManager[None]]


def fractions() -> set[float]:
    """Return the memory fractions of all devices."""
    return {tcuda.get_per_process_memory_fraction(device) for device in range(tcuda.device_count())}


@pytest.mark.usefixtures("allocator_as_found")
class TestChanging:
    """Settings that change while the program runs."""

    @pytest.fixture
    def size_of(self, xp: Any, changes: Changes) -> Callable[[int], int]:
        """A function that returns the allocated bytes of an array of ``requested`` bytes."""

        def measured(requested: int) -> int:
            with changes() as changed:
                kept = xp.empty(requested, "B")
            del kept
            return changed["allocated_bytes.all.current"]

        return measured

    @pytest.mark.parametrize(
        ("divisions", "sizes"),
        [
            ("4", {1: 512, 700: 1024, 1200 * KIB: 1280 * KIB, 1280 * KIB: 1280 * KIB, 1281 * KIB: 1536 * KIB}),
            ("1", {1200 * KIB: 1200 * KIB}),
            ("2", {1200 * KIB: 1536 * KIB, 1537 * KIB: 2048 * KIB, 3 * KIB: 3 * KIB, 5 * KIB: 6 * KIB}),
            ("8", {33 * MIB: 36 * MIB}),
            ("[16:1,>:8]", {17 * MIB: 17 * MIB, 33 * MIB: 36 * MIB}),
            ("[64:8,128:2,256:2,512:2,1024:1,>:1]", {65 * MIB: 72 * MIB, 84 * MIB: 88 * MIB, 129 * MIB: 192 * MIB}),
        ],
    )
    def test_new_sizes_are_rounded_by_the_new_settings(
        self, alloc_settings: AllocSettings, size_of: Callable[[int], int], divisions: str, sizes: dict[int, int]
    ) -> None:
        with alloc_settings(f"roundup_power2_divisions:{divisions}"):
            assert {requested: size_of(requested) for requested in sizes} == sizes
        assert size_of(1200 * KIB) == 1200 * KIB

    def test_allocated_blocks_keep_their_size(self, alloc_settings: AllocSettings, xp: Any, changes: Changes) -> None:
        kept = xp.empty(1200 * KIB, "B")
        with alloc_settings("roundup_power2_divisions:4"), changes() as changed:
            del kept
        assert changed["allocated_bytes.all.current"] == -1200 * KIB

    def test_without_expandable_segments_segments_have_fixed_sizes(
        self, alloc_settings: AllocSettings, xp: Any
    ) -> None:
        with alloc_settings("expandable_segments:False"), tcuda.use_mem_pool(tcuda.MemPool()):
            kept = [xp.empty(1000), xp.empty(3 * MIB, "B"), xp.empty(29 * MIB, "B")]
            segments = tcuda.memory_snapshot()
            new = [segment for segment in segments if segment["segment_pool_id"] != (0, 0)]
            assert sorted(segment["total_size"] // MIB for segment in new) == [2, 20, 30]
            assert not any(segment["is_expandable"] for segment in new)
        del kept

    def test_blocks_above_max_split_size_are_not_split(self, alloc_settings: AllocSettings, xp: Any) -> None:
        with alloc_settings("expandable_segments:False,max_split_size_mb:30,max_non_split_rounding_mb:20"):
            assert tcuda.memory_stats()["max_split_size"] == 30 * MIB
            with tcuda.use_mem_pool(tcuda.MemPool()):
                address = xp.empty(60 * MIB, "B").data.ptr
                assert xp.empty(20 * MIB, "B").data.ptr != address  # would split the block
                assert xp.empty(32 * MIB, "B").data.ptr != address  # would leave more than 20 MiB unused
                assert xp.empty(50 * MIB, "B").data.ptr == address
        assert tcuda.memory_stats()["max_split_size"] == -1

    def test_large_arrays_are_counted_as_oversize(
        self, alloc_settings: AllocSettings, xp: Any, changes: Changes
    ) -> None:
        with alloc_settings("expandable_segments:False,max_split_size_mb:30"):
            with changes() as changed:
                kept = xp.empty(20 * MIB, "B")
            assert not [key for key in changed if key.startswith("oversize")]
            with changes() as changed:
                large = xp.empty(40 * MIB, "B")
            assert changed["oversize_allocations.current"] == changed["oversize_segments.current"] == 1
            with changes() as changed:
                del large
                tcuda.empty_cache()
            assert changed["oversize_allocations.freed"] == changed["oversize_segments.freed"] == 1
            assert changed["oversize_allocations.current"] == changed["oversize_segments.current"] == -1
            del kept

    def test_arrays_just_below_max_split_size_get_memory(self, alloc_settings: AllocSettings, xp: Any) -> None:
        with alloc_settings("expandable_segments:False,max_split_size_mb:30"):
            assert xp.empty(29 * MIB, "B").nbytes == 29 * MIB  # the segment has 30 MiB

    def test_free_memory_is_given_back_above_the_garbage_collection_threshold(
        self, alloc_settings: AllocSettings, xp: Any, changes: Changes, hold_at_most: HoldAtMost
    ) -> None:
        settings = "expandable_segments:False"
        for threshold, collected in (("", False), (",garbage_collection_threshold:0.5", True)):
            with hold_at_most(200 * MIB) as limit:
                fraction = tcuda.get_per_process_memory_fraction()
                with alloc_settings(settings + threshold):
                    tcuda.set_per_process_memory_fraction(fraction)
                    side = tcuda.Stream()
                    with tcuda.stream(side):
                        xp.empty(80 * MIB, "B")
                        tcuda._sleep(LONG)  # without a threshold, the memory of a busy stream stays
                    with changes() as changed:
                        kept = xp.empty(60 * MIB, "B")
                    assert ("reserved_bytes.all.freed" in changed) == collected
                    assert tcuda.memory_reserved() <= limit
                    del kept
                    side.synchronize()
            tcuda.empty_cache()

    def test_settings_may_change_what_kind_of_segment_is_made(
        self, alloc_settings: AllocSettings, xp: Any, hold_at_most: HoldAtMost
    ) -> None:
        fixed, growing = (
            "expandable_segments:False,max_split_size_mb:40",
            "expandable_segments:True,max_split_size_mb:40",
        )
        kept = []
        with hold_at_most(120 * MIB):
            fraction = tcuda.get_per_process_memory_fraction()
            for settings in (fixed, growing, fixed):
                with alloc_settings(f"{settings},per_process_memory_fraction:{fraction!r}"):
                    kept.append(xp.ones(40 * MIB, "i1"))
            with alloc_settings(f"{fixed},per_process_memory_fraction:{fraction!r}"):
                with pytest.raises(tcuda.OutOfMemoryError):
                    xp.ones(40 * MIB, "i1")
                kept.clear()
                assert xp.ones(120 * MIB, "i1").nbytes == 120 * MIB  # unused memory of both kinds is given back

    def test_growing_segments_may_be_collected_as_garbage(
        self, alloc_settings: AllocSettings, xp: Any, hold_at_most: HoldAtMost
    ) -> None:
        kept = []
        with hold_at_most(120 * MIB):
            fraction = tcuda.get_per_process_memory_fraction()
            for expandable in (False, True):
                settings = f"expandable_segments:{expandable},garbage_collection_threshold:0.5"
                with alloc_settings(f"{settings},per_process_memory_fraction:{fraction!r}"):
                    kept.append(xp.ones(40 * MIB, "i1"))
            with alloc_settings(f"{settings},per_process_memory_fraction:{fraction!r}"):
                kept.clear()
                assert int(xp.ones(80 * MIB, "i1").sum()) == 80 * MIB

    def test_settings_set_and_reset_the_memory_fraction(self, alloc_settings: AllocSettings) -> None:
        with alloc_settings("per_process_memory_fraction:0.25"):
            assert fractions() == {0.25}
            _set_allocator_settings("per_process_memory_fraction:0.5")
            assert fractions() == {0.5}
            _set_allocator_settings("")
            assert fractions() == {1.0}
            _set_allocator_settings("per_process_memory_fraction:0.75")
        assert fractions() == {1.0}

    def test_a_fraction_that_the_program_has_set_stays_until_settings_name_one(
        self, alloc_settings: AllocSettings
    ) -> None:
        try:
            tcuda.set_per_process_memory_fraction(0.5)
            with alloc_settings("max_split_size_mb:30"):
                assert tcuda.get_per_process_memory_fraction() == 0.5
            assert tcuda.get_per_process_memory_fraction() == 0.5
            with alloc_settings("per_process_memory_fraction:0.25"):
                assert fractions() == {0.25}
                tcuda.set_per_process_memory_fraction(0.25)  # the fraction is now set by the program
            assert tcuda.get_per_process_memory_fraction() == 0.25
            others = range(1, tcuda.device_count())
            assert {tcuda.get_per_process_memory_fraction(device) for device in others} <= {1.0}
        finally:
            tcuda.set_per_process_memory_fraction(1.0)

    def test_options_that_are_not_named_go_back_to_their_defaults(self, alloc_settings: AllocSettings) -> None:
        with alloc_settings("max_split_size_mb:30"):
            _set_allocator_settings("expandable_segments:True")
            assert ledger.conf().max_split_size == -1
            assert tcuda.memory_stats()["max_split_size"] == -1

    def test_a_fraction_of_0_allows_no_more_memory(self, alloc_settings: AllocSettings, xp: Any) -> None:
        with alloc_settings("per_process_memory_fraction:0.0"), pytest.raises(tcuda.OutOfMemoryError):
            xp.empty(1 << 30, "B")

    def test_a_snapshot_has_the_settings(self, alloc_settings: AllocSettings) -> None:
        text = "max_split_size_mb:30,garbage_collection_threshold:0.5,roundup_power2_divisions:[2:4]"
        with alloc_settings(text):
            settings = tcuda.memory._snapshot()["allocator_settings"]
        assert settings["PYTORCH_CUDA_ALLOC_CONF"] == text
        assert (settings["max_split_size"], settings["garbage_collection_threshold"]) == (30 * MIB, 0.5)
        assert settings["roundup_power2_divisions"]["2"] == 4
        assert settings["roundup_power2_divisions"]["4"] == 0

    @pytest.mark.parametrize(
        "wrong",
        [
            "a:b",
            "backend:cupy",
            "max_split_size_mb:" + "9" * 20,
            "max_non_split_rounding_mb:" + "9" * 20,
            "roundup_power2_divisions:" + str(1 << 70),
            "per_process_memory_fraction:1e400",
        ],
    )
    def test_invalid_settings_change_nothing(self, alloc_settings: AllocSettings, wrong: str) -> None:
        with alloc_settings("max_split_size_mb:40,per_process_memory_fraction:0.5"):
            before = ledger.conf()
            with pytest.raises(AllocatorSettingsError):
                _set_allocator_settings(f"pinned_num_register_threads:2,per_process_memory_fraction:0.25,{wrong}")
            assert ledger.conf() is before
            assert tcuda.memory._snapshot()["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"] == before.text
            assert tcuda.memory_stats()["max_split_size"] == 40 * MIB
            assert fractions() == {0.5}

    @pytest.mark.parametrize("env", [None, 5, b"max_split_size_mb:30", ["backend:native"]])
    def test_settings_that_are_no_text_are_a_type_error(self, runtime: Any, env: Any) -> None:
        before = ledger.conf()
        with pytest.raises(TypeError, match="^Expected the allocator's settings as a str such as"):
            _set_allocator_settings(env)
        assert ledger.conf() is before

    def test_the_backend_cannot_change_after_initialisation(self, runtime: Any) -> None:
        before = ledger.conf()
        with pytest.raises(ValueError, match="backend") as raised:
            _set_allocator_settings("backend:cupy")
        assert str(raised.value) == (
            "The backend is 'native', and cannot become 'cupy' any more: it is settled when tcuda is initialised. Set "
            "TCUDA_ALLOC_CONF before that."
        )
        assert ledger.conf() is before
        assert tcuda.get_allocator_backend() == "native"


def test_the_backend_can_be_set_before_initialisation(output_of: Any) -> None:
    program = """
import tcuda
tcuda.memory._set_allocator_settings("backend:cupy,pinned_num_register_threads:4")
print(tcuda.is_initialized(), tcuda.get_allocator_backend())
x = tcuda.xp.empty(1000, "B")
print(tcuda.get_allocator_backend(), len(tcuda.memory_snapshot()))
"""
    assert output_of(program).splitlines() == ["False cupy", "cupy 1"]


@pytest.mark.parametrize("backend", ["cupy", "cudaMallocAsync"])
def test_settings_that_do_not_name_the_backend_keep_it(output_of: Any, backend: str) -> None:
    program = """
import tcuda
tcuda.init()
tcuda.memory._set_allocator_settings("max_split_size_mb:30")
tcuda.memory._set_allocator_settings("")
print(tcuda.get_allocator_backend())
try:
    tcuda.memory._set_allocator_settings("backend:native")
except RuntimeError as error:
    print(error)
"""
    name, message = output_of(program, TCUDA_ALLOC_CONF=f"backend:{backend}").splitlines()
    assert name == backend
    assert message.startswith(f"The backend is {backend!r}, and cannot become 'native' any more")
