"""The options of the allocator: how they are spelt, what they say, and what they change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda import _ledger
from tcuda._alloc_conf import AllocConf, from_environment, parse
from tcuda._errors import AllocatorSettingsError
from tcuda.memory import _set_allocator_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from support.fixture_types import Changes, HoldAtMost

    AllocSettings = Callable[[str], AbstractContextManager[None]]

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
OPTIONS = (
    "backend, expandable_segments, garbage_collection_threshold, graph_capture_record_stream_reuse, "
    "max_non_split_rounding_mb, max_split_size_mb, per_process_memory_fraction, pinned_num_register_threads, "
    "pinned_reserve_segment_size_mb, pinned_use_background_threads, pinned_use_cuda_host_register, "
    "release_lock_on_cudamalloc, roundup_power2_divisions, throw_on_cudamalloc_oom"
)

FLAGS = (
    "graph_capture_record_stream_reuse",
    "pinned_use_background_threads",
    "pinned_use_cuda_host_register",
    "release_lock_on_cudamalloc",
    "throw_on_cudamalloc_oom",
)
NUMBERS = (
    "9" * 20,
    "9" * 5000,
    "-" + "9" * 20,
    "inf",
    "nan",
    "1e400",
    "\N{SUPERSCRIPT TWO}",
    "\u0662",
    "\uff12",
    "1_0",
    "0x40",
)
"""What no option can be: too large, no number, or digits that are not ASCII's."""


class TestReading:
    def test_nothing_is_the_defaults(self) -> None:
        assert parse("") == AllocConf()
        assert AllocConf() == AllocConf(
            text="",
            backend=None,
            max_split_size=-1,
            max_non_split_rounding=20 * MIB,
            garbage_collection_threshold=0.0,
            expandable_segments=True,
            roundup_power2_divisions=[0] * 16,
            memory_fraction=None,
        )

    @pytest.mark.parametrize(
        ("text", "name", "value"),
        [
            ("backend:native", "backend", "native"),
            ("backend:cupy", "backend", "cupy"),
            ("backend:cudaMallocAsync", "backend", "cudaMallocAsync"),
            ("expandable_segments:True", "expandable_segments", True),
            ("expandable_segments:False", "expandable_segments", False),
            ("garbage_collection_threshold:0.8", "garbage_collection_threshold", 0.8),
            ("garbage_collection_threshold:1", "garbage_collection_threshold", 1.0),
            ("max_non_split_rounding_mb:20", "max_non_split_rounding", 20 * MIB),
            ("max_non_split_rounding_mb:64", "max_non_split_rounding", 64 * MIB),
            ("max_split_size_mb:21", "max_split_size", 21 * MIB),
            ("max_split_size_mb:512", "max_split_size", 512 * MIB),
            ("per_process_memory_fraction:0.5", "memory_fraction", 0.5),
            ("per_process_memory_fraction:1.0", "memory_fraction", 1.0),
        ],
    )
    def test_each_option_changes_one_thing(self, text: str, name: str, value: object) -> None:
        assert parse(text) == AllocConf()._replace(text=text, **{name: value})

    def test_options_come_together_in_any_order_with_spaces_and_the_last_one_counts(self) -> None:
        text = " max_split_size_mb : 100 ,expandable_segments:False,, backend: cupy,max_split_size_mb:200, "
        expected = AllocConf(text=text, max_split_size=200 * MIB, expandable_segments=False, backend="cupy")
        assert parse(text) == expected

    @pytest.mark.parametrize(
        "text",
        [
            "graph_capture_record_stream_reuse:True",
            "pinned_num_register_threads:8",
            "pinned_reserve_segment_size_mb:512",
            "pinned_use_background_threads:True",
            "pinned_use_cuda_host_register:True",
            "release_lock_on_cudamalloc:True",
            "throw_on_cudamalloc_oom:False",
        ],
    )
    def test_options_of_torch_that_have_no_effect_are_taken(self, text: str) -> None:
        assert parse(text) == AllocConf()._replace(text=text)


