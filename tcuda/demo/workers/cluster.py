"""The cluster: one on this machine, or one that is running."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import warnings
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING

import dask
from distributed import Client
from distributed.utils import LoopRunner

import tcuda
from tcuda.dask import Devices, local_cluster
from tcuda.dask._cluster import close_forgotten_clients

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distributed import Worker

CONNECT_SECONDS = 10
"""The time within which a scheduler must answer."""

REPLACING = {"distributed.deploy.lost-worker-timeout": "1 hour"}
"""The time after which Dask looks for a lost worker, and ends its nanny if the worker is missing, usually 15 seconds.
At that moment, the worker may have been replaced and lost a second time."""

_QUIET = logging.CRITICAL + 1
_WARNINGS = "PYTHONWARNINGS"


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
        quiet(),
        dask.config.set(REPLACING),
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
    close_forgotten_clients()
    with quiet():
        try:
            client = Client(address, timeout=CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise RuntimeError(f"The scheduler at {address!r} cannot be reached: {error}") from error
        with client:
            if not all(client.run(_has_device).values()):
                client.register_plugin(Devices())
            yield client


def _has_device(dask_worker: Worker) -> bool:
    # A worker that found no device has the plugin too, but no figures of a device.
    return "tcuda" in dask_worker.metrics


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the logs and warnings of Dask off the output, also those of the processes that are started in the scope."""
    # Dask gives several of its loggers levels and handlers of their own.
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "distributed"]
    levels = {logger: logger.level for logger in map(logging.getLogger, names)}
    variable = os.environ.get(_WARNINGS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.environ[_WARNINGS] = "ignore"
        for logger in levels:
            logger.setLevel(_QUIET)
        try:
            yield
        finally:
            for logger, level in levels.items():
                logger.setLevel(level)
            if variable is None:
                del os.environ[_WARNINGS]
            else:
                os.environ[_WARNINGS] = variable


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
