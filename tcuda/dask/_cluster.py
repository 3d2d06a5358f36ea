"""A cluster on this machine, with a worker for each device."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

from distributed import LocalCluster

import tcuda
from tcuda._runtime import environment
from tcuda.dask._plugin import Devices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def local_cluster(
    n_workers: int | None = None,
    *,
    devices: Sequence[int | str] | Mapping[Any, int | str] | None = None,
    workers_per_device: int = 1,
    threads_per_worker: int = 1,
    memory_fraction: float | None = None,
    alloc_conf: str | None = None,
    seed: int | None = None,
    env: Mapping[str, str] | None = None,
    **options: Any,
) -> LocalCluster:
    """Start a cluster on this machine, whose workers each have a device.

    Each worker is a process, and has devices of the same kind as this process: GPUs, or emulated devices. A program
    that calls the function must protect its start by ``if __name__ == "__main__":``, because the workers import the
    program.

    Args:
        n_workers: The number of workers; None for ``workers_per_device`` workers on each device.
        devices: As for :class:`Devices`.
        workers_per_device: As for :class:`Devices`.
        threads_per_worker: The number of tasks that a worker runs at the same time.
        memory_fraction: As for :class:`Devices`.
        alloc_conf: As for :class:`Devices`.
        seed: As for :class:`Devices`.
        env: Environment variables of the workers.
        options: Other options of ``distributed.LocalCluster``, such as ``dashboard_address``.

    Returns:
        The cluster, a context manager that closes the cluster at the end.

    Raises:
        RuntimeError: The machine has no device.
        ValueError: ``n_workers`` is not positive, or an argument is one that :class:`Devices` refuses.

    Example:
        >>> from distributed import Client
        >>> import tcuda.dask
        >>> def total(size):
        ...     return float(tcuda.xp.ones(size).sum())
        >>> if __name__ == "__main__":  # the workers import the program
        ...     with tcuda.dask.local_cluster(1, dashboard_address=":0") as cluster, Client(cluster) as client:
        ...         print(client.submit(total, 1000).result())
        1000.0
    """
    plugin = Devices(
        devices,
        workers_per_device=workers_per_device,
        memory_fraction=memory_fraction,
        alloc_conf=alloc_conf,
        seed=seed,
    )
    if n_workers is None:
        tcuda.init()  # raises where there is no device
        n_workers = (tcuda.device_count() if devices is None else len(devices)) * workers_per_device
    if n_workers < 1:
        raise ValueError(f"n_workers is {n_workers}; it must be 1 or more.")
    close_forgotten_clients()
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=threads_per_worker,
        processes=True,
        plugins=(plugin, *options.pop("plugins", ())),
        env={**environment(), **(env or {})},
        **options,
    )


def close_forgotten_clients() -> None:
    """Close the clients that the program has lost, for example because they reached no scheduler.

    A lost client closes when Python's garbage collector finds it, and takes a lock of ``distributed`` for that. If the
    collector ran while a new client or cluster starts in the same thread, that start would hold the lock, and the
    thread would wait for itself.
    """
    gc.collect()
