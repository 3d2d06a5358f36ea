"""tcuda on a machine without a GPU: calls initialise nothing, and figures are zero or empty, as in torch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from support.devices import WITHOUT_DEVICE

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

FIGURES = [
    "memory_allocated",
    "max_memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
    "memory_cached",
    "max_memory_cached",
]
EMPTY = {
    "memory_stats()": {},
    "memory_stats(0)": {},
    "memory_stats_as_nested_dict()": {},
    "memory_snapshot()": [],
    "get_rng_state_all()": [],
    "list(tcuda.default_generators)": [],
    "len(tcuda.default_generators)": 0,
}
QUIET = [
    "empty_cache()",
    "manual_seed(5)",
    "manual_seed_all(5)",
    "seed()",
    "seed_all()",
    "set_rng_state_all([])",
    "caching_allocator_enable(True)",
    "caching_allocator_enable(False)",
    "caching_allocator_delete(0)",
    "set_stream(None)",
    "set_device(-1)",
]

PROGRAM = """
import json, warnings
import tcuda
warnings.simplefilter("ignore", FutureWarning)
answers = {}
for call in json.loads('''CALLS'''):
    answer = eval(call if call.startswith(("len", "list")) else "tcuda." + call)
    answers[call] = [answer, tcuda.is_initialized()]
print(json.dumps(answers))
"""


def answers_to(calls: list[str], output_of: OutputOf, **environment: str | None) -> dict[str, list[object]]:
    answers: dict[str, list[object]] = json.loads(output_of(PROGRAM.replace("CALLS", json.dumps(calls)), **environment))
    return answers


def test_without_a_device_figures_are_zero_or_empty(output_of: OutputOf) -> None:
    calls = [f"{name}({device})" for name in FIGURES for device in ("", "0", "'cuda:1'")]
    assert answers_to(calls, output_of, **WITHOUT_DEVICE) == {call: [0, False] for call in calls}
    assert answers_to(list(EMPTY), output_of, **WITHOUT_DEVICE) == {call: [EMPTY[call], False] for call in EMPTY}


def test_without_a_device_calls_do_nothing(output_of: OutputOf) -> None:
    assert answers_to(QUIET, output_of, **WITHOUT_DEVICE) == {call: [None, False] for call in QUIET}


def test_before_initialisation_figures_are_zero_and_initialise_nothing(output_of: OutputOf) -> None:
    calls = [f"{name}({device})" for name in FIGURES for device in ("", "0")]
    assert answers_to(calls, output_of) == {call: [0, False] for call in calls}
    calls = ["memory_stats()", "memory_stats_as_nested_dict()"]
    assert answers_to(calls, output_of) == {call: [{}, False] for call in calls}
    assert answers_to(["memory_snapshot()"], output_of) == {"memory_snapshot()": [[], False]}
    quiet = ["empty_cache()", "caching_allocator_enable(True)", "caching_allocator_delete(0)"]
    assert answers_to(quiet, output_of) == {call: [None, False] for call in quiet}


@pytest.mark.parametrize("block", ["caching_allocator_disabled()", "random.fork_rng()", "memory.scope('fft')"])
def test_scopes_do_nothing_without_a_device(output_of: OutputOf, block: str) -> None:
    code = f"import tcuda\nwith tcuda.{block}:\n    print(tcuda.is_initialized())"
    assert output_of(code, **WITHOUT_DEVICE) == "False"


def test_a_default_generator_without_a_device_is_an_error_that_says_so(output_of: OutputOf) -> None:
    code = "import tcuda\ntry: tcuda.default_generators[0]\nexcept IndexError as error: print(error)"
    assert "there is no device" in output_of(code, **WITHOUT_DEVICE)


def test_an_address_cannot_be_freed_before_anything_was_allocated(output_of: OutputOf) -> None:
    code = "import tcuda\ntry: tcuda.caching_allocator_delete(12345)\nexcept RuntimeError as error: print(error)"
    assert output_of(code).startswith("invalid device pointer: 0x3039.")
    assert output_of(code, **WITHOUT_DEVICE).startswith(("No CUDA GPUs are available", "CuPy cannot be imported"))


def test_a_cache_that_was_turned_off_before_initialisation_is_off(output_of: OutputOf) -> None:
    code = (
        "import tcuda\n"
        "tcuda.caching_allocator_enable(False)\n"
        "address = tcuda.caching_allocator_alloc(1000)\n"
        "held = tcuda.memory_reserved()\n"
        "tcuda.caching_allocator_delete(address)\n"
        "print(held > 0, tcuda.memory_reserved())"
    )
    assert output_of(code) == "True 0"


@pytest.mark.wings
def test_generators_exist_once_devices_are_emulated(output_of: OutputOf) -> None:
    code = (
        "import tcuda\n"
        "before = tcuda.get_rng_state_all()\n"
        "tcuda.manual_seed_all(7)\n"
        "tcuda.emulation.enable(devices=3)\n"
        "states = tcuda.get_rng_state_all()\n"
        "print(before, [int(state[0]) for state in states], len(tcuda.default_generators))"
    )
    assert output_of(code, **WITHOUT_DEVICE) == "[] [7, 7, 7] 3"
