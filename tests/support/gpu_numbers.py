"""The numbers that a GPU gives for special operands, as measured with CuPy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

MEASURED: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "numbers_on_h200.json").read_text())
"""The table, whose entry ``"source"`` says what each entry is."""

SPECIAL = [float(text) for text in MEASURED["special"]]


def same(found: Any, expected: Any) -> bool:
    """Return whether two arrays of the host have the same numbers, signs of zeros, and NaN at the same places."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype.kind == "c":
        return same(found.real, expected.real) and same(found.imag, expected.imag)
    if found.dtype.kind != "f":
        return found.tolist() == expected.tolist()
    return bool(
        np.array_equal(found, expected, equal_nan=True)
        and (np.signbit(found) == np.signbit(expected))[~np.isnan(found)].all()
    )
