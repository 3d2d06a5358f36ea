"""The device, the memory limit and the random numbers of each worker."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Any

import pytest
from distributed import Client

import tcuda
from support.workers import (
    Counter,
    change_device_and_stream,
    current_uuid,
    current_uuid_in_a_coroutine,
    device_and_stream,
    meet_and_tell_the_device,
    seed_of_current_device,
)
from tcuda.dask import Devices, local_cluster, worker_seed

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.fixture_types import OutputOf

SEED = 5


def uuid_of(index: int) -> str:
    return str(tcuda.get_device_properties(index).uuid)


def in_all_workers(client: Client, addresses: dict[int, str], function: Callable[..., Any]) -> list[Any]:
    """Return the results of ``function`` in a task of each worker, in the order of the names."""
    tasks = [client.submit(function, workers=[addresses[name]], pure=False) for name in sorted(addresses)]
    return client.gather(tasks, direct=False)


def test_each_worker_has_a_device_of_its_own(client: Client, addresses: dict[int, str]) -> None:
    devices = tcuda.device_count()
    assert in_all_workers(client, addresses, current_uuid) == [uuid_of(name % devices) for name in (0, 1)]


def test_all_threads_of_a_worker_begin_on_its_device(client: Client, addresses: dict[int, str]) -> None:
    tasks = [client.submit(meet_and_tell_the_device, workers=[addresses[1]], pure=False) for _ in range(2)]
    (first, on_first), (second, on_second) = client.gather(tasks)
    assert first != second
    assert on_first == on_second == uuid_of(1 % tcuda.device_count())


def test_a_task_cannot_change_the_device_or_the_stream_of_the_next_task(
    client: Client, addresses: dict[int, str]
) -> None:
    client.gather([client.submit(change_device_and_stream, workers=[addresses[0]], pure=False) for _ in range(4)])
    results = client.gather([client.submit(device_and_stream, workers=[addresses[0]], pure=False) for _ in range(4)])
    assert set(results) == {(uuid_of(0), 0)}


def test_coroutines_begin_on_the_device(client: Client, addresses: dict[int, str]) -> None:
    assert in_all_workers(client, addresses, current_uuid_in_a_coroutine)[1] == uuid_of(1 % tcuda.device_count())


def test_actors_begin_on_the_device(client: Client, addresses: dict[int, str]) -> None:
    actor = client.submit(Counter, actor=True, workers=[addresses[1]]).result()
    assert set(actor.devices().result()) == {uuid_of(1 % tcuda.device_count())}


def test_the_limit_is_the_share_of_the_memory(client: Client, addresses: dict[int, str]) -> None:
    assert in_all_workers(client, addresses, tcuda.get_per_process_memory_fraction) == [0.25, 0.25]


def test_the_seed_of_a_worker_comes_from_its_name(client: Client, addresses: dict[int, str]) -> None:
    assert in_all_workers(client, addresses, seed_of_current_device) == [worker_seed(SEED, 0), worker_seed(SEED, 1)]


def test_the_seed_is_the_digest_that_the_reference_names() -> None:
    assert worker_seed(5, 0) == 1928520522024765805
    assert len({worker_seed(seed, name) for seed in range(10) for name in ["a", 0, 1, 10]}) == 40
    assert all(0 <= worker_seed(-1, name) < 1 << 64 for name in range(100))


@pytest.mark.long
def test_a_worker_that_starts_again_has_its_device_and_seed_again(output_of: OutputOf) -> None:
    code = """
import os
import tcuda
from distributed import Client, Nanny
from tcuda.dask import local_cluster

def state():
    device = tcuda.current_device()
    return device, os.getpid(), tcuda.default_generators[device].initial_seed()

with local_cluster(2, workers_per_device=2, seed=1, dashboard_address=":0") as cluster, Client(cluster) as client:
    before = dict(zip(*[[w["name"] for w in client.scheduler_info()["workers"].values()],
                        client.run(state).values()]))
    client.restart()
    after = {w["name"]: state for w, state in zip(client.scheduler_info()["workers"].values(),
                                                  client.run(state).values())}
