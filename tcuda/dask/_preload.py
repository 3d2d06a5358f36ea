"""The entry for ``dask worker --preload tcuda.dask`` and ``dask scheduler --preload tcuda.dask``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from distributed import Scheduler, Worker

from tcuda.dask._directory import install
from tcuda.dask._plugin import Devices

if TYPE_CHECKING:
    from distributed import Nanny


@click.command()
@click.option("--devices", help="the devices that the workers may have: indices or UUIDs, with commas between them")
@click.option("--workers-per-device", type=int, default=1, show_default=True, help="the most workers on one device")
@click.option("--memory-fraction", type=float, help="the share of a device's memory that a worker may hold")
@click.option("--alloc-conf", help="options of the allocator, as in TCUDA_ALLOC_CONF")
@click.option("--seed", type=int, help="the seed from which each worker derives its seed")
async def dask_setup(
    server: Worker | Scheduler | Nanny,
    devices: str | None,
    workers_per_device: int,
    memory_fraction: float | None,
    alloc_conf: str | None,
    seed: int | None,
) -> None:
    """Give a worker its device, or a scheduler the directory of devices."""
    if isinstance(server, Scheduler):
        install(server)
    elif isinstance(server, Worker):
        named = [int(device) if device.isdecimal() else device for device in devices.split(",")] if devices else None
        plugin = Devices(
            named,
            workers_per_device=workers_per_device,
            memory_fraction=memory_fraction,
            alloc_conf=alloc_conf,
            seed=seed,
        )
        await server.plugin_add(plugin, catch_errors=False)
