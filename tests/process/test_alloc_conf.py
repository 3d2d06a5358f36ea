"""The options of the allocator: their spelling, their values, their variables, and the messages about mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.sizes import MIB
from tcuda._base.errors import AllocatorSettingsError
from tcuda._process.alloc_conf import AllocConf, from_environment, parse

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    AllocSettings = Callable[[str], AbstractContextManager[None]]

OPTIONS = (
    "backend, expandable_segments, garbage_collection_threshold, graph_capture_record_stream_reuse, "
    "large_segment_size_mb, max_non_split_rounding_mb, max_split_size_mb, per_process_memory_fraction, "
    "pinned_free_catch_all, pinned_max_cached_size_mb, pinned_max_round_threshold_mb, pinned_num_register_threads, "
    "pinned_reserve_segment_size_mb, pinned_use_background_threads, pinned_use_cuda_host_register, "
    "release_lock_on_cudamalloc, roundup_power2_divisions, throw_on_cudamalloc_oom, trim"
)

FLAGS = (
    "graph_capture_record_stream_reuse",
    "pinned_free_catch_all",
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
"""Texts that no option accepts as a number: too large, not a number, or digits outside of ASCII."""


class TestReading:
    def test_an_empty_text_gives_the_defaults(self) -> None:
        assert parse("") == AllocConf()
        assert AllocConf() == AllocConf(
            text="",
            backend=None,
            max_split_size=-1,
            max_non_split_rounding=20 * MIB,
            garbage_collection_threshold=0.0,
            expandable_segments=True,
            trim_always=False,
            rejects_beyond_limit=False,
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
            ("garbage_collection_threshold:.999", "garbage_collection_threshold", 0.999),
            ("garbage_collection_threshold:1e-3", "garbage_collection_threshold", 0.001),
            ("max_non_split_rounding_mb:20", "max_non_split_rounding", 20 * MIB),
            ("max_non_split_rounding_mb:64", "max_non_split_rounding", 64 * MIB),
            ("max_split_size_mb:20", "max_split_size", 20 * MIB),
            ("max_split_size_mb:512", "max_split_size", 512 * MIB),
            ("max_split_size_mb:1 0\t0", "max_split_size", 100 * MIB),
            ("max_split_size_mb:18446744073709551615", "max_split_size", (1 << 63) - MIB),
            ("per_process_memory_fraction:0.0", "memory_fraction", 0.0),
            ("per_process_memory_fraction:0", "memory_fraction", 0.0),
            ("per_process_memory_fraction:0.5", "memory_fraction", 0.5),
            ("per_process_memory_fraction:1.0", "memory_fraction", 1.0),
            ("pinned_num_register_threads:8", "pinned_threads", 8),
            ("pinned_reserve_segment_size_mb:512", "pinned_reserve", 512 * MIB),
            ("pinned_use_background_threads:True", "pinned_background", True),
            ("pinned_use_cuda_host_register:True", "pinned_use_register", True),
            ("throw_on_cudamalloc_oom:True", "rejects_beyond_limit", True),
            ("throw_on_cudamalloc_oom:False", "rejects_beyond_limit", False),
            ("trim:always", "trim_always", True),
            ("trim:needed", "trim_always", False),
        ],
    )
    def test_each_option_changes_one_thing(self, text: str, name: str, value: object) -> None:
        assert parse(text) == AllocConf()._replace(text=text, **{name: value})

    def test_options_may_be_in_any_order_with_spaces_and_the_last_value_counts(self) -> None:
        text = " max_split_size_mb : 100 ,expandable_segments:False,, backend: native,max_split_size_mb:200, "
        expected = AllocConf(text=text, max_split_size=200 * MIB, expandable_segments=False, backend="native")
        assert parse(text) == expected

    @pytest.mark.parametrize(
        "text",
        [
            "graph_capture_record_stream_reuse:True",
            "large_segment_size_mb:11",
            "pinned_free_catch_all:True",
            "pinned_max_cached_size_mb:0",
            "pinned_max_round_threshold_mb:3",
            "release_lock_on_cudamalloc:True",
        ],
    )
    def test_options_of_torch_without_an_effect_are_accepted(self, text: str) -> None:
        assert parse(text) == AllocConf()._replace(text=text)


class TestDivisions:
    """``roundup_power2_divisions``: for sizes below 2 MiB, from 2 MiB, from 4 MiB, ... and from 32 GiB.

    The lists are those that the allocator of torch 2.14 reads from these texts.
    """

    def test_a_number_is_for_all_sizes(self) -> None:
        assert parse("roundup_power2_divisions:4").roundup_power2_divisions == [4] * 16

    def test_the_list_of_torchs_documentation(self) -> None:
        divisions = parse("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]").roundup_power2_divisions
        assert divisions == [1] * 9 + [2] + [4] + [8] * 5
        assert len(divisions) == 16

    @pytest.mark.parametrize(
        ("text", "divisions"),
        [
            ("[64:8,128:2,256:2,512:2,1024:1,>:1]", [8] * 7 + [2] * 3 + [1] * 6),
            ("[>:8]", [0] + [8] * 15),
            ("[1:2,>:4]", [2] + [4] * 15),
            ("[2:2]", [2] * 2 + [0] * 14),
            ("[64:1,128:2]", [1] * 7 + [2] + [0] * 8),
            ("[64:8,256:2]", [8] * 7 + [0, 2] + [0] * 7),  # nothing is between the entries
            ("[64:8,64:2]", [8] * 6 + [2] + [0] * 9),
            ("[128:2,64:8]", [2] * 6 + [8, 2] + [0] * 8),
            ("[128:2,64:8,>:4]", [2] * 6 + [8] + [4] * 9),
            ("[>:4,64:8]", [8] * 7 + [4] * 9),
            ("[64:8,>:4,256:2]", [8] * 7 + [4, 2] + [4] * 7),
            ("[ 256 : 1 , > : 8 ]", [1] * 9 + [8] * 7),
            ("[32768:2]", [2] * 16),
            ("[65536:2]", [2] * 16),
            ("[256:0,>:4]", [0] * 9 + [4] * 7),
            ("[256:4,>:0]", [4] * 9 + [0] * 7),
            ("[1048576:2,>:4]", [2] * 16),
            (f"[{1 << 63}:2]", [2] * 16),
            ("[4:2,]", [2] * 3 + [0] * 13),
            ("[]", [0] * 16),
            ("1", [1] * 16),
            (str(1 << 63), [1 << 32] * 16),  # more divisions would change nothing
        ],
    )
    def test_a_list_sets_divisions_by_size(self, text: str, divisions: list[int]) -> None:
        assert parse(f"roundup_power2_divisions:{text}").roundup_power2_divisions == divisions

    def test_other_options_may_be_before_and_after_a_list(self) -> None:
        conf = parse("max_split_size_mb:100,roundup_power2_divisions:[256:1,>:8],expandable_segments:False")
        assert conf.roundup_power2_divisions == [1] * 9 + [8] * 7
        assert (conf.max_split_size, conf.expandable_segments) == (100 * MIB, False)


class TestMessages:
    def test_an_unknown_option_is_refused(self) -> None:
        with pytest.raises(ValueError, match="PYTORCH_ALLOC_CONF") as raised:
            parse("max_split_size:100", "PYTORCH_ALLOC_CONF")
        assert str(raised.value) == (
            f"PYTORCH_ALLOC_CONF: there is no option 'max_split_size' (in 'max_split_size:100'). The options are: "
            f"{OPTIONS}."
        )

    @pytest.mark.parametrize("text", [":5", "nonsense", "max_split_size_mb:100,nonsense:1", "[a:b]", "Backend:native"])
    def test_the_message_for_an_unknown_option_lists_the_options(self, text: str) -> None:
        with pytest.raises(ValueError, match=f"there is no option .* The options are: {OPTIONS}.$"):
            parse(text)

    @pytest.mark.parametrize(
        ("name", "values", "allowed"),
        [
            ("backend", ["", "cuda", "Native"], "'native' or 'cupy' or 'cudaMallocAsync'"),
            ("expandable_segments", ["", "true", "1", "yes"], "True or False"),
            ("trim", ["", "True", "never", "Always"], "'always' or 'needed'"),
            (
                "garbage_collection_threshold",
                ["", "0", "0.0", "1", "1.0", "1.01", "-0.5", "half", "nan", "inf"],
                "a number above 0 and below 1",
            ),
            ("per_process_memory_fraction", ["", "-0.1", "1.01", "2", "all"], "a number from 0 to 1"),
            (
                "max_split_size_mb",
                ["", "19", "0", "-1", "21.5", "100MB", "18446744073709551616", *NUMBERS],
                "a whole number of MiB from 20 on, below 2**64",
            ),
            (
                "max_non_split_rounding_mb",
                ["", "19", "-20", "20.0", "18446744073709551616", *NUMBERS],
                "a whole number of MiB from 20 on, below 2**64",
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
                        "[,]",
                        "[4:2,,]",
                        "[256]",
                        "[256:3]",
                        "[300:1]",
                        "[256:1,>]",
                        "[<:4]",
                        "[256:1",
                    ],
                    *["+4", "[+4:2]", "[4:\u0662]", "[[4:2]", "[0:4]", "[64:8256:2]", f"[{10**20}:2]", *NUMBERS],
                    *[str(1 << 64), f"[{1 << 64}:2]", f"[4:{1 << 64}]"],
                    *(f"[{number}:2]" for number in NUMBERS),
                    *(f"[256:{number}]" for number in NUMBERS),
                ],
                "a power of two such as 4, or a list of them, or 0 for none, by size in MiB such as [256:0,512:2,>:4]",
            ),
            *((name, ["", "true", "0", *NUMBERS], "True or False") for name in (*FLAGS, "expandable_segments")),
            ("pinned_num_register_threads", ["", "0", "3", "256", "-1", *NUMBERS], "a power of two from 1 to 128"),
            (
                "pinned_reserve_segment_size_mb",
                ["", "0", "-1", "1.5", *NUMBERS],
                "a whole number of MiB from 1 on, below 2**64",
            ),
            ("large_segment_size_mb", ["", "10", *NUMBERS], "a whole number of MiB from 11 on, below 2**64"),
            *(
                (name, ["", "-1", "x", *NUMBERS], "a whole number of MiB from 0 on, below 2**64")
                for name in ("pinned_max_cached_size_mb", "pinned_max_round_threshold_mb")
            ),
            ("garbage_collection_threshold", NUMBERS, "a number above 0 and below 1"),
            ("per_process_memory_fraction", NUMBERS, "a number from 0 to 1"),
        ],
    )
    def test_the_message_for_an_invalid_value_says_what_is_allowed(
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
        assert conf.roundup_power2_divisions == [2] + [4] * 15

    def test_the_error_is_a_value_error_and_a_runtime_error(self) -> None:
        assert issubclass(AllocatorSettingsError, ValueError)
        assert issubclass(AllocatorSettingsError, RuntimeError)

    def test_an_option_without_a_value_is_refused(self) -> None:
        with pytest.raises(ValueError, match="^The allocator's settings: backend is ''; it can be 'native' or"):
            parse("backend")


class TestBackends:
    """A backend other than ``native`` ignores the options of the caching allocator, as in torch, and says so."""

    @pytest.mark.parametrize("backend", ["cudaMallocAsync", "cupy"])
    def test_ignored_options_are_named_in_a_warning(self, backend: str) -> None:
        text = f"max_split_size_mb:20,backend:{backend},roundup_power2_divisions:4,max_split_size_mb:30"
        with pytest.warns(UserWarning, match="ignores") as warned:
            conf = parse(text, "Here")
        assert str(warned[0].message) == (
            f"Here: backend:{backend} ignores max_split_size_mb, roundup_power2_divisions. Only backend:native has "
            "free memory of its own."
        )
        assert (conf.backend, conf.max_split_size) == (backend, 30 * MIB)

    @pytest.mark.parametrize(
        "text",
        [
            "backend:native,max_split_size_mb:20",
            "max_split_size_mb:20",
            "backend:cudaMallocAsync",
            "backend:cudaMallocAsync,per_process_memory_fraction:0.5,pinned_use_cuda_host_register:True",
        ],
    )
    def test_options_that_take_effect_do_not_warn(self, text: str) -> None:
        parse(text)

    def test_a_bad_value_of_an_ignored_option_is_refused(self) -> None:
        with pytest.raises(AllocatorSettingsError, match="max_split_size_mb is '19'"):
            parse("backend:cudaMallocAsync,max_split_size_mb:19")


class TestVariables:
    def test_tcudas_variable_comes_before_torchs_old_and_new_variable(self) -> None:
        environment = {
            "PYTORCH_ALLOC_CONF": "max_split_size_mb:30",
            "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:40",
            "TCUDA_ALLOC_CONF": "max_split_size_mb:50",
        }
        read = []
        while environment:
            read.append(from_environment(environment).max_split_size // MIB)
            environment.popitem()
        assert read == [50, 40, 30]
        assert from_environment({}) == AllocConf()

    def test_only_the_first_variable_is_read_even_if_it_is_empty(self) -> None:
        environment = {"TCUDA_ALLOC_CONF": "", "PYTORCH_ALLOC_CONF": "max_split_size_mb:40"}
        assert from_environment(environment) == AllocConf()
        environment["TCUDA_ALLOC_CONF"] = "expandable_segments:False"
        assert from_environment(environment).max_split_size == -1

    def test_messages_name_the_variable(self) -> None:
        for name in ("TCUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
            with pytest.raises(ValueError, match=f"^{name}: there is no option 'a'"):
                from_environment({name: "a:b"})


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
