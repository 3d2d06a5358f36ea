"""The training of the demo on workers of Dask: the same bits for any number of workers, and after losses of workers."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

pytest.importorskip("distributed", reason="needs Dask's distributed")

import dask
from distributed import LocalCluster

import tcuda
from support.deaths import die_at, fail_at, stop_at
from support.training import DIGITS, assert_same
from tcuda._runtime import environment
from tcuda.dask._cluster import close_forgotten_clients
from tcuda.demo import digits, train
from tcuda.demo.config import Config
from tcuda.demo.workers import cluster, tasks, team
from tcuda.demo.workers import train as workers_train

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distributed import Client

    from tcuda.demo.checkpoint import Checkpoint
    from tcuda.demo.result import Loss, Result

pytestmark = pytest.mark.alone

WORKERS = min(2, tcuda.device_count())
FEW = digits.Digits(DIGITS.train[:160], DIGITS.test)
"""Five batches in an epoch."""


@contextlib.contextmanager
def cluster_without_devices(workers: int) -> Iterator[LocalCluster]:
    """Start workers that have no devices yet, so that the demo gives them devices."""
    options = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL + 1, "env": environment()}
    close_forgotten_clients()
    with (
        cluster.quiet(),
        dask.config.set(cluster.REPLACING),
        LocalCluster(n_workers=workers, threads_per_worker=1, **options) as started,
    ):
        yield started


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with cluster_without_devices(WORKERS) as workers, cluster.running(workers.scheduler_address) as client:
        yield client


def in_one_process(**settings: Any) -> Result:
    return train.train(Config(kernel="exact", **settings), FEW)


def on_workers(client: Client, count: int, *, resume_from: Any = None, losses: Any = None, **settings: Any) -> Result:
    """Train on ``count`` workers, and append the losses of workers to ``losses``."""
    on_loss = (lambda loss: None) if losses is None else losses.append
    config = Config(kernel="exact", **settings)
    result = workers_train.train(client, count, config, FEW, on_loss=on_loss, resume_from=resume_from)
    assert result.cluster is not None
    assert result.cluster.losses == ([] if losses is None else losses)
    return result


def pids(client: Client) -> dict[str, int]:
    return client.run(os.getpid)


@pytest.mark.parametrize("count", range(1, WORKERS + 1))
def test_workers_compute_the_bits_of_one_process(client: Client, count: int) -> None:
    result = on_workers(client, count, epochs=3)
    assert_same(result, in_one_process(epochs=3))
    assert result.cluster is not None
    assert [worker.rank for worker in result.cluster.workers] == list(range(count))
    assert {worker.address for worker in result.cluster.workers} <= set(client.nthreads())
    assert [worker.device for worker in result.cluster.workers] == result.devices
    assert result.cluster.runtime == os.environ["TCUDA_RUNTIME"]
    assert set(result.phases) == {"copy", "forward", "backward", "exchange", "update"}
    assert result.elapsed > 0


def test_checkpoints_fit_every_number_of_workers(client: Client) -> None:
    expected = in_one_process(epochs=3)
    made: list[Checkpoint] = []
    workers_train.train(client, WORKERS, Config(kernel="exact", epochs=2, save_at=1), FEW, on_checkpoint=made.append)
    (checkpoint,) = made
    assert checkpoint.epoch == 1
    resumed = on_workers(client, 1, epochs=3, resume_from=checkpoint)
    assert_same(resumed, expected)
    assert resumed.resumed_after == 1
    assert_same(train.train(Config(kernel="exact", epochs=3), FEW, resume_from=checkpoint), expected)


def test_workers_keep_their_generators(client: Client) -> None:
    before = client.run(tcuda.get_rng_state_all)
    on_workers(client, 1, epochs=1)
    after = client.run(tcuda.get_rng_state_all)
    assert before.keys() == after.keys()
    for address in before:
        np.testing.assert_array_equal(before[address], after[address])


# Losses


@pytest.mark.long
@pytest.mark.parametrize(("batch", "epoch"), [(3, 1), (8, 2)])
def test_a_killed_worker_is_replaced_and_changes_no_bit(client: Client, batch: int, epoch: int) -> None:
    before = pids(client)
    victim = sorted(before)[-1]
    client.run(die_at, batch, workers=[victim])
    losses: list[Loss] = []
    result = on_workers(client, WORKERS, epochs=3, losses=losses)
    assert [(loss.epoch, loss.workers) for loss in losses] == [(epoch, (victim,))]
    assert_same(result, in_one_process(epochs=3))
    after = pids(client)
    assert len(after) == len(before)
    assert before[victim] not in after.values()


@pytest.mark.long
@pytest.mark.skipif(WORKERS < 2, reason="needs two devices")
def test_a_worker_that_cannot_leave_is_started_again(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "_UNTIL_IDLE", 0.5)
    killed, stopped = sorted(pids(client))
    stopped_pid = client.run(stop_at, 3, pids(client)[killed], workers=[stopped])[stopped]
    losses: list[Loss] = []
    result = on_workers(client, WORKERS, epochs=2, losses=losses)
    assert [loss.workers for loss in losses] == [(killed,)]
    assert_same(result, in_one_process(epochs=2))
    assert stopped_pid not in pids(client).values()


def test_the_error_of_a_worker_ends_the_training(client: Client) -> None:
    victim = sorted(client.nthreads())[0]
    client.run(fail_at, 2, workers=[victim])
    begin = time.monotonic()
    with pytest.raises(ZeroDivisionError, match="divides by zero"):
        on_workers(client, WORKERS, epochs=1)
    assert time.monotonic() - begin < 30
    assert not any(client.run(tasks.is_busy).values())
    assert_same(on_workers(client, WORKERS, epochs=1), in_one_process(epochs=1))


@pytest.mark.long
def test_the_loss_of_the_scheduler_ends_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1)
    with cluster_without_devices(1) as workers, cluster.running(workers.scheduler_address) as client:
        config = Config(kernel="exact", epochs=1000)
        with pytest.raises((OSError, RuntimeError)):
            workers_train.train(client, 1, config, FEW, lambda epoch: workers.close())


class NoTeam:
    """A team whose workers are always lost."""

    def __init__(self, *arguments: Any) -> None:
        self.dissolved = False

    def join(self) -> None:
        raise team.WorkerLostError(["tcp://host:1"])

    def dissolve(self) -> None:
        self.dissolved = True


class Cluster:
    """A cluster with one worker."""

    def nthreads(self) -> dict[str, int]:
        return {"tcp://host:1": 1}


def test_workers_that_are_lost_again_and_again_end_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_train, "Team", NoTeam)
    losses: list[Loss] = []
    message = "Workers were lost 4 times in epoch 1; see the logs of the workers."
    with pytest.raises(RuntimeError, match=message):
        workers_train.train(Cluster(), 1, Config(kernel="exact"), FEW, on_loss=losses.append)  # type: ignore[arg-type]
    assert len(losses) == 3


def test_a_cluster_with_too_few_workers_is_an_error() -> None:
    message = "After 0 seconds the number of workers in the cluster is 1; the training needs 2."
    with pytest.raises(RuntimeError, match=message):
        workers_train.train(Cluster(), 2, Config(kernel="exact"), FEW, patience=0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("count", "settings", "message"),
    [
        (3, {}, "3 workers cannot share a batch of 32 digits equally."),
        (0, {}, "0 workers cannot share a batch of 32 digits equally."),
        (1, {"kernel": "array"}, "kernel is 'array'; workers need the kernel 'exact'."),
        (1, {"devices": 2}, "devices is 2; each worker has one device."),
        (1, {"graph": True}, "graph is True; the steps of workers cannot be captured, "),
    ],
)
def test_settings_that_do_not_fit_are_refused(count: int, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        workers_train.train(Cluster(), count, Config(**{"kernel": "exact"} | settings), FEW)  # type: ignore[arg-type]


def test_a_local_cluster_needs_a_device_for_each_worker() -> None:
    count = tcuda.device_count() + 1
    message = f"Each of the {count} workers needs a device, and this machine has {tcuda.device_count()}; ask for fewer"
    with pytest.raises(RuntimeError, match=message), cluster.local(count):
        pass
