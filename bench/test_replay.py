"""The cost of memory from the device, and the memory that the allocators of tcuda and torch and CuPy's pools hold."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import pytest
from limits import NAMES as LIMITED
from limits import limits
from machine import machine
from plans import PIECE
from replay import NAMES, PLANNED, planned, present, replay
from replay_tables import array_time_of_torch, reserved_bound
from stream_programs import PROGRAMS
from targets import (
    ABOVE_PLAN,
    CALLS_OF_TORCH,
    COLD_ALLOCATIONS,
    COLD_TIME_OF_TORCH,
    HELD_BY_TORCH,
    HELD_BY_TORCH_BUSY,
    HELD_OVER_TORCH,
    NEAR_LIVE,
    RIVALS,
    SETTLED_AFTER,
    SMALLEST_LIMITS,
)
from workloads import CHURNS, COLD, TRACES, WORKLOADS

if TYPE_CHECKING:
    from limits_worker import Limits
    from pytest_benchmark.fixture import BenchmarkFixture
    from replayed import Replayed

SOURCES = present()

plan_of = functools.cache(planned)

beside_torch = pytest.mark.skipif("torch" not in SOURCES, reason="torch is not installed or sees no GPU")


def replays(source: str, *, busy: bool = False) -> dict[str, Replayed]:
    """Return the results of the replays of all workloads through ``source``, by workload.

    The rivals hold the same on busy streams as on idle ones in workloads of one stream, which are left out.
    """
    return _replays(source, busy)


@functools.cache  # has an entry for each spelling of the same arguments, so only replays() calls this function
def _replays(source: str, busy: bool) -> dict[str, Replayed]:
    return {
        each.workload: each
        for each in replay(source, list(PROGRAMS if busy and source != "tcuda" else NAMES), busy=busy)
    }


def of_all(workload: str, *, busy: bool = False) -> dict[str, Replayed]:
    """Return the results of the replays of ``workload`` through all allocators, by allocator."""
    return {source: replays(source, busy=busy)[workload] for source in SOURCES}


@pytest.mark.parametrize("source", SOURCES)
def test_replay(benchmark: BenchmarkFixture, source: str) -> None:
    """Store the results for the report. The figure of pytest-benchmark is the time of all replays together."""
    benchmark.group = "replay"
    benchmark.extra_info |= machine()
    found = benchmark.pedantic(replays, args=[source], rounds=1)
    benchmark.extra_info["replays"] = [each._asdict() for each in found.values()]
    assert list(found) == list(NAMES)


@beside_torch
@pytest.mark.parametrize("workload", COLD)
def test_replay_takes_new_memory_faster_than_torch(workload: str) -> None:
    assert array_time_of_torch(of_all(workload)) <= COLD_TIME_OF_TORCH


@beside_torch
@pytest.mark.parametrize("workload", COLD)
def test_replay_takes_no_more_new_memory_than_torch(workload: str) -> None:
    sources = of_all(workload)
    assert sources["tcuda"].reserved <= sources["torch"].reserved


@pytest.mark.parametrize("workload", COLD)
def test_replay_asks_the_driver_for_new_memory_as_rarely_as_the_policy_promises(workload: str) -> None:
    found = replays("tcuda")[workload].driver_allocations
    assert found is not None
    assert found <= COLD_ALLOCATIONS[workload]


@beside_torch
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
@pytest.mark.parametrize("workload", [*CHURNS, *TRACES])
def test_replay_holds_no_more_memory_than_torch_and_cupy(workload: str, busy: bool) -> None:
    """The rivals hold the same whether their stream is idle or busy."""
    bound = reserved_bound(workload, of_all(workload), emulated=False)
    assert bound is not None, f"one of {RIVALS} is missing"
    assert replays("tcuda", busy=busy)[workload].reserved_per_live <= bound


@beside_torch
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_replay_on_several_streams_holds_no_more_memory_than_any_rival(program: str, busy: bool) -> None:
    """On several streams, the memory that the rivals hold depends on the work of the streams, too."""
    ours, *rivals = (replayed.steady_reserved for replayed in of_all(program, busy=busy).values())
    assert ours <= min(rivals)


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
@pytest.mark.parametrize("workload", PLANNED)
def test_replay_holds_no_more_memory_than_expandable_segments_of_torch(workload: str, busy: bool) -> None:
    """The rival is what torch held on an H200; the work of several streams takes another time on emulated devices."""
    torch = (HELD_BY_TORCH_BUSY if busy else HELD_BY_TORCH)[workload]
    assert replays("tcuda", busy=busy)[workload].steady_reserved <= (torch.expandable << 20) + HELD_OVER_TORCH


@pytest.mark.parametrize("workload", PLANNED)
def test_replay_holds_no_less_than_the_bound(workload: str) -> None:
    bound, height = plan_of(workload)
    assert bound <= height
    assert bound <= replays("tcuda")[workload].steady_reserved


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
@pytest.mark.parametrize(
    "workload", [*WORKLOADS, *(pytest.param(name, marks=pytest.mark.emulated) for name in PROGRAMS)]
)
def test_replay_calls_no_driver_after_the_first_replay(workload: str, busy: bool) -> None:
    """On a GPU, the moment at which one stream is done with the memory of another differs from play to play."""
    found = replays("tcuda", busy=busy)[workload]
    assert found.settled_after <= SETTLED_AFTER.get(workload, 1)
    assert found.steady_driver_calls == 0


@functools.cache
def limits_of(source: str, busy: bool) -> dict[str, Limits]:
    return {each.workload: each for each in limits(source, LIMITED, busy=busy)}


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
@pytest.mark.parametrize("workload", LIMITED)
def test_replay_runs_on_a_limit_near_the_live_memory(workload: str, busy: bool) -> None:
    found = limits_of("tcuda", busy)[workload].per_live
    assert found is not None
    assert found <= SMALLEST_LIMITS[workload]


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
@pytest.mark.parametrize("workload", [name for name in LIMITED if name not in ABOVE_PLAN])
def test_replay_runs_on_a_limit_no_larger_than_a_plan_of_the_workload(workload: str, busy: bool) -> None:
    bound, height = plan_of(workload)
    found = limits_of("tcuda", busy)[workload].smallest
    assert found is not None
    assert found <= max(NEAR_LIVE * bound, bound + PIECE, height)


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
@pytest.mark.parametrize("workload", LIMITED)
def test_replay_calls_the_driver_no_more_often_than_torch(workload: str, busy: bool) -> None:
    calls = limits_of("tcuda", busy)[workload].calls
    assert calls is not None
    assert calls[0] <= CALLS_OF_TORCH[workload]
    assert calls[1] == 0


@beside_torch
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
@pytest.mark.parametrize("workload", LIMITED)
def test_replay_runs_on_a_limit_as_small_as_that_of_torch(workload: str, busy: bool) -> None:
    ours, torch = (limits_of(source, busy)[workload].smallest for source in ("tcuda", "torch_expandable"))
    assert ours is not None
    assert torch is not None
    assert ours <= torch
