"""The late schedule: which operations are done, and in which order."""

from __future__ import annotations

import itertools
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcuda._base.parts import begin_part
from tcuda.emulation.runtime.schedule import MOST_PENDING, Schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcuda.emulation.runtime.schedule import Operation

GRAPHS = st.lists(st.sets(st.integers(0, 30), max_size=4), max_size=31).map(
    lambda graph: [{before for before in wanted if before < place} for place, wanted in enumerate(graph)]
)
"""Operations, and for each the places of earlier operations that it waits for."""


@pytest.fixture
def schedule() -> Schedule:
    return Schedule(threading.RLock())


@pytest.fixture
def done() -> list[str]:
    return []


@pytest.fixture
def add(schedule: Schedule, done: list[str]) -> Callable[..., Operation]:
    """Add an operation that appends its name to ``done``."""
    return lambda name, *before: schedule.add(0, lambda: done.append(name), before)


def test_nothing_is_done_before_it_is_needed(
    schedule: Schedule, add: Callable[..., Operation], done: list[str]
) -> None:
    first = add("first")
    second = add("second", first)
    add("third", second)
    add("other")
    assert done == []
    assert schedule.do([second])
    assert done == ["first", "second"]
    assert len(schedule) == 2


def test_of_operations_that_nothing_orders_the_last_one_goes_first(
    schedule: Schedule, add: Callable[..., Operation], done: list[str]
) -> None:
    a1 = add("a1")
    b1 = add("b1")
    a2 = add("a2", a1)
    add("b2", b1)
    add("both", a2)
    schedule.do(schedule.pending())
    assert done == ["b1", "b2", "a1", "a2", "both"]


def test_an_operation_is_done_once(schedule: Schedule, add: Callable[..., Operation], done: list[str]) -> None:
    operation = add("once")
    assert schedule.do([operation, operation])
    assert schedule.do([operation])
    assert done == ["once"]
    assert len(schedule) == 0


@pytest.mark.parametrize("seed", [0, 1, 2])
@given(graph=GRAPHS, wanted=st.sets(st.integers(0, 30)))
def test_operations_and_their_ancestors_are_done_in_a_legal_order(
    seed: int, graph: list[set[int]], wanted: set[int]
) -> None:
    schedule = Schedule(threading.RLock(), seed)
    order: list[int] = []
    operations: list[Operation] = []
    for place, before in enumerate(graph):
        operations.append(
            schedule.add(0, lambda place=place: order.append(place), [operations[each] for each in before])
        )
    wanted = {place for place in wanted if place < len(graph)}
    assert schedule.do([operations[place] for place in wanted])
    ancestors: set[int] = set()
    missing = [*wanted]
    while missing:
        place = missing.pop()
        ancestors.add(place)
        missing += graph[place] - ancestors
    assert sorted(order) == sorted(ancestors)
    assert all(order.index(before) < order.index(place) for place in order for before in graph[place])
    assert len(schedule) == len(graph) - len(ancestors)


@given(graph=GRAPHS, seed=st.integers(0, 3))
def test_the_order_within_a_graph_is_legal_and_the_same_for_a_seed(graph: list[set[int]], seed: int) -> None:
    orders = [Schedule(threading.RLock(), seed).order(graph) for _ in range(2)]
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == [*range(len(graph))]
    assert all(orders[0].index(before) < orders[0].index(place) for place in orders[0] for before in graph[place])


def test_seeds_stand_for_different_orders() -> None:
    orders = {tuple(Schedule(threading.RLock(), seed).order([()] * 10)) for seed in range(5)}
    assert len(orders) == 5


def draw_from(schedule: Schedule, numbers: Iterator[float]) -> None:
    """Let a schedule draw its random numbers from ``numbers``."""
    begin_part("")
    schedule._random = SimpleNamespace(random=lambda: next(numbers))  # type: ignore[assignment]


@pytest.fixture
def part() -> Iterator[None]:
    """Begin the part without a name again after the test."""
    yield
    begin_part("")


def shown(seed: int, *, streams: int = 4, steps: int = 6) -> list[int]:
    """Return the order in which the operations of several streams are done: each time the number of the stream."""
    schedule, order = Schedule(threading.RLock(), seed), list[int]()
    last: list[Operation | None] = [None] * streams
    for _ in range(steps):
        for stream in range(streams):
            last[stream] = schedule.add(0, lambda stream=stream: order.append(stream), [last[stream]])
            schedule.advance()
    schedule.do(last)
    return order


def test_a_seed_stands_for_one_order_of_streams() -> None:
    assert shown(3) == shown(3)
    assert len({tuple(shown(seed)) for seed in range(1, 9)}) == 8


