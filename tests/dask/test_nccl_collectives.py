"""Collectives by NCCL, and their end when a rank goes."""

from __future__ import annotations

import functools
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from distributed import Client

import tcuda
from support import workers
from tcuda import nccl
from tcuda._base.errors import NcclError, NcclNotFoundError
from tcuda.dask import GroupError, _nccl_collectives, group, local_cluster
from tcuda.dask._nccl_collectives import EndedError, NcclCollectives

if TYPE_CHECKING:
    from collections.abc import Iterator

UFUNCS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


@pytest.fixture
def nccl_client(client: Client) -> Iterator[Client]:
    """A client of workers whose groups use NCCL, or the emulated counterpart of NCCL."""
    if tcuda.device_count() < 2:
        pytest.skip("NCCL needs a device for each of two workers")
    client.run(workers.choose_nccl, True)
    yield client
    client.run(workers.choose_nccl, False)


@pytest.mark.parametrize("op", sorted(UFUNCS))
@pytest.mark.parametrize(("shape", "dtype"), [((4, 3), "f4"), ((2,), "i8"), ((20_000, 2), "f8")])
def test_the_results_are_those_of_numpy(nccl_client: Client, op: str, shape: tuple[int, ...], dtype: str) -> None:
    numbers = np.random.default_rng(1)
    inputs = [numbers.uniform(-9, 9, shape).astype("i8").astype(dtype) for _ in range(2)]
    tasks = group(nccl_client).submit(nccl_client, workers.collectives, inputs, op)
    reduced = functools.reduce(UFUNCS[op], inputs)
    for rank, found in enumerate(nccl_client.gather(tasks)):
        np.testing.assert_array_equal(found["all_reduce"], reduced)
        np.testing.assert_array_equal(found["in place"], reduced)
        np.testing.assert_array_equal(found["broadcast"], inputs[1])
        np.testing.assert_array_equal(found["all_gather"], inputs)
        np.testing.assert_array_equal(found["reduce_scatter"], np.split(reduced, 2)[rank])


@pytest.mark.parametrize("error", [NcclNotFoundError("NCCL is not installed"), NcclError(2)])
def test_only_a_missing_library_lets_a_group_do_without_nccl(
    monkeypatch: pytest.MonkeyPatch, error: RuntimeError
) -> None:
    def unique_id() -> bytes:
        raise error

    monkeypatch.setattr(_nccl_collectives, "tcuda", SimpleNamespace(xp=SimpleNamespace(__name__="cupy")))
    monkeypatch.setattr(nccl, "unique_id", unique_id)
    if isinstance(error, NcclNotFoundError):
        assert _nccl_collectives.new_unique_id() is None
        return
    with pytest.raises(NcclError, match="unhandled system error"):
        _nccl_collectives.new_unique_id()


@pytest.mark.long
def test_a_rank_that_dies_while_the_clique_is_made_is_an_error_of_the_others() -> None:
    if tcuda.device_count() < 2:
        pytest.skip("NCCL needs a device for each of two workers")
    with local_cluster(2, dashboard_address=":0") as cluster, Client(cluster) as client:
        client.run(workers.choose_nccl, True)
        waiting, _ = group(client).submit(client, workers.die_while_rank_0_connects)
        error = waiting.exception(timeout=30)
        assert isinstance(error, GroupError)
        assert "The rank 1" in str(error)


@pytest.mark.parametrize("comes", ["before the clique is made", "never"])
def test_the_death_of_a_rank_ends_the_wait_for_the_clique(monkeypatch: pytest.MonkeyPatch, comes: str) -> None:
    begun, made, ended = threading.Event(), threading.Event(), threading.Event()

    def init_rank(*args: object) -> SimpleNamespace:
        begun.set()
        made.wait(60)
        return SimpleNamespace(handle=SimpleNamespace(abort=ended.set))

    monkeypatch.setattr(nccl, "init_rank", init_rank)
    collectives = NcclCollectives(2, b"", 0)
    if comes == "before the clique is made":
        collectives.lose_rank(None)
    else:
        threading.Thread(target=lambda: (begun.wait(60), collectives.lose_rank(None)), daemon=True).start()
    with pytest.raises(EndedError):
        collectives.connect()
    made.set()  # the clique is made after all
    assert not begun.is_set() or ended.wait(60)


def test_a_rank_that_has_left_in_order_does_not_end_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    collectives = NcclCollectives(2, b"", 0)

    def init_rank(*args: object) -> SimpleNamespace:
        collectives.lose_rank(0)
        return SimpleNamespace(handle=None)

    monkeypatch.setattr(nccl, "init_rank", init_rank)
    collectives.connect()
    assert not collectives.aborted


def test_the_error_of_nccl_is_the_error_of_the_join(monkeypatch: pytest.MonkeyPatch) -> None:
    def init_rank(*args: object) -> None:
        raise RuntimeError("NCCL Error 5")

    monkeypatch.setattr(nccl, "init_rank", init_rank)
    with pytest.raises(RuntimeError, match="NCCL Error 5"):
        NcclCollectives(2, b"", 0).connect()


class Clique:
    """A clique whose collectives do nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ended = threading.Event()
        handle = SimpleNamespace(abort=self.ended.set)
        monkeypatch.setattr(nccl, "init_rank", lambda *args: SimpleNamespace(handle=handle))
        monkeypatch.setattr(nccl, "all_reduce", lambda *args, comms: None)
        self.collectives = NcclCollectives(2, b"", 0)
        self.collectives.connect()

    def call(self) -> None:
        self.collectives.all_reduce(None, None, "sum")

    def lose_rank(self, calls: int | None) -> None:
        before = set(threading.enumerate())
        self.collectives.lose_rank(calls)
        for thread in set(threading.enumerate()) - before:
            thread.join(30)


def test_a_rank_that_has_completed_all_calls_ends_none(monkeypatch: pytest.MonkeyPatch) -> None:
    clique = Clique(monkeypatch)
    clique.call()
    clique.lose_rank(calls=1)
    assert not clique.ended.is_set()
    assert not clique.collectives.aborted
    with pytest.raises(EndedError):
        clique.call()


@pytest.mark.parametrize("calls", [None, 0])
def test_a_rank_that_has_gone_ends_the_call_that_waits_for_it(
    monkeypatch: pytest.MonkeyPatch, calls: int | None
) -> None:
    clique = Clique(monkeypatch)
    clique.call()
    clique.lose_rank(calls)
    assert clique.ended.is_set()
    assert clique.collectives.aborted
    with pytest.raises(EndedError):
        clique.call()


def test_the_calls_up_to_those_of_a_rank_that_has_gone_are_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    clique = Clique(monkeypatch)
    clique.lose_rank(calls=2)
    clique.call()
    clique.call()
    with pytest.raises(EndedError):
        clique.call()
    assert not clique.ended.is_set()
