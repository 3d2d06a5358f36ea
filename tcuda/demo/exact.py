"""The passes of the network in arithmetic whose results do not depend on the shares of a batch, nor on the machine.

Floating-point sums depend on the order of the additions, so the gradients of a batch normally depend on the number of
devices that share the batch, and on the library that multiplies matrices. This module avoids rounding in sums. Every
factor of a product is first rounded to a grid: a multiple of a power of two, within a limit. The products and all their
partial sums are then multiples of a smaller power of two, and need at most the 53 bits of a ``float64``. The additions
are exact, and every order of exact additions gives the same bits.

The other operations work on one number at a time: addition, multiplication, division, square root and rounding. IEEE
754 defines the result of these operations to the bit. The exponential function and the logarithm are built from these
operations, because each library rounds its own functions in its own way.

The bits that a sum of the largest batch (1,437 digits) and the largest network (65,536 hidden units) needs:

| sum | unit of the products | largest sum | bits |
| --- | --- | --- | --- |
| hidden units, over the pixels | 2**-20 | 2**10 | 30 |
| scores, over the hidden units | 2**-26 | 2**26 | 52 |
| errors of the hidden units, over the classes | 2**-40 | 2**7 | 47 |
| gradients of the hidden weights, over the digits | 2**-28 | 2**18 | 46 |
| gradients of the output weights, over the digits | 2**-34 | 2**17 | 51 |
| cross entropy, over the digits | 2**-24 | 2**18 | 42 |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tcuda import xp
from tcuda.demo.network import Activations

if TYPE_CHECKING:
    from tcuda.demo.arrays import DeviceArray
    from tcuda.demo.network import Parameters


class Grid(NamedTuple):
    """The multiples of ``2**-digits`` from ``-limit`` to ``limit``."""

    limit: float
    digits: int

    def round(self, values: DeviceArray) -> DeviceArray:
        """Return the nearest numbers of the grid, as ``float64``."""
        scale = 2.0**self.digits
        return xp.rint(xp.clip(values.astype(xp.float64), -self.limit, self.limit) * scale) / scale


WEIGHTS = Grid(8.0, 16)
"""The grid of weights and biases."""

HIDDEN = Grid(64.0, 10)
"""The grid of the hidden units."""

ERRORS = Grid(128.0, 24)
"""The grid of the errors of a layer, of exponentials and of logarithms of probabilities."""

_SMALLEST_EXPONENT = -64.0
_SQUARINGS = 8
_ROOTS = 4


def forward(parameters: Parameters, pixels: DeviceArray) -> Activations:
    """Return the activations of every layer for the images."""
    pixels = pixels.astype(xp.float64)
    hidden = pixels @ WEIGHTS.round(parameters.hidden_weight) + WEIGHTS.round(parameters.hidden_bias)
    hidden = HIDDEN.round(xp.maximum(hidden, 0))
    scores = hidden @ WEIGHTS.round(parameters.output_weight) + WEIGHTS.round(parameters.output_bias)
    scores = scores - scores.max(axis=1, keepdims=True)
    log_sum = logarithm(ERRORS.round(exponential(scores)).sum(axis=1, keepdims=True))
    return Activations(pixels, hidden, ERRORS.round(scores - log_sum))


def backward(parameters: Parameters, activations: Activations, targets: DeviceArray, gradients: Parameters) -> None:
    """Write the gradients of the loss into ``gradients``, an array of ``float64``."""
    pixels, hidden, log_probabilities = activations
    output_error = ERRORS.round(exponential(log_probabilities) - targets)
    hidden_error = ERRORS.round((output_error @ WEIGHTS.round(parameters.output_weight).T) * (hidden > 0))
    gradients.output_weight[...] = hidden.T @ output_error
    gradients.output_bias[...] = output_error.sum(axis=0)
    gradients.hidden_weight[...] = pixels.T @ hidden_error
    gradients.hidden_bias[...] = hidden_error.sum(axis=0)


def mean(gradients: DeviceArray, batch_size: int) -> DeviceArray:
    """Return the mean of ``gradients``, which are exact sums over ``batch_size`` digits, as ``float32``."""
    # The sum of two zeros depends on their signs, and so on the shares. Adding 0 makes all zeros positive.
    return (gradients / batch_size + 0.0).astype(xp.float32)


def exponential(exponents: DeviceArray) -> DeviceArray:
    """Return ``exp(exponents)`` for exponents of at most 1.

    The exponential of a part of the exponent is computed by Taylor's series, and then squared eight times.
    """
    part = xp.maximum(exponents, _SMALLEST_EXPONENT) / 2**_SQUARINGS
    power = (((part / 4 + 1) * part / 3 + 1) * part / 2 + 1) * part + 1
    for _ in range(_SQUARINGS):
        power = power * power
    return power


def logarithm(numbers: DeviceArray) -> DeviceArray:
    """Return ``log(numbers)`` for numbers from 1 to 10, the sums of ten exponentials.

    The logarithm of the sixteenth root is computed by four terms of the series of the area tangent.
    """
    for _ in range(_ROOTS):
        numbers = xp.sqrt(numbers)
    ratio = (numbers - 1) / (numbers + 1)
    square = ratio * ratio
    return (((square / 7 + 1 / 5) * square + 1 / 3) * square + 1) * ratio * (2 * 2**_ROOTS)