class TestDivisions:
    """``roundup_power2_divisions``: for sizes up to 1 MiB, 2 MiB, ... 32 GiB and more."""

    def test_a_number_is_for_all_sizes(self) -> None:
        assert parse("roundup_power2_divisions:4").roundup_power2_divisions == [4] * 16

    def test_the_list_of_torchs_documentation(self) -> None:
        divisions = parse("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]").roundup_power2_divisions
        assert divisions == [1] * 8 + [2] + [4] + [8] * 6
        assert len(divisions) == 16

    @pytest.mark.parametrize(
        ("text", "divisions"),
        [
            ("[>:8]", [8] * 16),
            ("[1:2,>:4]", [4] * 16),
            ("[2:2]", [2] + [0] * 15),
            ("[64:1,128:2]", [1] * 6 + [2] + [0] * 9),
            ("[ 256 : 1 , > : 8 ]", [1] * 8 + [8] * 8),
            ("[65536:2]", [2] * 16),
            ("[256:0,>:4]", [0] * 8 + [4] * 8),
            ("[256:4,>:0]", [4] * 8 + [0] * 8),
            ("[1048576:2,>:4]", [2] * 16),
        ],
    )
    def test_lists_say_up_to_which_size(self, text: str, divisions: list[int]) -> None:
        assert parse(f"roundup_power2_divisions:{text}").roundup_power2_divisions == divisions

    def test_other_options_may_be_before_and_after_a_list(self) -> None:
        conf = parse("max_split_size_mb:100,roundup_power2_divisions:[256:1,>:8],expandable_segments:False")
        assert conf.roundup_power2_divisions == [1] * 8 + [8] * 8
        assert (conf.max_split_size, conf.expandable_segments) == (100 * MIB, False)