def test_with_every_two_streams_each_goes_first_with_some_seed() -> None:
    orders = [shown(seed, streams=3, steps=1) for seed in range(1, 9)]
    for one, other in itertools.permutations(range(3), 2):
        assert any(order.index(one) < order.index(other) for order in orders)


def test_a_fast_stream_does_its_work_and_what_comes_before_when_it_is_added(done: list[str]) -> None:
    schedule = Schedule(threading.RLock(), seed=1)
    ranks = iter([0.9, 1.0, 0.8, 1.0, 0.1, 1.0])
    draw_from(schedule, ranks)
    slow = schedule.add(0, lambda: done.append("slow"))
    schedule.add(0, lambda: done.append("other"))
    schedule.add(0, lambda: done.append("fast"), [slow])
    schedule.advance()
    assert done == ["slow", "fast"]
    assert len(schedule) == 1


def test_an_operation_gives_its_rank_to_one_follower() -> None:
    schedule = Schedule(threading.RLock(), seed=1)
    ranks = iter([0.9, 1.0, 0.1, 0.0, 0.2, 0.0, 0.3, 0.0])
    draw_from(schedule, ranks)
    first = schedule.add(0, None)
    branches = [schedule.add(0, None, [first]) for _ in range(2)]
    assert [branch.rank for branch in branches] == [0.9, 0.2]
    assert schedule.add(0, None, [branches[0]]).rank == 0.9


@pytest.mark.usefixtures("part")
def test_a_part_of_a_program_has_the_same_order_after_other_parts() -> None:
    schedule = Schedule(threading.RLock(), seed=7)
    orders = []
    for name in ("a", "b", "a"):
        begin_part(name)
        orders.append(schedule.order([()] * 10))
    assert orders[0] == orders[2] != orders[1]


def test_joined_operations_need_no_new_operation_for_one(schedule: Schedule, add: Callable[..., Operation]) -> None:
    a, b = add("a"), add("b")
    assert schedule.joined(0, [None]) is None
    assert schedule.joined(0, [a, None, a]) is a
    both = schedule.joined(0, [a, b])
    assert both is not None
    schedule.do([both])
    assert a.done
    assert b.done
    assert schedule.joined(0, [a, b]) is None


def test_the_oldest_operations_are_done_beyond_the_limit(done: list[str]) -> None:
    schedule = Schedule(threading.RLock(), most=3)
    for name in "abcde":
        schedule.add(0, lambda name=name: done.append(name))
        schedule.advance()
    assert done == ["a", "b"]
    assert len(schedule) == 3
    assert MOST_PENDING == 10_000


def test_an_error_leaves_later_operations_pending(
    schedule: Schedule, add: Callable[..., Operation], done: list[str]
) -> None:
    first = add("first")

    def fail() -> None:
        done.append("failed")
        raise ValueError("no")

    failing = schedule.add(0, fail, [first])
    last = add("last", failing)
    with pytest.raises(ValueError, match="no"):
        schedule.do([last])
    assert done == ["first", "failed"]
    assert (failing.done, last.done) == (True, False)
    assert schedule.do([last])
    assert done == ["first", "failed", "last"]


def test_an_interrupted_operation_is_not_repeated(schedule: Schedule, done: list[str]) -> None:
    def interrupted() -> None:
        done.append("half")
        raise KeyboardInterrupt

    operation = schedule.add(0, interrupted)
    with pytest.raises(KeyboardInterrupt):
        schedule.do([operation])
    assert schedule.do([operation])
    assert done == ["half"]


def test_a_finalizer_cannot_wait_for_the_operation_that_it_interrupts(
    schedule: Schedule, add: Callable[..., Operation], done: list[str]
) -> None:
    answers: list[bool] = []
    free = add("free")

    def work() -> None:
        answers.append(schedule.do([follower]))
        answers.append(schedule.do([free]))
        done.append("work")

    operation = schedule.add(0, work)
    follower = add("follower", operation)
    assert schedule.do([follower])
    assert answers == [False, True]
    assert done == ["free", "work", "follower"]


def test_threads_do_each_operation_once(schedule: Schedule) -> None:
    counts = [0] * 200

    def work(place: int) -> None:
        counts[place] += 1

    last = None
    operations = []
    for place in range(200):
        last = schedule.add(0, lambda place=place: work(place), [last if place % 3 else None])
        operations.append(last)
    threads = [threading.Thread(target=schedule.do, args=(operations[start:],)) for start in range(0, 200, 25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [1] * 200
    assert len(schedule) == 0
