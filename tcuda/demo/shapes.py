"""The shapes of the parameters, in the order in which they lie in one vector."""

from __future__ import annotations

import math

from tcuda.demo.digits import CLASSES, PIXELS


def parameter_shapes(hidden_units: int) -> list[tuple[int, ...]]:
    """Return the shapes of weights and biases of the hidden layer, then of weights and biases of the output."""
    return [(PIXELS, hidden_units), (hidden_units,), (hidden_units, CLASSES), (CLASSES,)]


def parameter_count(hidden_units: int) -> int:
    """Return how many numbers that are."""
    return sum(map(math.prod, parameter_shapes(hidden_units)))
