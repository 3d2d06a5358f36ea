"""``tcuda.profiler``: the calls that reach the CUDA runtime, in their order, and their errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tcuda
from tcuda import AcceleratorError
from tcuda._process.lazy import cuda

if TYPE_CHECKING:
    from support.fixture_types import OutputOf


class Calls(list[str]):
    """The calls that reach the runtime. A call in ``failing`` returns status 2."""

    failing: frozenset[str] = frozenset()

    def make(self, name: str) -> None:
        self.append(name)
        if name in self.failing:
            raise AcceleratorError(2, f"cudaProfiler{name.capitalize()}()")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    calls = Calls()
    tcuda.init()
    monkeypatch.setattr(cuda, "profilerStart", lambda: calls.make("start"), raising=False)
    monkeypatch.setattr(cuda, "profilerStop", lambda: calls.make("stop"), raising=False)
    return calls


def test_the_calls_are_accepted_in_any_order_and_number() -> None:
    tcuda.profiler.stop()
    tcuda.profiler.start()
    tcuda.profiler.start()
    tcuda.profiler.stop()
    tcuda.profiler.stop()


def test_each_call_is_one_call_of_the_runtime(calls: Calls) -> None:
    tcuda.profiler.start()
    assert calls == ["start"]
    tcuda.profiler.stop()
    assert calls == ["start", "stop"]


def test_profile_starts_at_the_begin_of_the_block_and_stops_at_its_end(calls: Calls) -> None:
    scope = tcuda.profiler.profile()
    assert calls == []
    with scope as value:
        assert calls == ["start"]
    assert value is None
    assert calls == ["start", "stop"]


def test_profile_stops_after_an_exception(calls: Calls) -> None:
    with pytest.raises(ZeroDivisionError), tcuda.profiler.profile():
        _ = 1 / 0
    assert calls == ["start", "stop"]


def test_a_failure_is_an_error_and_profile_still_stops(calls: Calls) -> None:
    calls.failing = frozenset(["start"])
    with pytest.raises(tcuda.CudaError, match=r"^out of memory \(2\)$"):
        tcuda.profiler.start()
    with pytest.raises(tcuda.CudaError), tcuda.profiler.profile():
        raise AssertionError("the block must not run")
    assert calls == ["start", "start", "stop"]
    calls.failing = frozenset(["stop"])
    with pytest.raises(tcuda.CudaError):
        tcuda.profiler.stop()


def test_profile_is_a_decorator(calls: Calls) -> None:
    @tcuda.profiler.profile()
    def step() -> int:
        return len(calls)

    assert [step(), step()] == [1, 3]
    assert calls == ["start", "stop", "start", "stop"]


def test_start_initialises_tcuda(output_of: OutputOf) -> None:
    assert output_of("import tcuda; tcuda.profiler.start(); print(tcuda.is_initialized())") == "True"
