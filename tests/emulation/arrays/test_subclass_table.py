"""Subclasses of the array are what they are in CuPy, row by row of a table that was read from a GPU."""

from __future__ import annotations

import importlib
import json
import warnings
from typing import TYPE_CHECKING, Any

import pytest

from support.folders import TESTS
from tcuda import xp

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLE: dict[str, Any] = json.loads((TESTS / "data" / "subclasses_on_h200.json").read_text(encoding="utf-8"))
SETUP = compile("\n".join(TABLE["setup"]), "setup", "exec")
REASONS = {code: row["reason"] for row in TABLE["differences"] for code in row["codes"]}

IS_EMULATED = xp.__name__ != "cupy"
_CHUNK = 300
"""The rows of a test."""


def _rows() -> Iterator[tuple[str, str]]:
    """Yield the code and the expected outcome of each row that was written by hand."""
    for outcome, codes in TABLE["rows"].items():
        yield from ((code, outcome) for code in codes)


def _swept() -> Iterator[tuple[str, str]]:
    """Yield the code and the expected outcome of one call of each function."""
    for outcome, calls in TABLE["swept"].items():
        for arguments, names in calls.items():
            yield from ((f"r = cp.{name}({arguments})", outcome) for name in names.split())


ROWS, SWEPT = list(_rows()), list(_swept())


def _cupyx() -> Any:
    """Return ``cupyx`` with the modules that the rows use."""
    package = "tcuda.emulation.cupyx" if IS_EMULATED else "cupyx"
    for name in ("sparse", "ndimage", "special", "signal", "linalg", "stats", "spatial.distance", "fft"):
        importlib.import_module(f"{package}.scipy.{name}")
    return importlib.import_module(package)


def outcome(code: str, expected: str, cupyx: Any) -> str:
    """Return what comes of a row, in the words of the table. An error is also an error of the classes above its own."""
    space: dict[str, Any] = {"cp": xp, "cupyx": cupyx, "__name__": "subclasses"}
    exec(SETUP, space)  # the table is part of the tests
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(code, space)
            return described(space["r"], {id(array) for array, _ in space["CALLS"]})
    except Exception as error:  # the class of the error is the outcome
        names = [kind.__name__ for kind in type(error).__mro__]
        return expected if expected in names else names[0]


def described(value: Any, finalized: set[int], depth: int = 0) -> str:
    """Return a result in the words of the table.

    Args:
        value: The result, or a part of it.
        finalized: The arrays for which ``__array_finalize__`` was called, by their ``id()``.
        depth: How many lists and tuples the part lies in.
    """
    kind = type(value).__name__
    if isinstance(value, xp.ndarray):
        tag = getattr(value, "tag", None)
        named = kind if tag is None else f"{kind} {tag}"
        return named if tag is None or id(value) in finalized else f"={named}"
    if isinstance(value, (tuple, list)) and depth < 2:
        if len(value) > 12:
            return kind
        return f"{kind}[{', '.join(described(part, finalized, depth + 1) for part in value)}]"
    if value is None or type(value) in (bool, int, float, str):
        return f"{kind} {value!r}"
    return kind


def _chunks(rows: list[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    return [rows[start : start + _CHUNK] for start in range(0, len(rows), _CHUNK)]


def differing(rows: list[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Return, by code, the outcome of the table and the outcome here, for the rows where these differ."""
    cupyx = _cupyx()
    found = ((code, expected, outcome(code, expected, cupyx)) for code, expected in rows)
    return {code: (expected, here) for code, expected, here in found if here != expected}


@pytest.mark.filterwarnings("ignore:cupyx.jit.rawkernel is experimental:FutureWarning")
@pytest.mark.parametrize("rows", _chunks(ROWS), ids=lambda rows: rows[0][0])
def test_a_subclass_does_what_the_table_says(rows: list[tuple[str, str]]) -> None:
    if not IS_EMULATED and xp.__version__ != TABLE["cupy"]:
        pytest.skip(f"the table was read from CuPy {TABLE['cupy']}")
    known = REASONS if IS_EMULATED else {}
    assert {code: both for code, both in differing(rows).items() if code not in known} == {}


@pytest.mark.emulated  # a GPU compiles a kernel for each of these rows
@pytest.mark.parametrize("rows", _chunks(SWEPT), ids=lambda rows: rows[0][0])
def test_every_function_does_with_a_subclass_what_the_table_says(rows: list[tuple[str, str]]) -> None:
    assert {code: both for code, both in differing(rows).items() if code not in REASONS} == {}


@pytest.mark.emulated
def test_every_difference_from_the_table_is_one() -> None:
    rows = [(code, expected) for code, expected in (*ROWS, *SWEPT) if code in REASONS]
    assert sorted(differing(rows)) == sorted(REASONS)
    assert all(reason.endswith(".") for reason in REASONS.values())