class TestMessages:
    def test_an_option_that_there_is_not(self) -> None:
        with pytest.raises(ValueError, match="PYTORCH_ALLOC_CONF") as raised:
            parse("max_split_size:100", "PYTORCH_ALLOC_CONF")
        assert str(raised.value) == (
            f"PYTORCH_ALLOC_CONF: there is no option 'max_split_size' (in 'max_split_size:100'). The options are: "
            f"{OPTIONS}."
        )

    @pytest.mark.parametrize("text", [":5", "nonsense", "max_split_size_mb:100,nonsense:1", "[a:b]", "Backend:native"])
    def test_what_is_no_option_lists_those_that_there_are(self, text: str) -> None:
        with pytest.raises(ValueError, match=f"there is no option .* The options are: {OPTIONS}.$"):
            parse(text)

    @pytest.mark.parametrize(
        ("name", "values", "allowed"),
        [
            ("backend", ["", "cuda", "Native"], "'native' or 'cupy' or 'cudaMallocAsync'"),
            ("expandable_segments", ["", "true", "1", "yes"], "True or False"),
            (
                "garbage_collection_threshold",
                ["", "0", "0.0", "1.01", "-0.5", "half", "nan", "inf"],
                "a number above 0 and up to 1",
            ),
            ("per_process_memory_fraction", ["", "0", "2", "all"], "a number above 0 and up to 1"),
            (
                "max_split_size_mb",
                ["", "20", "0", "-1", "21.5", "100MB", "8796093022208", *NUMBERS],
                "a whole number of MiB from 21 to 8796093022207",
            ),
            (
                "max_non_split_rounding_mb",
                ["", "19", "-20", "20.0", "8796093022208", *NUMBERS],
                "a whole number of MiB from 20 to 8796093022207",
            ),
            (
                "roundup_power2_divisions",
                [
                    *[
                        "",
                        "3",
                        "0",
                        "-4",
                        "4.0",
                        "[",
                        "[]",
                        "[256]",
                        "[256:3]",
                        "[300:1]",
                        "[256:1,>]",
                        "[<:4]",
                        "[256:1",
                    ],
                    *["8589934592", "+4", "[+4:2]", "[4:\u0662]", "[[4:2]", "[4:2,]", f"[{10**20}:2]", *NUMBERS],
                    *(f"[{number}:2]" for number in NUMBERS),
                    *(f"[256:{number}]" for number in NUMBERS),
                ],
                "a power of two up to 4294967296 such as 4, or a list of them, or 0 for none, by size in MiB such as "
                "[256:0,512:2,>:4]",
            ),
            *((name, ["", "true", "0", *NUMBERS], "True or False") for name in (*FLAGS, "expandable_segments")),
            ("pinned_num_register_threads", ["", "0", "3", "256", "-1", *NUMBERS], "a power of two from 1 to 128"),
            (
                "pinned_reserve_segment_size_mb",
                ["", "0", "-1", "1.5", *NUMBERS],
                "a whole number of MiB from 1 to 8796093022207",
            ),
            ("garbage_collection_threshold", NUMBERS, "a number above 0 and up to 1"),
            ("per_process_memory_fraction", NUMBERS, "a number above 0 and up to 1"),
        ],
    )
    def test_a_value_that_an_option_cannot_have_says_what_it_can_be(
        self, name: str, values: list[str], allowed: str
    ) -> None:
        for value in values:
            with pytest.raises(AllocatorSettingsError, match="it can be") as raised:
                parse(f"max_split_size_mb:100,{name}:{value}", "Here")
            shown = value.strip() if len(value) < 300 else f"{value[:200]}..."
            assert str(raised.value) == f"Here: {name} is {shown!r}; it can be {allowed}."

    def test_the_largest_numbers_reach_the_core_as_they_are(self) -> None:
        for text, name, value in (
            ("max_split_size_mb:8796093022207", "max_split_size", (1 << 63) - MIB),
            ("max_non_split_rounding_mb:0008796093022207", "max_non_split_rounding", (1 << 63) - MIB),
            ("roundup_power2_divisions:4294967296", "roundup_power2_divisions", [1 << 32] * 16),
        ):
            assert getattr(parse(text).settings(), name) == value

    def test_the_messages_for_long_texts_are_short(self) -> None:
        for text in (
            "a" * 100_000,
            "roundup_power2_divisions:[" + "1:3," * 100_000 + "]",
            "max_split_size_mb:" + "9" * 10**6,
        ):
            with pytest.raises(AllocatorSettingsError) as raised:
                parse(text)
            assert len(str(raised.value)) < 1200

    def test_a_very_long_list_is_read(self) -> None:
        conf = parse("roundup_power2_divisions:[" + "1:2," * 100_000 + ">:4]")
        assert conf.roundup_power2_divisions == [4] * 16

    def test_errors_are_those_of_torch_and_of_wrong_values(self) -> None:
        assert issubclass(AllocatorSettingsError, ValueError)
        assert issubclass(AllocatorSettingsError, RuntimeError)

    def test_an_option_without_a_value(self) -> None:
        with pytest.raises(ValueError, match="^The allocator's settings: backend is ''; it can be 'native' or"):
            parse("backend")


