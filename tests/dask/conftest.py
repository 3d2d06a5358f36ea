"""One cluster with two workers, which all tests of the folder share unless they change the workers."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

import tcuda

# The modules of these tests import Dask's distributed, which may be absent, and so does tcuda.dask.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from distributed import Client

    from tcuda.dask import Devices

SEED = 5


class _OfDask(pytest.Module):
    """A module of tests, which is skipped if there is no distributed."""

    def _getobj(self) -> Any:
        pytest.importorskip("distributed", reason="needs Dask's distributed")
        return super()._getobj()


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> pytest.Module:
    return _OfDask.from_parent(parent, path=module_path)


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """A client of two workers with two threads each; the workers share a device if there is one device only."""
    from distributed import Client

    from tcuda.dask import local_cluster

    sharing = 2 if tcuda.device_count() < 2 else 1
    with (
        local_cluster(
            2, workers_per_device=sharing, threads_per_worker=2, seed=SEED, memory_fraction=0.25, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def addresses(client: Client) -> dict[int, str]:
    """The addresses of the workers of ``client``, by name."""
    return {worker["name"]: address for address, worker in client.scheduler_info()["workers"].items()}


@pytest.fixture
def thread_cluster() -> Iterator[Callable[..., Client]]:
    """Start a cluster whose workers are threads of this process, and return its client."""
    from distributed import Client, LocalCluster

    from tcuda.dask._cluster import close_forgotten_clients

    with contextlib.ExitStack() as stack:

        def start(*plugins: Devices, **options: Any) -> Client:
            options = {"n_workers": 1, "threads_per_worker": 1, **options}
            close_forgotten_clients()
            cluster = LocalCluster(processes=False, dashboard_address=":0", plugins=plugins, **options)
            return stack.enter_context(Client(stack.enter_context(cluster)))

        yield start
