"""Functions that workers of Dask run. Workers import this module, but not the modules of tests."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import tcuda

if TYPE_CHECKING:
    from distributed import Worker

_both_threads = threading.Barrier(2, timeout=30)


def current_uuid() -> str:
    """Return the UUID of the current device."""
    return str(tcuda.get_device_properties(tcuda.current_device()).uuid)


async def current_uuid_in_a_coroutine() -> str:
    """Return the UUID of the current device of the thread that runs coroutines."""
    await asyncio.sleep(0)
    return current_uuid()


def meet_and_tell_the_device() -> tuple[int, str]:
    """Wait until a second thread calls the function too; return the thread, and the UUID of its current device."""
    _both_threads.wait()
    return threading.get_ident(), current_uuid()


def seed_of_current_device() -> int:
    """Return the seed of the default generator of the current device."""
    return tcuda.default_generators[tcuda.current_device()].initial_seed()


def change_device_and_stream() -> None:
    """Leave another device and another stream as the current ones."""
    tcuda.set_device(tcuda.device_count() - 1 - tcuda.current_device())
    tcuda.set_stream(tcuda.Stream())


def device_and_stream() -> tuple[str, int]:
    """Return the UUID of the current device, and the handle of the current stream."""
    return current_uuid(), tcuda.current_stream().cuda_stream


async def send_metrics(dask_worker: Worker) -> None:
    """Send the metrics of the worker to the scheduler now."""
    await dask_worker.heartbeat()


class Counter:
    """An actor that knows where it was made."""

    def __init__(self) -> None:
        self.made_on = current_uuid()

    def devices(self) -> tuple[str, str]:
        """Return the UUIDs of the device on which the actor was made, and of the current device."""
        return self.made_on, current_uuid()