class TestVariables:
    def test_tcudas_own_comes_first_and_torchs_newer_name_before_its_older_one(self) -> None:
        environment = {
            "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:30",
            "PYTORCH_ALLOC_CONF": "max_split_size_mb:40",
            "TCUDA_ALLOC_CONF": "max_split_size_mb:50",
        }
        read = []
        while environment:
            read.append(from_environment(environment).max_split_size // MIB)
            environment.popitem()
        assert read == [50, 40, 30]
        assert from_environment({}) == AllocConf()

    def test_the_first_one_stands_alone_even_if_it_is_empty(self) -> None:
        environment = {"TCUDA_ALLOC_CONF": "", "PYTORCH_ALLOC_CONF": "max_split_size_mb:40"}
        assert from_environment(environment) == AllocConf()
        environment["TCUDA_ALLOC_CONF"] = "expandable_segments:False"
        assert from_environment(environment).max_split_size == -1

    def test_messages_name_the_variable(self) -> None:
        for name in ("TCUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
            with pytest.raises(ValueError, match=f"^{name}: there is no option 'a'"):
                from_environment({name: "a:b"})


def fractions() -> set[float]:
    """Return the shares of memory that the devices may hold."""
    return {tcuda.get_per_process_memory_fraction(device) for device in range(tcuda.device_count())}


@pytest.mark.usefixtures("allocator_as_found")
class TestChanging:
    """Settings that change while the program runs."""

    @pytest.fixture
    def xp(self, runtime: Any) -> Any:
        return tcuda.xp

    @pytest.fixture
    def size_of(self, xp: Any, changes: Changes) -> Callable[[int], int]:
        """Return what an array of so many bytes takes up."""

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
            ("[32:1,>:8]", {17 * MIB: 17 * MIB, 33 * MIB: 36 * MIB}),
        ],
    )
    def test_sizes_are_rounded_otherwise_from_then_on(
        self, alloc_settings: AllocSettings, size_of: Callable[[int], int], divisions: str, sizes: dict[int, int]
    ) -> None:
        with alloc_settings(f"roundup_power2_divisions:{divisions}"):
            assert {requested: size_of(requested) for requested in sizes} == sizes
        assert size_of(1200 * KIB) == 1200 * KIB

    def test_what_is_allocated_already_stays_as_it_is(
        self, alloc_settings: AllocSettings, xp: Any, changes: Changes
    ) -> None:
        kept = xp.empty(1200 * KIB, "B")
        with alloc_settings("roundup_power2_divisions:4"), changes() as changed:
            del kept
        assert changed["allocated_bytes.all.current"] == -1200 * KIB

    def test_segments_need_not_grow(self, alloc_settings: AllocSettings, xp: Any) -> None:
        with alloc_settings("expandable_segments:False"), tcuda.use_mem_pool(tcuda.MemPool()):
            kept = [xp.empty(1000), xp.empty(3 * MIB, "B"), xp.empty(29 * MIB, "B")]
            segments = tcuda.memory_snapshot()
            new = [segment for segment in segments if segment["segment_pool_id"] != (0, 0)]
            assert sorted(segment["total_size"] // MIB for segment in new) == [2, 20, 30]
            assert not any(segment["is_expandable"] for segment in new)
        del kept

    def test_large_blocks_are_kept_whole(self, alloc_settings: AllocSettings, xp: Any) -> None:
        with alloc_settings("expandable_segments:False,max_split_size_mb:30,max_non_split_rounding_mb:20"):
            assert tcuda.memory_stats()["max_split_size"] == 30 * MIB
            with tcuda.use_mem_pool(tcuda.MemPool()):
                address = xp.empty(60 * MIB, "B").data.ptr
                assert xp.empty(20 * MIB, "B").data.ptr != address  # would split it
                assert xp.empty(32 * MIB, "B").data.ptr != address  # would waste more than 20 MiB of it
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

    def test_arrays_just_below_the_limit_for_splitting_get_memory(self, alloc_settings: AllocSettings, xp: Any) -> None:
        with alloc_settings("expandable_segments:False,max_split_size_mb:30"):
            assert xp.empty(29 * MIB, "B").nbytes == 29 * MIB  # in a segment of 30 MiB

    def test_old_memory_is_given_back_above_a_threshold(
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
                        tcuda._sleep(100_000_000)  # what is in use is not given back for less memory's sake alone
                    with changes() as changed:
                        kept = xp.empty(60 * MIB, "B")
                    assert ("reserved_bytes.all.freed" in changed) == collected
                    assert tcuda.memory_reserved() <= limit
                    del kept
                    side.synchronize()
            tcuda.empty_cache()

    def test_the_memory_fraction_is_set_and_goes_back(self, alloc_settings: AllocSettings) -> None:
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
                tcuda.set_per_process_memory_fraction(0.25)  # from now on the program's
            assert tcuda.get_per_process_memory_fraction() == 0.25
            others = range(1, tcuda.device_count())
            assert {tcuda.get_per_process_memory_fraction(device) for device in others} <= {1.0}
        finally:
            tcuda.set_per_process_memory_fraction(1.0)

    def test_options_that_are_not_named_go_back_to_their_defaults(self, alloc_settings: AllocSettings) -> None:
        with alloc_settings("max_split_size_mb:30"):
            _set_allocator_settings("expandable_segments:True")
            assert _ledger.conf().max_split_size == -1
            assert tcuda.memory_stats()["max_split_size"] == -1

    def test_a_snapshot_has_them(self, alloc_settings: AllocSettings) -> None:
        text = "max_split_size_mb:30,garbage_collection_threshold:0.5,roundup_power2_divisions:[2:4]"
        with alloc_settings(text):
            settings = tcuda.memory._snapshot()["allocator_settings"]
        assert settings["PYTORCH_CUDA_ALLOC_CONF"] == text
        assert (settings["max_split_size"], settings["garbage_collection_threshold"]) == (30 * MIB, 0.5)
        assert settings["roundup_power2_divisions"]["1"] == 4
        assert settings["roundup_power2_divisions"]["2"] == 0

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
    def test_what_is_wrong_changes_nothing(self, alloc_settings: AllocSettings, wrong: str) -> None:
        with alloc_settings("max_split_size_mb:40,per_process_memory_fraction:0.5"):
            before = _ledger.conf()
            with pytest.raises(AllocatorSettingsError):
                _set_allocator_settings(f"max_split_size_mb:30,per_process_memory_fraction:0.25,{wrong}")
            assert _ledger.conf() is before
            assert tcuda.memory._snapshot()["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"] == before.text
            assert tcuda.memory_stats()["max_split_size"] == 40 * MIB
            assert fractions() == {0.5}

    @pytest.mark.parametrize("env", [None, 5, b"max_split_size_mb:30", ["backend:native"]])
    def test_what_is_no_text_is_a_type_error(self, runtime: Any, env: Any) -> None:
        before = _ledger.conf()
        with pytest.raises(TypeError, match="^Expected the allocator's settings as a str such as"):
            _set_allocator_settings(env)
        assert _ledger.conf() is before

    def test_the_backend_is_settled(self, runtime: Any) -> None:
        before = _ledger.conf()
        with pytest.raises(ValueError, match="backend") as raised:
            _set_allocator_settings("backend:cupy")
        assert str(raised.value) == (
            "The backend is 'native', and cannot become 'cupy' any more: it is settled when tcuda is initialised. Set "
            "TCUDA_ALLOC_CONF before that."
        )
        assert _ledger.conf() is before
        assert tcuda.get_allocator_backend() == "native"


def test_before_initialisation_the_backend_can_be_set_too(output_of: Any) -> None:
    program = """
import tcuda
tcuda.memory._set_allocator_settings("backend:cupy,roundup_power2_divisions:4")
print(tcuda.is_initialized(), tcuda.get_allocator_backend())
x = tcuda.xp.empty(1000, "B")
print(tcuda.get_allocator_backend(), len(tcuda.memory_snapshot()))
"""
    assert output_of(program).splitlines() == ["False cupy", "cupy 1"]


@pytest.mark.parametrize("backend", ["cupy", "cudaMallocAsync"])
def test_settings_that_do_not_name_the_backend_leave_it(output_of: Any, backend: str) -> None:
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


@pytest.mark.parametrize("variable", ["TCUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"])
def test_a_bad_value_in_a_variable_is_an_error_of_both_types_at_every_use(output_of: Any, variable: str) -> None:
    program = """
import tcuda
for use in (tcuda.get_allocator_backend, tcuda.init, lambda: tcuda.xp.ones(5), tcuda.memory._snapshot):
    for kind in (RuntimeError, ValueError):
        try:
            use()
        except kind as error:
            print(str(error).partition(";")[0])
"""
    names = ("TCUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
    lines = output_of(program, **(dict.fromkeys(names) | {variable: "max_split_size_mb:5"})).splitlines()
    assert lines == [f"{variable}: max_split_size_mb is '5'"] * 8
