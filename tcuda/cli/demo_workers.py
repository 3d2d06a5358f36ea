"""The options ``--workers`` and ``--scheduler`` of ``tcuda demo``: a training on workers of Dask."""

from __future__ import annotations

import contextlib
import importlib.util
from functools import partial
from typing import TYPE_CHECKING

from tcuda.cli import report
from tcuda.demo.config import Config
from tcuda.demo.devices import emulate_for_want_of_gpu

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from tcuda.demo.result import Result

SETTINGS = {"kernel": "exact", "devices": 1}
"""The settings of every training on workers."""

_PACKAGE = "distributed"


def add_to(parser: argparse.ArgumentParser, number: Callable[[str], int]) -> None:
    """Add the options to ``parser``.

    Args:
        parser: The parser of the command.
        number: Returns the whole number that a text stands for.
    """
    parser.add_argument(
        "--workers",
        metavar="N",
        type=number,
        help="train on N workers of Dask, which each have a device; the result does not depend on N, which must divide "
        f"the batch of {Config.batch_size} digits",
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="train on the workers of a cluster that is running, such as tcp://host:8786; without --workers, on all of "
        "them",
    )


def are_given(options: argparse.Namespace) -> bool:
    """Return whether the options ask for a training on workers."""
    return options.workers is not None or options.scheduler is not None


def require_fitting(options: argparse.Namespace) -> None:
    """Insist that the other options fit a training on workers.

    Raises:
        ValueError: An option does not fit, or the number of workers does not divide the batch.
        RuntimeError: Dask is not installed.
    """
    if options.devices is not None:
        raise ValueError("--devices is for one process; with --workers or --scheduler, each worker has one device")
    if options.graph:
        raise ValueError("--graph does not fit --workers and --scheduler: a graph has no exchange between workers")
    if options.kernel not in (None, SETTINGS["kernel"]):
        raise ValueError(
            f"--kernel {options.kernel} does not fit --workers and --scheduler: its result depends on the number of "
            "workers; workers use --kernel exact"
        )
    if options.memory_viz is not None:
        raise ValueError("--memory-viz shows this process, and --workers and --scheduler train in other processes")
    if options.workers is not None and (options.workers < 1 or Config.batch_size % options.workers):
        raise ValueError(f"--workers is {options.workers}; it must divide the batch of {Config.batch_size} digits")
    if importlib.util.find_spec(_PACKAGE) is None:
        raise RuntimeError("--workers and --scheduler need Dask; install it by: pip install 'distributed>=2024.12'")


@contextlib.contextmanager
def trainer(options: argparse.Namespace, screen: Console) -> Iterator[Callable[..., Result]]:
    """Give a function that trains on the workers, like ``train()`` of a training in one process.

    Raises:
        OSError: There is no scheduler at the address.
        RuntimeError: This machine has fewer devices than workers.
    """
    if options.scheduler is None:
        told = emulate_for_want_of_gpu(options.workers)
        if told:
            screen.print(told)
    # Dask's import takes long, and other trainings do not need Dask.
    from tcuda.demo.workers import cluster
    from tcuda.demo.workers.train import train, wait_for_workers

    with cluster.local(options.workers) if options.scheduler is None else cluster.running(options.scheduler) as client:
        count = options.workers or len(wait_for_workers(client))
        yield partial(train, client, count, on_loss=partial(report.show_loss, screen))
