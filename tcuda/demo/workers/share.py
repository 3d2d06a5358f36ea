"""What the workers and the program send to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tcuda.demo.arrays import Floats, RngState
    from tcuda.demo.result import DeviceMemory


class State(NamedTuple):
    """The state of the training between two epochs.

    Attributes:
        parameters: The parameters of the network, as one vector on the host.
        velocity: The momentum of the parameters, as one vector on the host.
        rng_state: The state of the generator that draws the order of the digits.
    """

    parameters: Floats
    velocity: Floats
    rng_state: RngState


class Share(NamedTuple):
    """The part of a worker in an epoch.

    Attributes:
        digits: The number of digits that the worker has shown to the network.
        loss: The sum of the cross entropy over these digits.
        correct: The number of these digits that the network recognised.
        recognised: The number of held-out digits of this worker that the network recognises after the last epoch; None
            after other epochs.
        phases: The milliseconds of every phase, by the clock of the device.
        runtime: The name of the worker's runtime.
        memory: The memory of the worker's device.
        state: The state after the epoch. All workers have the same state.
    """

    digits: int
    loss: float
    correct: int
    recognised: int | None
    phases: dict[str, float]
    runtime: str
    memory: DeviceMemory
    state: State


class LostMemberError(RuntimeError):
    """A worker is asked for an epoch of a team that the worker has not joined, because the worker was started again."""
