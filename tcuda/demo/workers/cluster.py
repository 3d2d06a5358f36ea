"""The cluster: one on this machine, or one that is running."""

from __future__ import annotations

import contextlib
import logging
import signal
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING

from distributed import Client
from distributed.utils import LoopRunner

import tcuda
from tcuda.dask import Devices, local_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

CONNECT_SECONDS = 10
"""The time within which a scheduler must answer."""

_QUIET = logging.CRITICAL + 1


@contextlib.contextmanager
def local(workers: int) -> Iterator[Client]:
    """Start a cluster on this machine with ``workers`` workers, and end its processes after the scope.

    Raises:
        RuntimeError: The machine has fewer devices than workers.
    """
    if workers > tcuda.device_count():
        raise RuntimeError(
            f"CUDA error: invalid device ordinal. Each of the {workers} workers needs a device, and this machine has "
            f"{tcuda.device_count()}; ask for fewer, or check CUDA_VISIBLE_DEVICES and TCUDA_EMULATED_DEVICES."
        )
    with (
        _quiet(),
        _loop_without_ctrl_c() as loop,
        local_cluster(workers, dashboard_address=":0", silence_logs=_QUIET, loop=loop) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextlib.contextmanager
def running(address: str) -> Iterator[Client]:
    """Connect to the scheduler at ``address``, and give its workers their devices, unless they have devices.

    Raises:
        RuntimeError: There is no scheduler at the address.
    """
    with _quiet():
        try:
            client = Client(address, timeout=CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise RuntimeError(f"The scheduler at {address!r} cannot be reached: {error}") from error
        with client:
            if not all(client.run(_has_device).values()):
                client.register_plugin(Devices())
            yield client


def _has_device(dask_worker: object) -> bool:
    return Devices.name in dask_worker.plugins  # type: ignore[attr-defined]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the logs of Dask off the output."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(_QUIET)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextlib.contextmanager
def _loop_without_ctrl_c() -> Iterator[object]:
    """Start an event loop in a thread that blocks Ctrl-C, as do all processes that the thread starts.

    A terminal sends Ctrl-C to all processes. The workers must not stop by themselves: this process ends them.
    """
    resource_tracker.ensure_running()  # Otherwise the start of the first process would unblock Ctrl-C.
    runner = LoopRunner()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        runner.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        yield runner.loop
    finally:
        runner.stop()
