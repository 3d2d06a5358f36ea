"""What a training run gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcuda.demo.arrays import Floats
    from tcuda.demo.config import Config


@dataclass(frozen=True)
class Epoch:
    """How an epoch went: mean cross entropy, and which part of the digits was recognised while it ran."""

    number: int
    loss: float
    accuracy: float


@dataclass(frozen=True)
class DeviceMemory:
    """A device at the end of the training, with everything still in its memory."""

    index: int
    name: str
    used: int
    free: int


@dataclass(frozen=True)
class Result:
    """What a training run gave.

    Attributes:
        config: The settings it ran with.
        resumed_after: The epoch of the checkpoint that it went on from; None if it began at the beginning.
        epochs: How each epoch went, those before the checkpoint too.
        accuracy: Which part of the digits that were held out it recognises.
        parameters: The trained network, as one vector on the host.
        phases: Milliseconds of every phase, summed over the devices; of this run alone, if it was resumed.
        elapsed: Milliseconds from the first batch of this run to the last update on device 0; less than the sum of the
            phases where some of them ran side by side.
        devices: The devices.
    """

    config: Config
    resumed_after: int | None
    epochs: list[Epoch]
    accuracy: float
    parameters: Floats
    phases: dict[str, float]
    elapsed: float
    devices: list[DeviceMemory]
