"""The magics of notebooks, in a shell of IPython."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from support.fixture_types import OutputOf

pytest.importorskip("IPython", reason="needs IPython, which runs magics")

START = """
import warnings
from IPython.core.interactiveshell import InteractiveShell
warnings.simplefilter("default")  # a race warns
shell = InteractiveShell.instance()

def run(*cells):
    for cell in cells:
        done = shell.run_cell(cell, store_history=True)
        print("success" if done.success else f"error {done.error_in_exec!r}")

run("%load_ext tcuda", "import tcuda\\nxp = tcuda.xp\\nside = tcuda.Stream()")
"""
RACE = "x = xp.ones(1000)\\nwith tcuda.stream(side):\\n    y = x * 2"


@pytest.fixture
def output(fresh_output_of: OutputOf, tmp_path: Path) -> OutputOf:
    """Run cells in a shell that has the magics, and return what is printed."""

    def run(cells: str, **variables: str | None) -> str:
        printed = fresh_output_of(f"{START}\nrun({cells})", IPYTHONDIR=str(tmp_path / "ipython"), **variables)
        return re.sub(r"\x1b\[[\d;]*m", "", printed)  # colours

    return run


@pytest.mark.emulated
def test_a_cell_that_races_shows_the_report(output: OutputOf) -> None:
    printed = output(f"'%%tcuda_sanitize\\n{RACE}', 'y.sum()'")
    assert "missing: side.wait_stream(tcuda.default_stream()) before cell [3], line 4" in printed
    assert printed.count("1 race, seen 1 time, in 2 operations") == 1
    assert "Out[4]: array(2000.)" in printed
    assert "error" not in printed


@pytest.mark.emulated
def test_a_cell_without_a_race_shows_a_line_and_its_result(output: OutputOf) -> None:
    printed = output("'%%tcuda_sanitize\\nx = xp.ones(3)\\nx + 1'")
    assert printed.splitlines()[-3:] == ["Out[3]: array([2., 2., 2.])", "No race in 3 operations", "success"]


@pytest.mark.emulated
@pytest.mark.parametrize(("reaction", "ends"), [("raise", "error CUDASanitizerErrors"), ("warn", "success")])
def test_a_race_can_raise_or_warn(output: OutputOf, reaction: str, ends: str) -> None:
    printed = output(f"'%%tcuda_sanitize {reaction}\\n{RACE}'")
    assert printed.splitlines()[-1].startswith(ends)
    assert printed.count("1 race, seen 1 time, in 2 operations") == 1


def test_a_cell_shows_its_memory_by_line(output: OutputOf) -> None:
    printed = output("'%%tcuda_memory\\nkept = [xp.zeros(1024) for _ in range(3)]\\ngone = xp.zeros(1024)\\ndel gone'")
    assert "device 0: at most 32,768 bytes; 24,576 bytes more are allocated after the cell than before" in printed
    assert "    24576 bytes in 3 allocations at cell [3], line 2 in " in printed
    assert "page-locked" not in printed


def test_a_cell_shows_its_page_locked_memory(output: OutputOf) -> None:
    printed = output("'%%tcuda_memory\\nstaging = tcuda.memory.empty_pinned(1024)'")
    assert "page-locked: at most 8,192 bytes; 8,192 bytes more" in printed


@pytest.mark.wings
@pytest.mark.parametrize("magic", ["tcuda_sanitize", "tcuda_memory"])
def test_an_error_of_a_cell_is_shown_once_and_fails_the_cell(output: OutputOf, magic: str) -> None:
    if magic == "tcuda_sanitize":
        printed = output(f"'%%{magic}\\n1 / 0'", TCUDA_RUNTIME="emulated", CUDA_VISIBLE_DEVICES=None)
    else:
        printed = output(f"'%%{magic}\\n1 / 0'")
    assert printed.count("ZeroDivisionError: division by zero") == 1
    assert printed.splitlines()[-1] == "error ZeroDivisionError('division by zero')"


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("%%tcuda_sanitize loud\\n1", "%%tcuda_sanitize takes 'raise', 'warn' or nothing; got 'loud'."),
        ("%%tcuda_memory x\\n1", "%%tcuda_memory takes no options; got 'x'."),
    ],
)
def test_wrong_options_of_a_magic_are_errors(output: OutputOf, cell: str, message: str) -> None:
    printed = output(f"'import sys; sys.stderr = sys.stdout', \"{cell}\"")
    assert f"UsageError: {message}" in printed
    assert "Traceback" not in printed


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("cell", "error"),
    [
        (f"%%tcuda_sanitize raise\\n{RACE}", "CUDASanitizerErrors: read after write"),
        ("xp.linalg.inv(xp.ones((2, 3)))", "LinAlgError: Last 2 dimensions of the array must be square"),
        ("import tcuda.emulation\\ntcuda.emulation.enable(devices=9)", "RuntimeError: Devices are already emulated"),
    ],
)
def test_the_traceback_of_a_cell_ends_at_the_line_of_the_cell(cell: str, error: str, output: OutputOf) -> None:
    printed = output(f"'{cell}'")
    assert printed.count("Traceback (most recent call last)") == 1
    assert f"\n{error}" in printed
    assert "File" not in printed


@pytest.mark.emulated
def test_the_functions_of_tcuda_are_shown_on_demand(output: OutputOf) -> None:
    assert "linear_algebra.py" in output("'%xmode Verbose', 'xp.linalg.inv(xp.ones((2, 3)))'")


@pytest.mark.emulated
def test_without_the_extension_another_number_of_devices_is_a_short_error_too(output: OutputOf) -> None:
    printed = output("'%unload_ext tcuda', 'import tcuda.emulation\\ntcuda.emulation.enable(devices=9)'")
    assert "RuntimeError: Devices are already emulated" in printed
    assert printed.count("File") == 1  # IPython always shows the last function


@pytest.mark.emulated
def test_the_magics_go_and_come_again(output: OutputOf) -> None:
    printed = output("'%unload_ext tcuda', '%%tcuda_sanitize\\n1', 'xp.linalg.inv(xp.ones((2, 3)))'")
    assert "Cell magic `%%tcuda_sanitize` not found." in printed
    assert "linear_algebra.py" in printed
    assert "No operation was watched" in output("'%unload_ext tcuda', '%load_ext tcuda', '%%tcuda_sanitize\\n1'")
