"""The context manager that checks the state of the devices."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda import testing

if TYPE_CHECKING:
    from support.fixture_types import OutputOf


def test_a_block_that_leaves_no_trace_passes(xp: Any) -> None:
    with testing.check_state():
        with tcuda.stream(tcuda.Stream()):
            total = float(xp.ones(100).sum())
        cycle: list[Any] = [xp.ones(100)]
        cycle.append(cycle)
        del cycle
    assert total == 100


def test_memory_that_is_still_allocated_is_an_error(xp: Any) -> None:
    kept = []
    with (
        pytest.raises(AssertionError, match="^512 bytes of memory of device 0 are still allocated: "),
        testing.check_state(),
    ):
        kept.append(xp.zeros(64))
    with testing.check_state(memory=False):
        kept.append(xp.zeros(64))


def _load(count: int) -> list[Any]:
    return [tcuda.xp.zeros(64) for _ in range(count)]


def test_the_message_has_the_lines_that_allocated(xp: Any) -> None:
    older = xp.zeros(64)
    line = _load.__code__.co_firstlineno + 1
    with pytest.raises(AssertionError) as caught, testing.check_state():
        kept = [older, _load(3), xp.ones(256)]
    assert kept
    text = str(caught.value)
    assert text.startswith("3584 bytes of memory of device 0 are still allocated: ")
    lines = text.splitlines()[1:]
    assert [text.split(" at ")[0].strip() for text in lines] == [
        "2048 bytes in 1 allocation",
        "1536 bytes in 3 allocations",
    ]
    assert lines[1].endswith(f"at {__file__}:{line} in {'_load' if sys.version_info >= (3, 12) else '<listcomp>'}")
    assert lines[0].endswith("in test_the_message_has_the_lines_that_allocated")


def test_the_history_of_the_program_stays_as_found(xp: Any) -> None:
    tcuda.memory._record_memory_history(context=None)
    x = xp.zeros(64)
    with testing.check_state():
        y = xp.zeros(64)
        del y
    events = tcuda.memory._snapshot()["device_traces"][0]
    assert [event["action"] for event in events if event["action"] != "snapshot"].count("alloc") == 2
    tcuda.memory._record_memory_history(None)
    z = xp.zeros(64)
    blocks = [block for segment in tcuda.memory_snapshot() for block in segment["blocks"]]
    assert [block["frames"] for block in blocks if block["address"] in (x.data.ptr, z.data.ptr)] == [[], []]


def test_a_stream_that_stays_current_is_an_error_and_is_restored(xp: Any) -> None:
    before = tcuda.current_stream()
    with (
        pytest.raises(AssertionError, match="is the current stream of device 0, and .* was current before"),
        testing.check_state(),
    ):
        tcuda.set_stream(tcuda.Stream())
    assert tcuda.current_stream() == before


def test_an_open_capture_is_an_error_and_ends(xp: Any) -> None:
    graph = tcuda.CUDAGraph()
    left_open = pytest.raises(AssertionError, match="The capture of a graph .* is still open")
    with left_open, testing.check_state():
        tcuda.set_stream(tcuda.Stream())
        graph.capture_begin()
    assert not tcuda.is_current_stream_capturing()
    assert xp.ones(3).sum().get() == 3


def test_the_error_of_the_block_is_the_one_that_is_raised(xp: Any) -> None:
    before = tcuda.current_stream()
    own = pytest.raises(ZeroDivisionError)
    with own, testing.check_state():
        tcuda.set_stream(tcuda.Stream())
        raise ZeroDivisionError
    assert tcuda.current_stream() == before


def test_a_block_without_devices_initialises_nothing(fresh_output_of: OutputOf) -> None:
    code = (
        "import sys, tcuda\n"
        "assert 'tcuda.testing' not in sys.modules\n"
        "import tcuda.testing\n"
        "with tcuda.testing.check_state(): pass\n"
        "assert not {'numpy', 'cupy', 'pytest'} & set(sys.modules)\n"
        "print(tcuda.is_initialized())"
    )
    assert fresh_output_of(code) == "False"


def test_a_block_that_initialises_is_checked_too(output_of: OutputOf) -> None:
    code = (
        "import tcuda, tcuda.testing\n"
        "try:\n"
        "    with tcuda.testing.check_state(): kept = tcuda.xp.zeros(64)\n"
        "except AssertionError as error: print(error)"
    )
    text = output_of(code)
    assert text.startswith("512 bytes of memory of device 0")
    assert text.endswith("\n    512 bytes in 1 allocation at <string>:3 in <module>")
