"""The network: 64 pixels, a hidden layer of ReLUs, ten classes; as plain functions on arrays of the current device."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from tcuda import xp
from tcuda.demo.digits import BRIGHTEST, CLASSES, PIXELS
from tcuda.demo.shapes import parameter_shapes

if TYPE_CHECKING:
    from tcuda.demo.arrays import DeviceArray, Floats


class Parameters:
    """Weights and biases, or gradients of them.

    The weights and biases are views of one flat vector, so that an update, a sum over devices or a copy is one
    operation.

    Args:
        flat: The flat vector.
        hidden_units: The width of the hidden layer.

    Attributes:
        flat: The flat vector.
        hidden_weight: The weights from the pixels to the hidden units, a view of ``flat``.
        hidden_bias: The biases of the hidden units, a view of ``flat``.
        output_weight: The weights from the hidden units to the classes, a view of ``flat``.
        output_bias: The biases of the classes, a view of ``flat``.
    """

    def __init__(self, flat: DeviceArray, hidden_units: int) -> None:
        self.flat = flat
        views = []
        start = 0
        for shape in parameter_shapes(hidden_units):
            end = start + math.prod(shape)
            views.append(flat[start:end].reshape(shape))
            start = end
        self.hidden_weight, self.hidden_bias, self.output_weight, self.output_bias = views


def initial_parameters(hidden_units: int) -> Floats:
    """Draw the initial parameters and return them as a flat vector on the host (He et al. 2015; biases are 0)."""
    parts = [
        xp.random.standard_normal(math.prod(shape), xp.float32) * math.sqrt(2 / shape[0])
        if len(shape) == 2
        else xp.zeros(shape, xp.float32)
        for shape in parameter_shapes(hidden_units)
    ]
    parameters: Floats = xp.concatenate(parts).get()
    return parameters


class Activations(NamedTuple):
    """The activations of the layers, which the backward pass needs."""

    pixels: DeviceArray
    hidden: DeviceArray
    log_probabilities: DeviceArray


def unpack(rows: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """Return the images of ``rows`` as pixels from 0 to 1, and the digits of ``rows`` as one-hot rows."""
    pixels = rows[:, :PIXELS].astype(xp.float32) / BRIGHTEST
    targets = (rows[:, PIXELS:] == xp.arange(CLASSES)).astype(xp.float32)
    return pixels, targets


def forward(parameters: Parameters, pixels: DeviceArray) -> Activations:
    """Return the activations of every layer for the images."""
    hidden = xp.maximum(pixels @ parameters.hidden_weight + parameters.hidden_bias, 0)
    scores = hidden @ parameters.output_weight + parameters.output_bias
    scores = scores - scores.max(axis=1, keepdims=True)  # Without this line exp() could overflow.
    log_probabilities = scores - xp.log(xp.exp(scores).sum(axis=1, keepdims=True))
    return Activations(pixels, hidden, log_probabilities)


def backward(parameters: Parameters, activations: Activations, targets: DeviceArray, gradients: Parameters) -> None:
    """Write the gradients of :func:`loss` into ``gradients``."""
    pixels, hidden, log_probabilities = activations
    output_error = xp.exp(log_probabilities) - targets
    hidden_error = (output_error @ parameters.output_weight.T) * (hidden > 0)
    gradients.output_weight[...] = hidden.T @ output_error
    gradients.output_bias[...] = output_error.sum(axis=0)
    gradients.hidden_weight[...] = pixels.T @ hidden_error
    gradients.hidden_bias[...] = hidden_error.sum(axis=0)


def mean(gradients: DeviceArray, batch_size: int) -> DeviceArray:
    """Return the mean of ``gradients``, which are sums over ``batch_size`` digits."""
    return gradients / batch_size


def loss(activations: Activations, targets: DeviceArray) -> DeviceArray:
    """Return the cross entropy, summed over the images."""
    return -(activations.log_probabilities * targets).sum()


def correct(activations: Activations, targets: DeviceArray) -> DeviceArray:
    """Return the number of images that the network recognised."""
    return (activations.log_probabilities.argmax(axis=1) == targets.argmax(axis=1)).sum()
