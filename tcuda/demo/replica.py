"""The part of one device in the training: a copy of the network and a share of every batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tcuda
from tcuda import xp
from tcuda.demo import network
from tcuda.demo.network import Parameters
from tcuda.demo.optimizer import Momentum
from tcuda.demo.passes import passes
from tcuda.demo.phases import Phases

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda.demo.arrays import DeviceArray, Floats, Rows
    from tcuda.demo.config import Config


class Replica:
    """The network on one device.

    The methods of a training step only launch work and do not wait for the device. Events order the work on the arrays
    of another device. The methods that return a number or an array of the host wait for the device.

    Args:
        device: The index of the device.
        parameters: The initial parameters, on the host.
        config: The settings.
        velocity: The momentum of the parameters, on the host; None for zero.

    Raises:
        RuntimeError: The settings ask for kernels of CUDA C++, the devices are emulated, and the machine has no C++
            compiler.

    Attributes:
        device: The index of the device.
        parameters: The parameters of the network.
        phases: The times of the phases on the device.
    """

    def __init__(self, device: int, parameters: Floats, config: Config, velocity: Floats | None = None) -> None:
        self.device = device
        self.phases = Phases()
        with tcuda.device(device):
            self._passes = passes(config.kernel)
            self.parameters = Parameters(xp.array(parameters), config.hidden_units)
            self._gradients = Parameters(
                xp.zeros_like(self.parameters.flat, dtype=self._passes.dtype), config.hidden_units
            )
            self._optimizer = Momentum(self.parameters.flat, config.learning_rate, config.momentum)
            if velocity is not None:
                self._optimizer.velocity.set(velocity)
            self._loss = xp.zeros((), self._passes.dtype)
            self._correct = xp.zeros((), xp.int64)
        self._gradients_ready = tcuda.Event()
        self._parameters_ready = tcuda.Event()

    def compute_gradients(self, batch: DeviceArray) -> None:
        """Run ``batch`` through the network and back."""
        with tcuda.device(self.device):
            with self.phases.measure("forward"):
                activations, targets = self._forward(batch)
            with self.phases.measure("backward"):
                self._backward(activations, targets)
            self._gradients_ready.record()

    def add_gradients_of(self, other: Replica) -> None:
        """Add the gradients of the device of ``other`` to the gradients of this device."""
        with tcuda.device(self.device):
            other._gradients_ready.wait()
            with self.phases.measure("exchange"):
                self._gradients.flat += xp.array(other._gradients.flat)

    def sum_gradients(self, all_reduce: Callable[[DeviceArray], None]) -> None:
        """Let ``all_reduce`` replace the gradients by their sum over all processes, on the current stream."""
        with tcuda.device(self.device), self.phases.measure("exchange"):
            all_reduce(self._gradients.flat)

    def update(self, batch_size: int) -> None:
        """Update the parameters from the gradients, which are sums over the ``batch_size`` digits of all devices."""
        with tcuda.device(self.device):
            with self.phases.measure("update"):
                self._follow_gradients(batch_size)
            self._parameters_ready.record()

    def copy_parameters_of(self, other: Replica) -> None:
        """Copy the parameters of the device of ``other`` to this device.

        The wait also orders the next step. Later work on this device runs only after the other device has read the
        gradients of this device. The other device changes its parameters only after it has waited for gradients that
        this device computes after the copy.
        """
        with tcuda.device(self.device):
            other._parameters_ready.wait()
            with self.phases.measure("exchange"):
                self.parameters.flat[...] = xp.array(other.parameters.flat)

    def take_score(self) -> tuple[float, int]:
        """Return the sum of the loss and the number of recognised digits since the last call; wait for the device."""
        with tcuda.device(self.device):
            score = float(self._loss), int(self._correct)
            self._loss[...] = 0
            self._correct[...] = 0
        self.phases.collect()
        return score

    def parameters_on_host(self) -> Floats:
        """Return a copy of the parameters on the host."""
        with tcuda.device(self.device):
            parameters: Floats = self.parameters.flat.get()
        return parameters

    def velocity_on_host(self) -> Floats:
        """Return a copy of the momentum on the host. Only the device that updates the parameters has the momentum."""
        with tcuda.device(self.device):
            velocity: Floats = self._optimizer.velocity.get()
        return velocity

    def count_recognised(self, rows: Rows) -> int:
        """Return how many of ``rows``, digits on the host, the network recognises."""
        with tcuda.device(self.device):
            pixels, targets = network.unpack(xp.array(rows))
            return int(network.correct(self._passes.forward(self.parameters, pixels), targets))

    # Work on the current device

    def _forward(self, batch: DeviceArray) -> tuple[network.Activations, DeviceArray]:
        """Run ``batch`` through the network and add to the score; return the arguments of :meth:`_backward`."""
        pixels, targets = network.unpack(batch)
        activations = self._passes.forward(self.parameters, pixels)
        self._loss += network.loss(activations, targets)
        self._correct += network.correct(activations, targets)
        return activations, targets

    def _backward(self, activations: network.Activations, targets: DeviceArray) -> None:
        self._passes.backward(self.parameters, activations, targets, self._gradients)

    def _follow_gradients(self, batch_size: int) -> None:
        self._optimizer.step(self._passes.mean(self._gradients.flat, batch_size))
