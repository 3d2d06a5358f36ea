"""The shapes of the parameters, in the order of the parameters in one vector."""

from __future__ import annotations

import math

from tcuda.demo.digits import CLASSES, PIXELS


def parameter_shapes(hidden_units: int) -> list[tuple[int, ...]]:
    """Return the shapes of the weights and the biases of the hidden layer, and then those of the output layer."""
    return [(PIXELS, hidden_units), (hidden_units,), (hidden_units, CLASSES), (CLASSES,)]


def parameter_count(hidden_units: int) -> int:
    """Return the number of all weights and biases."""
    return sum(map(math.prod, parameter_shapes(hidden_units)))
