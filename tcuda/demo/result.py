"""The result of a training run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcuda.demo.arrays import Floats
    from tcuda.demo.config import Config


@dataclass(frozen=True)
class Epoch:
    """The result of an epoch: the mean cross entropy and the fraction of recognised digits, both during the epoch."""

    number: int
    loss: float
    accuracy: float


@dataclass(frozen=True)
class DeviceMemory:
    """The memory of a device at the end of the training, before the arrays are freed."""

    index: int
    name: str
    used: int
    free: int


@dataclass(frozen=True)
class Worker:
    """A worker at the end of the training.

    Attributes:
        rank: The number of the worker in the training.
        address: The address of the worker.
        device: The memory of the worker's device.
    """

    rank: int
    address: str
    device: DeviceMemory


@dataclass(frozen=True)
class Loss:
    """A loss of workers, after which the training went on from the checkpoint before the epoch.

    Attributes:
        epoch: The epoch in which the workers were lost.
        workers: The addresses of the workers.
    """

    epoch: int
    workers: tuple[str, ...]


@dataclass(frozen=True)
class Cluster:
    """The cluster on which a training ran.

    Attributes:
        runtime: The name of the runtime of the workers.
        workers: The workers, by their rank.
        losses: The losses of workers during the training.
    """

    runtime: str
    workers: list[Worker]
    losses: list[Loss]


@dataclass(frozen=True)
class Result:
    """The result of a training run.

    Attributes:
        config: The settings of the run.
        resumed_after: The epoch of the checkpoint from which the run went on; None if there was no checkpoint.
        epochs: The results of all epochs, including the epochs before the checkpoint.
        accuracy: The fraction of the held-out digits that the network recognises.
        parameters: The trained parameters, as one vector on the host.
        phases: The milliseconds of every phase of this run, summed over the devices.
        elapsed: The milliseconds from the first batch of this run to the last update on device 0. The sum of the phases
            is larger if phases ran at the same time. For a training on a cluster, the clock is that of the program.
        devices: The memory of the devices.
        cluster: The cluster; None for a training in one process.
    """

    config: Config
    resumed_after: int | None
    epochs: list[Epoch]
    accuracy: float
    parameters: Floats
    phases: dict[str, float]
    elapsed: float
    devices: list[DeviceMemory]
    cluster: Cluster | None = None
