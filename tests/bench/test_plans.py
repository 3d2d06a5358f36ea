"""The bound and the plan of a workload whose best plan is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Planned = Callable[[list[tuple[int, int]]], tuple[int, int]]

MIB = 1 << 20
FREED = -1


@pytest.fixture
def plan(bench_module: Callable[[str], Any]) -> Planned:
    return lambda events: tuple(bench_module("plans").plan(events))


def test_a_plan_puts_allocations_that_never_live_together_at_one_address(plan: Planned) -> None:
    assert plan([(0, 8 * MIB), (0, FREED), (1, 6 * MIB), (1, FREED), (2, 2 * MIB)]) == (8 * MIB, 8 * MIB)


def test_sizes_are_rounded_as_the_allocator_must(plan: Planned) -> None:
    events = [(each, 513) for each in range(2048)]  # two units each, 2 MiB in all
    assert plan(events) == (2 * MIB, 2 * MIB)
    assert plan([*events, (2048, 1)]) == (4 * MIB, 4 * MIB)


def test_a_plan_can_need_more_than_what_is_live(plan: Planned, bench_module: Callable[[str], Any]) -> None:
    churn = bench_module("workloads")._churn(2 * MIB, 64 * MIB, 8, 200)
    bound, height = plan(churn)
    assert bound < height < sum(size for _, size in churn)


def test_the_largest_first_beats_the_order_of_the_program(plan: Planned) -> None:
    events = [(0, 2 * MIB), (1, 2 * MIB), (0, FREED), (2, 4 * MIB), (1, FREED), (2, FREED)]
    assert plan(events) == (6 * MIB, 6 * MIB)


def test_the_events_of_a_program_on_several_streams_are_those_of_its_calls(
    bench_module: Callable[[str], Any],
) -> None:
    def program(player: Any) -> None:
        first = player.take(0, 100)
        player.use(first, 1)
        player.work(1)
        second = player.take(1, 200)
        player.free(first, second)
        player.synchronize(player.mark(1))

    recorded = bench_module("stream_programs").recorded(program)
    assert recorded == [(0, 100), (1, 200), (0, FREED), (1, FREED)]
