"""Collectives among the workers of a group."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from distributed import Client

from support import workers
from tcuda.dask import GroupError, group, local_cluster
from tcuda.dask._meetings import Meetings

if TYPE_CHECKING:
    from collections.abc import Callable

UFUNCS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


@pytest.mark.parametrize("op", sorted(UFUNCS))
@pytest.mark.parametrize(
    ("shape", "dtype"), [((4, 3), "f4"), ((2,), "i8"), ((20_000, 2), "f8"), ((2, 0), "f4"), ((6,), "u1")]
)
def test_the_results_are_those_of_numpy(client: Client, op: str, shape: tuple[int, ...], dtype: str) -> None:
    numbers = np.random.default_rng(1)
    inputs = [numbers.uniform(-9, 9, shape).astype("i8").astype(dtype) for _ in range(2)]
    first, second = client.gather(group(client).submit(client, workers.collectives, inputs, op))
    reduced = functools.reduce(UFUNCS[op], inputs)
    for rank, found in enumerate((first, second)):
        np.testing.assert_array_equal(found["all_reduce"], reduced)
        np.testing.assert_array_equal(found["in place"], reduced)
        np.testing.assert_array_equal(found["broadcast"], inputs[1])
        np.testing.assert_array_equal(found["all_gather"], inputs)
        np.testing.assert_array_equal(found["reduce_scatter"], np.split(reduced, 2)[rank])
        assert all(array.dtype == dtype for array in found.values())


def test_all_ranks_get_the_same_bits(client: Client) -> None:
    numbers = np.random.default_rng(2)
    inputs = [numbers.standard_normal(100_000).astype("f4") for _ in range(2)]
    first, second = client.gather(group(client).submit(client, workers.collectives, inputs, "sum"))
    assert first["all_reduce"].tobytes() == second["all_reduce"].tobytes()


def test_the_ranks_are_in_the_order_of_the_names(client: Client, addresses: dict[int, str]) -> None:
    assert group(client).addresses == (addresses[0], addresses[1])
    assert group(client, [addresses[1], addresses[0]]).addresses == (addresses[1], addresses[0])


@pytest.mark.parametrize("chosen", [[], ["tcp://127.0.0.1:1"], "twice"])
def test_a_group_has_workers_that_the_scheduler_has(client: Client, addresses: dict[int, str], chosen: Any) -> None:
    with pytest.raises(ValueError, match="it must name at least one worker, and each worker once"):
        group(client, [addresses[0]] * 2 if chosen == "twice" else chosen)


def test_calls_that_mean_nothing_are_refused_and_change_nothing(client: Client) -> None:
    for messages in client.gather(group(client).submit(client, workers.refused)):
        operation, layout, kind, root, axis, closed = messages
        assert operation == "op is 'mean'; it can be 'sum', 'prod', 'max', 'min'."
        assert layout.startswith("The array is not contiguous")
        assert kind == "The collectives take an array of tcuda.xp; got list."
        assert root == "root is 2; it can be 0 to 1."
        assert axis.startswith("2 ranks cannot share the first axis of an array of shape (3, 4) equally")
        assert closed == "The communicator is closed; call join() again."


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("task", [workers.fail_on_rank_1, workers.leave_early_on_rank_1])
def test_a_rank_gets_an_error_if_another_rank_leaves(client: Client, task: Callable[..., Any]) -> None:
    waiting, _ = group(client).submit(client, task)
    error = waiting.exception(timeout=30)
    assert isinstance(error, GroupError)
    assert "The rank 1" in str(error)


@pytest.mark.emulated
def test_different_calls_of_the_ranks_are_an_error(client: Client) -> None:
    messages = [str(task.exception(30)) for task in group(client).submit(client, workers.make_different_calls)]
    assert any("has called all_reduce(" in message and "make the same calls" in message for message in messages)


@pytest.mark.emulated
def test_another_thread_can_end_a_collective(client: Client) -> None:
    first, second = client.gather(group(client).submit(client, workers.abandon_while_another_thread_waits))
    assert first.endswith("the test ends it.")
    assert "The rank 0" in second


def test_a_task_outside_of_the_group_cannot_join(client: Client, addresses: dict[int, str]) -> None:
    alone = group(client, [addresses[0]])
    task = client.submit(workers.join_alone, alone, 1, workers=[addresses[1]], pure=False)
    error = task.exception(timeout=30)
    assert isinstance(error, ValueError)
    assert "which is not in the group" in str(error)


def test_a_worker_without_the_plugin_says_so(thread_cluster: Callable[..., Client]) -> None:
    client = thread_cluster()
    (task,) = group(client).submit(client, workers.join_alone, 1)
    error = task.exception(timeout=30)
    assert isinstance(error, RuntimeError)
    assert "Register the plugin" in str(error)


@pytest.mark.long
def test_the_death_of_a_worker_ends_the_collectives_of_the_others() -> None:
    with local_cluster(2, workers_per_device=2, dashboard_address=":0") as cluster, Client(cluster) as client:
        for task in (workers.die_on_rank_1, workers.die_before_rank_0_sends, workers.join_and_die_on_rank_1):
            client.wait_for_workers(2, timeout=30)
            waiting, dying = group(client).submit(client, task)
            error = waiting.exception(timeout=30)
            assert isinstance(error, RuntimeError)
            assert "gone" in str(error) or "cannot be reached" in str(error)
            lost = dying.exception(timeout=30)
            assert isinstance(lost, GroupError)
            assert "has gone" in str(lost)


@pytest.mark.long
def test_a_task_for_a_worker_that_has_gone_fails() -> None:
    with local_cluster(1, dashboard_address=":0") as cluster, Client(cluster) as client:
        workers_then = group(client)
        with pytest.raises(GroupError, match="has gone"):
            client.gather(workers_then.submit(client, workers.end_process))
        (later,) = workers_then.submit(client, workers.current_uuid_of)
        assert isinstance(later.exception(timeout=30), GroupError)
        client.wait_for_workers(1, timeout=30)
        (task,) = group(client).submit(client, workers.current_uuid_of)
        assert isinstance(task.result(timeout=30), str)


class Workers:
    """The workers that a scheduler has, and the messages to them."""

    def __init__(self, *alive: str) -> None:
        self.alive = set(alive)
        self.messages: list[tuple[str, dict[str, Any]]] = []

    def meetings(self) -> Meetings:
        return Meetings(lambda address, message: self.messages.append((address, message)), self.alive.__contains__)


def test_a_meeting_begins_when_all_ranks_have_joined() -> None:
    async def run() -> None:
        found = Workers("a", "b")
        meetings = found.meetings()
        replies = await asyncio.gather(*(meetings.join("g", rank, ["a", "b"], {"n": rank}, 30) for rank in (1, 0)))
        assert replies == [{"meeting": "g/0", "facts": [{"n": 0}, {"n": 1}]}] * 2
        meetings.leave("g/0", 1, "done", 3)
        assert [(address, message["rank"], message["calls"]) for address, message in found.messages] == [("a", 1, 3)]
        meetings.leave("g/0", 0, "done", 3)
        assert len(found.messages) == 1
        assert not meetings._begun

    asyncio.run(run())


def test_a_meeting_that_is_not_complete_in_time_fails_for_all_ranks() -> None:
    async def run() -> None:
        meetings = Workers("a", "b", "c").meetings()
        joins = [meetings.join("g", rank, ["a", "b", "c"], {}, timeout) for rank, timeout in ((0, 0.01), (1, 60))]
        first, second = await asyncio.gather(*joins, return_exceptions=True)
        assert isinstance(first, TimeoutError)
        assert str(first) == str(second) == "The ranks [2] of the group g have not joined within 0.01 s."
        assert not meetings._open

    asyncio.run(run())


def test_a_rank_that_joins_again_makes_the_earlier_meeting_fail() -> None:
    async def run() -> None:
        meetings = Workers("a", "b").meetings()
        earlier = asyncio.ensure_future(meetings.join("g", 0, ["a", "b"], {}, 30))
        await asyncio.sleep(0)
        again = asyncio.ensure_future(meetings.join("g", 0, ["a", "b"], {}, 30))
        with pytest.raises(RuntimeError, match="has joined a second time"):
            await earlier
        other = await meetings.join("g", 1, ["a", "b"], {}, 30)
        assert (await again) == other

    asyncio.run(run())