for name in (0, 1):
    assert before[name][1] != after[name][1], (before, after)
    assert before[name][::2] == after[name][::2], (before, after)
print("same")
"""
    assert output_of(code) == "same"


def test_the_plugin_can_be_registered_on_workers_that_run(thread_cluster: Callable[..., Client]) -> None:
    last = tcuda.device_count() - 1
    client = thread_cluster()
    client.register_plugin(Devices([last], seed=3))
    assert client.submit(current_uuid).result() == uuid_of(last)
    worker_name = next(iter(client.scheduler_info()["workers"].values()))["name"]
    assert client.submit(seed_of_current_device).result() == worker_seed(3, worker_name)


def test_a_device_can_be_named_by_its_uuid_and_by_the_name_of_the_worker(
    thread_cluster: Callable[..., Client],
) -> None:
    last = tcuda.device_count() - 1
    client = thread_cluster(Devices({0: f"GPU-{uuid_of(last)}"}))
    assert client.submit(current_uuid).result() == uuid_of(last)


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (Devices([64]), "does not see the device 64; it sees the devices 0 to"),
        (Devices(["GPU-nonsense"]), "does not see the device 'GPU-nonsense'"),
        (Devices({"a": 0}), "names no device for the worker 0"),
        (Devices(alloc_conf="nonsense:1"), "nonsense"),
    ],
)
def test_a_worker_that_cannot_have_its_device_says_why(
    thread_cluster: Callable[..., Client], plugin: Devices, message: str
) -> None:
    client = thread_cluster()
    with pytest.raises((ValueError, RuntimeError), match=message):
        client.register_plugin(plugin)


def test_a_process_can_have_one_worker_with_a_device(thread_cluster: Callable[..., Client]) -> None:
    client = thread_cluster(n_workers=2)
    with pytest.raises(RuntimeError, match="start each worker in a process of its own"):
        client.register_plugin(Devices(workers_per_device=2, memory_fraction=1.0))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"workers_per_device": 0}, ValueError),
        ({"memory_fraction": 0.0}, ValueError),
        ({"memory_fraction": 1.5}, ValueError),
        ({"devices": []}, ValueError),
        ({"seed": 1.5}, TypeError),
        ({"seed": True}, TypeError),
    ],
)
def test_arguments_that_mean_nothing_are_refused(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        Devices(**options)


def test_a_preload_gives_the_worker_a_device(thread_cluster: Callable[..., Client]) -> None:
    last = tcuda.device_count() - 1
    argv = ["--devices", str(last), "--seed", "3"]
    client = thread_cluster(preload="tcuda.dask", preload_argv=argv)
    assert client.submit(current_uuid).result() == uuid_of(last)
    assert client.submit(seed_of_current_device).result() == worker_seed(3, 0)


def test_the_environment_of_this_process_is_that_of_the_workers(client: Client) -> None:
    found = client.run(lambda: (os.environ["TCUDA_RUNTIME"], tcuda.device_count(), tcuda.mem_get_info()[1]))
    assert set(found.values()) == {(os.environ["TCUDA_RUNTIME"], tcuda.device_count(), tcuda.mem_get_info()[1])}


def test_a_lost_client_is_closed_before_a_cluster_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def clients() -> set[int]:
        return {id(each) for each in gc.get_objects() if isinstance(each, Client)}

    found: list[set[int]] = []
    monkeypatch.setattr("tcuda.dask._cluster.LocalCluster", lambda **options: found.append(clients()))
    gc.collect()
    before = clients()
    gc.disable()
    try:
        with pytest.raises(OSError, match="Timed out"):
            Client("tcp://127.0.0.1:1", timeout=0.1)
        assert clients() > before
        local_cluster(1)
    finally:
        gc.enable()
    assert found == [before]
