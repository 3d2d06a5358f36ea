"""Operands of functions on arrays, by the names in expressions."""

from __future__ import annotations

import numpy as np

RANDOM = np.random.default_rng(0)
OPERANDS = {
    "x": RANDOM.standard_normal((3, 4)),
    "y": RANDOM.standard_normal((3, 4)),
    "square": RANDOM.standard_normal((4, 4)) + 4 * np.eye(4),
    "positive": np.eye(3) * 4 + 1,
    "vector": np.array([3.0, 1.0, 2.0, 1.0]),
    "complex": np.array([1 + 2j, 3 - 1j, 2 + 0j]),
    "gaps": np.array([[1.0, np.nan, 3.0], [4.0, 5.0, np.nan]]),
    "counts": np.array([2, 0, 1, 2, 2]),
    "mask": np.array([[True, False, True, False]] * 3),
    "bits": np.array([1, 0, 255, 16], dtype=np.uint8),
    "places": np.array([[2, 0, 1, 1]]),
    "zeros": np.array([0, 0, 1, 2, 0]),
}
