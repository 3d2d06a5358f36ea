"""How parameters follow their gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda import xp

if TYPE_CHECKING:
    from tcuda.demo.arrays import DeviceArray


class Momentum:
    """Stochastic gradient descent with momentum, as ``torch.optim.SGD`` defines it.

    Args:
        parameters: The vector to update.
        learning_rate: Step size.
        momentum: How much of the last step goes into the next.

    Attributes:
        velocity: The last step, before it was scaled by the step size.
    """

    def __init__(self, parameters: DeviceArray, learning_rate: float, momentum: float) -> None:
        self._parameters = parameters
        self.velocity = xp.zeros_like(parameters)
        self._learning_rate = learning_rate
        self._momentum = momentum

    def step(self, gradient: DeviceArray) -> None:
        """Update the parameters in place."""
        self.velocity *= self._momentum
        self.velocity += gradient
        self._parameters -= self._learning_rate * self.velocity
