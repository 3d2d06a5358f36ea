"""The optimizer, which updates the parameters from their gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda import xp

if TYPE_CHECKING:
    from tcuda.demo.arrays import DeviceArray


class Momentum:
    """Stochastic gradient descent with momentum, as ``torch.optim.SGD`` defines it.

    Args:
        parameters: The vector to update.
        learning_rate: The step size.
        momentum: The fraction of the last step that is added to the next step.

    Attributes:
        velocity: The last step, before the multiplication by the step size.
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
