"""The data: 1,797 handwritten digits of UCI's "Optical Recognition of Handwritten Digits" (see ``DATA.md``)."""

from __future__ import annotations

import importlib.resources
from typing import TYPE_CHECKING, NamedTuple

import numpy

if TYPE_CHECKING:
    from tcuda.demo.arrays import Rows

PIXELS = 64
"""The number of pixels of an image, 8 by 8."""

BRIGHTEST = 16
"""The value of a pixel full of ink; a pixel without ink is 0."""

CLASSES = 10
"""The number of classes: the digits 0 to 9."""


class Digits(NamedTuple):
    """Digits for training and digits for testing. Each row has the 64 pixels of an image and then the digit."""

    train: Rows
    test: Rows


def load() -> Digits:
    """Return 1,437 digits for training and 360 for testing: every fifth of all digits, sorted by class."""
    with (importlib.resources.files("tcuda.demo") / "digits.npz").open("rb") as file:
        rows: Rows = numpy.load(file)["rows"]
    by_class = numpy.argsort(rows[:, PIXELS], kind="stable")
    test = by_class[::5]
    return Digits(train=numpy.delete(rows, test, axis=0), test=rows[test])
