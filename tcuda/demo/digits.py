"""The data: 1,797 handwritten digits of UCI's "Optical Recognition of Handwritten Digits" (see ``DATA.md``)."""

from __future__ import annotations

import importlib.resources
from typing import TYPE_CHECKING, NamedTuple

import numpy

if TYPE_CHECKING:
    from tcuda.demo.arrays import Rows

PIXELS = 64
"""Pixels of an image, 8 by 8."""

BRIGHTEST = 16
"""The value of a pixel that is all ink; 0 is paper."""

CLASSES = 10
"""Digits, 0 to 9."""


class Digits(NamedTuple):
    """Digits to learn from and digits to be examined on, a row each: 64 pixels, then the digit."""

    train: Rows
    test: Rows


def load() -> Digits:
    """Return 1,437 digits to train with and 360 to test with: every fifth of each class, the same at every run."""
    with (importlib.resources.files("tcuda.demo") / "digits.npz").open("rb") as file:
        rows: Rows = numpy.load(file)["rows"]
    by_class = numpy.argsort(rows[:, PIXELS], kind="stable")
    test = by_class[::5]
    return Digits(train=numpy.delete(rows, test, axis=0), test=rows[test])
