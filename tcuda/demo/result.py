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
            is larger if phases ran at the same time.
        devices: The memory of the devices.
    """

    config: Config
    resumed_after: int | None
    epochs: list[Epoch]
    accuracy: float
    parameters: Floats
    phases: dict[str, float]
    elapsed: float
    devices: list[DeviceMemory]
