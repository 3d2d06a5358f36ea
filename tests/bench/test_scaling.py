"""The model of the cost of data-parallel training, and its tables in the documentation."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.folders import REPOSITORY

if TYPE_CHECKING:
    from types import ModuleType

SCRIPT = REPOSITORY / "bench" / "scaling.py"
PAGE = REPOSITORY / "docs" / "many-machines.md"


@pytest.fixture(scope="module")
def scaling() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scaling", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["scaling"] = module  # as an import would, for the classes of the module
    path = list(sys.path)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = path
        del sys.modules["scaling"]
    return module


def output_of_script(*arguments: str) -> str:
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


def test_tables_of_the_page_are_those_of_the_script() -> None:
    tables = output_of_script().strip().split("\n\n")
    page = PAGE.read_text(encoding="utf-8")
    assert len(tables) == 3
    assert [table for table in tables if table not in page] == []


def test_a_large_all_reduce_in_a_machine_takes_the_time_of_a_ring(scaling: Any) -> None:
    """Compare with the ring of eight devices: each sends 7/8 of the array twice, over 18 links of 20.6 GB/s."""
    microseconds, algorithm = scaling.all_reduce(10**9, 8)
    assert algorithm == scaling.RING
    assert microseconds == pytest.approx(8.4 + 14 * 3.4 + 2 * 7 / 8 * 10**9 / (18 * 20.6 * 1000))


def test_a_small_all_reduce_between_machines_takes_the_time_of_a_tree(scaling: Any) -> None:
    """Compare with the tree of two machines of eight devices, up and down."""
    microseconds, algorithm = scaling.all_reduce(0, 16)
    assert algorithm == scaling.SMALL_TREE
    assert microseconds == pytest.approx(6.8 + 2 * (7 * 0.6 + 5.0))


@pytest.mark.parametrize("size", [0, 1, 10**3, 10**5, 10**7, 10**9])
def test_more_devices_and_more_bytes_take_longer(scaling: Any, size: int) -> None:
    times = [scaling.all_reduce(size, devices)[0] for devices in scaling.COUNTS[1:]]
    assert times == sorted(times)
    assert all(
        scaling.all_reduce(size + 1000, devices)[0] >= scaling.all_reduce(size, devices)[0] for devices in (2, 99)
    )


@pytest.mark.parametrize(("devices", "machines"), [(1, 1), (8, 1), (9, 2), (16, 2), (1024, 128)])
def test_a_machine_has_eight_devices(scaling: Any, devices: int, machines: int) -> None:
    assert scaling.machines(devices) == machines


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="needs Dask's distributed")
def test_measured_table_has_a_row_for_each_number_of_workers() -> None:
    counts = [str(count) for count in (1, 2) if count <= tcuda.device_count()]
    _, _, *rows = output_of_script("--measure", *counts, "--epochs", "1").splitlines()
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
    assert [row[0] for row in cells] == counts
    assert all(float(row[1].removesuffix(" s")) > 0 and float(row[2].removesuffix(" ms")) > 0 for row in cells)
    assert len({row[4] for row in cells}) == 1
