"""The context manager that checks the state of the devices."""

from __future__ import annotations

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
    assert output_of(code).startswith("512 bytes of memory of device 0")
