"""The plugin that gives each worker its device, its share of the memory, and its random numbers."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from distributed.diagnostics.plugin import WorkerPlugin

import tcuda
from tcuda.dask._directory import ask_for_place
from tcuda.dask._mailbox import add_mailboxes, end_collectives
from tcuda.dask._metrics import add_metrics, remove_metrics
from tcuda.dask._seeds import worker_seed
from tcuda.dask._threads import use_device

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distributed import Worker

_of_process: weakref.ref[Worker] | None = None
"""The worker of this process. The limit, the generators and the current device belong to a process or to its threads,
so a process can have one worker."""


class Devices(WorkerPlugin):
    """A plugin for Dask's workers: each worker gets a device, and every task begins on this device.

    Register the plugin on a running cluster by ``client.register_plugin(Devices())``, or start the workers by
    :func:`local_cluster` or ``dask worker --preload tcuda.dask``. A process can have one worker with the plugin.

    The workers of a machine share its devices in a circle, by the UUIDs of the devices. A worker uses its device, and
    can reach the others. So peer access, NCCL and shared memory work between workers. The plugin also initialises
    tcuda, takes CuPy over, registers the serialisation of arrays, and adds the memory figures of the device to the
    metrics of the worker.

    Args:
        devices: The devices that workers may have, as indices or UUIDs; a mapping from the name of a worker to its
            device; None for all devices that the worker sees.
        workers_per_device: The largest number of workers on one device. The option has no effect on a mapping.
        memory_fraction: The share of the device's memory that the allocator of a worker may hold, from 0 to 1; None
            for the same share for each of the ``workers_per_device``.
        alloc_conf: The options of the allocator, in the format of ``TCUDA_ALLOC_CONF``; None to leave them unchanged.
        seed: The seed of the program, from which each worker derives its seed by its name (:func:`worker_seed`); None
            to leave the generators unchanged.

    Raises:
        ValueError: ``workers_per_device`` is not positive, ``memory_fraction`` is not between 0 and 1, or ``devices``
            is empty.
        TypeError: ``seed`` is not an integer.

    Example:
        >>> from distributed import Client, LocalCluster
        >>> import tcuda.dask
        >>> cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0")
        >>> with cluster, Client(cluster) as client:
        ...     registered = client.register_plugin(tcuda.dask.Devices(seed=42))
        ...     client.submit(tcuda.initial_seed).result() == tcuda.dask.worker_seed(42, 0)
        True
    """

    name = "tcuda-devices"

    def __init__(
        self,
        devices: Sequence[int | str] | Mapping[Any, int | str] | None = None,
        *,
        workers_per_device: int = 1,
        memory_fraction: float | None = None,
        alloc_conf: str | None = None,
        seed: int | None = None,
    ) -> None:
        if workers_per_device < 1:
            raise ValueError(f"workers_per_device is {workers_per_device}; it must be 1 or more.")
        if memory_fraction is not None and not 0 < memory_fraction <= 1:
            raise ValueError(f"memory_fraction is {memory_fraction}; it must be more than 0 and at most 1.")
        if devices is not None and not len(devices):
            raise ValueError("devices is empty; name at least one device, or pass None for all devices.")
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
            raise TypeError(f"seed is {seed!r}, a {type(seed).__name__}; it must be an integer or None.")
        self.devices = devices
        self.workers_per_device = workers_per_device
        self.memory_fraction = memory_fraction
        self.alloc_conf = alloc_conf
        self.seed = seed

    async def setup(self, worker: Worker) -> None:
        """Give ``worker`` its device. Dask calls the method when the plugin is registered.

        Args:
            worker: The worker.

        Raises:
            RuntimeError: The worker finds no free device, the process has another worker with a device, or no device.
            ValueError: The worker does not see a device that ``devices`` names.
        """
        _require_one_worker(worker)
        if self.alloc_conf is not None:
            tcuda.memory._set_allocator_settings(self.alloc_conf)
        tcuda.init()
        index = await self._device_of(worker)
        await use_device(worker, index)
        fraction = 1 / self.workers_per_device if self.memory_fraction is None else self.memory_fraction
        if fraction != 1 or self.memory_fraction is not None:
            tcuda.set_per_process_memory_fraction(fraction, index)
        if self.seed is not None:
            tcuda.default_generators[index].manual_seed(worker_seed(self.seed, worker.name))
        add_mailboxes(worker)
        add_metrics(worker, index)

    def teardown(self, worker: Worker) -> None:
        """Send no more figures of the device, and end the collectives. The worker keeps the device until its end.

        Args:
            worker: The worker.
        """
        end_collectives(worker)
        remove_metrics(worker)

    async def _device_of(self, worker: Worker) -> int:
        uuids = visible_uuids()
        if isinstance(self.devices, Mapping):
            if worker.name not in self.devices:
                raise ValueError(
                    f"devices names no device for the worker {worker.name!r}; it names devices for "
                    f"{sorted(map(repr, self.devices))}."
                )
            allowed, per_device = [self.devices[worker.name]], None
        else:
            allowed = list(range(len(uuids))) if self.devices is None else list(self.devices)
            per_device = self.workers_per_device
        candidates = [uuids[_index_of(device, uuids)] for device in allowed]
        return uuids.index(await ask_for_place(worker, candidates, per_device))


def visible_uuids() -> list[str]:
    """Return the UUIDs of the devices that this process sees, by index."""
    return [str(tcuda.get_device_properties(index).uuid) for index in range(tcuda.device_count())]


def _index_of(device: int | str, uuids: Sequence[str]) -> int:
    """Return the index of ``device``, an index or a UUID with or without ``GPU-`` in front.

    Raises:
        ValueError: This process does not see the device.
    """
    if isinstance(device, int):
        if 0 <= device < len(uuids):
            return device
    else:
        wanted = device.removeprefix("GPU-").lower()
        if wanted in uuids:
            return uuids.index(wanted)
    raise ValueError(
        f"The worker does not see the device {device!r}; it sees the devices 0 to {len(uuids) - 1} with the UUIDs "
        f"{', '.join(uuids)}. Check CUDA_VISIBLE_DEVICES where the worker was started."
    )


def _require_one_worker(worker: Worker) -> None:
    global _of_process
    before = _of_process() if _of_process is not None else None
    if before is not None and before is not worker and before.status.name not in ("closed", "failed"):
        raise RuntimeError(
            f"The process already has the worker {before.name!r} with a device, and {worker.name!r} would be the "
            "second one. The current device and the memory limit belong to a process, so start each worker in a "
            "process of its own, with processes=True or `dask worker --nworkers`."
        )
    _of_process = weakref.ref(worker)
