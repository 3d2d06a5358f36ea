"""The table of CuPy's names says which of them emulated devices have, and why the others are missing."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from support import cupy_names
from support.cupy_tables import SIGNATURES, files

if TYPE_CHECKING:
    from pathlib import Path

TABLE = cupy_names.read()
FILES = files(TABLE, json.loads(SIGNATURES.read_text(encoding="utf-8")))


def test_the_table_says_what_is_there_and_why_the_rest_is_missing() -> None:
    assert cupy_names.complaints(TABLE) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_files_are_as_the_command_writes_them(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == FILES[path], "run python tests/support/cupy_tables.py"


def test_every_row_gives_a_reason() -> None:
    assert all(row["names"] and row["reason"].endswith(".") for row in [*TABLE["rows"], *TABLE["signatures"]])


def test_the_table_has_the_names_of_all_kinds_of_modules() -> None:
    names = TABLE["names"]
    for name in (
        "cupy.sum",
        "cupy.linalg.norm",
        "cupy.ndarray.take",
        "cupy.cuda.Stream.synchronize",
        "cupyx.scatter_add",
    ):
        assert name in names
    assert names["cupy.take"]["signature"] == "(a, indices, axis=None, out=None)"
    assert not [name for name in names if any(part.startswith("_") for part in name.split("."))]


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("cupy.sum", "numpy"),
        ("cupy.ndarray.shape", "numpy"),
        ("cupy.RawKernel", "here"),
        ("cupy.random.uniform", "here"),
        ("cupy.ufunc.nin", "numpy"),  # an attribute of the instances
        ("cupy.ufunc.colour", "absent"),
        ("cupy.no_such_name", "absent"),
        ("cupy.linalg.no_such_name", "absent"),
        ("cupy_of_the_future.sum", "absent"),
    ],
)
def test_the_state_of_a_name_is_read_from_what_is_there(name: str, state: str) -> None:
    assert cupy_names.state(name) == state


def changed(**rows: Any) -> dict[str, Any]:
    """Return the table with other rows for some names."""
    table = copy.deepcopy(TABLE)
    table["names"] |= {name.replace("__", "."): row for name, row in rows.items()}
    return table


@pytest.mark.parametrize(
    ("name", "row", "complaint"),
    [
        ("cupy.sum", {"kind": "function", "state": "absent"}, "cupy.sum is said to be absent, and is numpy"),
        ("cupy.colour", {"kind": "function", "state": "here"}, "cupy.colour is said to be here, and is absent"),
        ("cupy.colour", {"kind": "function", "state": "absent"}, "cupy.colour is missing, and no row says why"),
        (
            "cupy.mean",
            {"kind": "function", "signature": "(a, colour=None)", "state": "numpy"},
            "cupy.mean takes (a, axis=None, dtype=None, out=None, keepdims=False), CuPy's takes (a, colour=None), and "
            "no row says why",
        ),
    ],
)
def test_a_wrong_state_is_reported(name: str, row: dict[str, str], complaint: str) -> None:
    assert complaint in cupy_names.complaints(changed(**{name.replace(".", "__"): row}))


def test_a_row_that_no_name_needs_is_reported() -> None:
    table = changed()
    table["rows"].append({"names": ["cupy.sum", "cupy.nowhere.*"], "reason": "Both are wrong."})
    table["signatures"].append({"names": ["cupy.medi*"], "reason": "The parameters are equal."})
    assert cupy_names.complaints(table) == [
        "cupy.sum: the row is stale",
        "cupy.nowhere.*: the row is stale",
        "cupy.medi*: the row on the signature is stale",
    ]


def test_the_script_corrects_the_states_and_keeps_the_reasons_that_are_needed() -> None:
    table = changed(
        cupy__sum={"kind": "function", "state": "absent"}, cupy__colour={"kind": "function", "state": "here"}
    )
    table["rows"] += [
        {"names": ["cupy.colour", "cupy.sum"], "reason": "The device is grey."},
        {"names": ["cupy.nowhere"], "reason": "Nobody needs the row."},
    ]
    cupy_names.write_states(table)
    assert table["names"]["cupy.sum"]["state"] == "numpy"
    assert table["names"]["cupy.colour"]["state"] == "absent"
    assert table["rows"] == [*TABLE["rows"], {"names": ["cupy.colour"], "reason": "The device is grey."}]
    assert cupy_names.complaints(table) == []


def test_a_row_explains_the_other_parameters_of_all_names_of_its_patterns() -> None:
    other = {"kind": "function", "signature": "(colour)", "state": "numpy"}
    table = changed(cupy__mean=other, cupy__median=other)
    assert len(cupy_names.complaints(table)) == 2
    table["signatures"].append({"names": ["cupy.me*an"], "reason": "The device is grey."})
    assert cupy_names.complaints(table) == []
    cupy_names.write_states(table)
    assert table["signatures"][-1]["names"] == ["cupy.me*an"]
    table["names"] = TABLE["names"]
    cupy_names.write_states(table)
    assert table["signatures"] == TABLE["signatures"]


def test_the_first_row_with_a_pattern_for_a_name_tells_the_reason() -> None:
    rows = [{"names": ["cupy.cuda.cub*"], "reason": "First."}, {"names": ["cupy.cuda.*"], "reason": "Second."}]
    assert [cupy_names.reason(f"cupy.{name}", rows) for name in ("cuda.cub.sum", "cuda.Event", "sum")] == [
        "First.",
        "Second.",
        None,
    ]


def test_a_name_that_the_installed_numpy_lacks_too_is_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        cupy_names, "state", lambda name: "absent" if name == "cupy.sum" else TABLE["names"][name]["state"]
    )
    assert cupy_names.complaints(TABLE) == ["cupy.sum is said to be numpy, and is absent"]
    monkeypatch.setattr(cupy_names, "on_the_host", lambda name: cupy_names.MISSING)
    assert "cupy.sum is said to be numpy, and is absent" not in cupy_names.complaints(TABLE)


def test_signatures_are_compared_without_annotations_and_addresses() -> None:
    def function(a: int, dtype: Any = float, mode: object = SimpleNamespace) -> None: ...

    assert cupy_names.parameters(function) == "(a, dtype=float, mode=SimpleNamespace)"
    assert cupy_names.parameters(max) is None


def test_the_names_of_the_table_are_those_of_the_installed_cupy() -> None:
    cupy = pytest.importorskip("cupy")
    if cupy.__version__ != TABLE["version"]:
        pytest.skip(f"the table has the names of CuPy {TABLE['version']}")
    program = "from support import installed_cupy; print(*installed_cupy.of_cupy())"
    path = str(cupy_names.TABLE.parents[1])
    command = [sys.executable, "-W", "ignore", "-c", f"import sys; sys.path.insert(0, {path!r}); {program}"]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    assert set(TABLE["names"]) <= set(printed)
