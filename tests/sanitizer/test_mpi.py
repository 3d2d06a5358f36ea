"""The detector on programs that pass arrays of devices to MPI.

The programs in ``tests/sanitizer/mpi_corpus`` have the marks of those in ``tests/sanitizer/corpus``. They have one
rank, so that they need no launcher. On CUDA, an MPI library that does not know devices would crash.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.corpus import line_in, programs
from support.folders import TESTS
from support.mpi import launcher, mpi_environment

if TYPE_CHECKING:
    from pathlib import Path

    from support.corpus import Program
    from support.fixture_types import RunPython

PROGRAMS = programs(TESTS / "sanitizer" / "mpi_corpus")

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(
        importlib.util.find_spec("mpi4py") is None or launcher() is None,
        reason="needs mpi4py and an MPI library, such as the package mpich",
    ),
]

_RUN = """
import json
import sys
import tcuda
from support.corpus import programs, run
from support.folders import TESTS

reports = {}
for program in programs(TESTS / "sanitizer" / "mpi_corpus"):
    with tcuda.sanitizer.check(mode="collect") as report:
        error = run(program)
    reports[program.name] = [repr(error), report.as_dict()]
print(json.dumps(reports))
"""


@pytest.fixture(scope="module")
def reports() -> dict[str, Any]:
    """The error and the report of each program."""
    environment = {**os.environ, **mpi_environment(), "PYTHONPATH": str(TESTS), "TCUDA_EMULATED_SCHEDULE": "eager"}
    done = subprocess.run([sys.executable, "-c", _RUN], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def name_of(program: Program) -> str:
    return program.name


@pytest.mark.parametrize("program", [each for each in PROGRAMS if each.right], ids=name_of)
def test_a_right_program_is_not_accused(program: Program, reports: dict[str, Any]) -> None:
    error, report = reports[program.name]
    assert error == "None"
    assert report["races"] == report["possible"] == []


@pytest.mark.parametrize("program", [each for each in PROGRAMS if not each.right], ids=name_of)
def test_a_missing_wait_is_found(program: Program, reports: dict[str, Any]) -> None:
    error, report = reports[program.name]
    assert error == "None" or error.startswith("AssertionError")
    assert report["races"]
    assert report["possible"] == []
    for race in report["races"]:
        assert line_in(program, race["previous"]["stack"]) == program.first
        assert line_in(program, race["current"]["stack"]) == program.second
        assert race["missing"] == program.missing
        assert race["before"] == {"file": str(program.path), "line": program.second}


def test_the_report_names_the_call_and_the_elements(reports: dict[str, Any]) -> None:
    (race,) = reports["half_of_an_array_wrong"][1]["races"][:1]
    assert race["previous"]["operation"] == "MPI_Irecv"
    assert (race["previous"]["argument"], race["previous"]["kind"], race["previous"]["host"]) == ("buf", "write", True)
    (race,) = reports["isend_of_a_result_wrong"][1]["races"]
    assert (race["current"]["operation"], race["current"]["element_range"]) == ("MPI_Isend", [0, 999])
    assert race["current"]["shape"] == [1000]


_TWO_RANKS = """
import tcuda
from mpi4py import MPI
from tcuda import xp

world, main, side = MPI.COMM_WORLD, tcuda.current_stream(), tcuda.Stream()
x, y = xp.full(100, float(world.rank)), xp.zeros(100)
tcuda.synchronize()
request = world.Irecv(y, source=1 - world.rank)
world.Send(x, dest=1 - world.rank)
{wait}
z = y + 1
request.Wait()
assert float(z[0]) == 2 - world.rank or {allowed}
"""


@pytest.mark.parametrize("wait", ["request.Wait()", ""])
def test_two_ranks_under_the_command(wait: str, tmp_path: Path) -> None:
    program = tmp_path / "ranks.py"
    program.write_text(_TWO_RANKS.format(wait=wait, allowed=not wait))
    done = subprocess.run(
        [launcher() or "", "-n", "2", sys.executable, "-m", "tcuda", "sanitize", "--emulated", program.name],
        cwd=tmp_path,
        env={**os.environ, **mpi_environment()},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ("MPI_Irecv writes its argument buf" in done.stderr) == (not wait), done.stderr
    assert done.returncode == (0 if wait else 1), done.stderr
    if not wait:
        assert "missing: request.Wait() before ranks.py:" in done.stderr


def test_a_program_without_a_check_calls_mpi_as_before(run_python: RunPython) -> None:
    code = """
import tcuda
from tcuda import _core, xp
from mpi4py import MPI

assert _core.noticed_mpi_functions() == []
x, y = xp.ones(10), xp.zeros(10)
with tcuda.sanitizer.check() as report:
    assert any(name.startswith("MPI_Isend") for name in _core.noticed_mpi_functions())
    tcuda.synchronize()
    request = MPI.COMM_SELF.Irecv(y, source=0)
    MPI.COMM_SELF.Send(x, dest=0)
assert _core.noticed_mpi_functions() == []
request.Wait()
with tcuda.sanitizer.check():
    y += 1
assert float(y[0]) == 2
"""
    done = run_python(code, **mpi_environment())
    assert done.returncode == 0, done.stderr


def test_mpi4py_may_be_imported_in_a_check(run_python: RunPython) -> None:
    code = """
import tcuda
from tcuda import xp

with tcuda.sanitizer.check(mode="collect") as report:
    from mpi4py import MPI
    x, y = xp.ones(10), xp.zeros(10)
    MPI.COMM_SELF.Allreduce(x, y)
    x += 1
assert [race.current.operation for race in report] == ["MPI_Allreduce"] * 2, report
"""
    done = run_python(code, **mpi_environment())
    assert done.returncode == 0, done.stderr


def test_requests_without_a_wait_take_no_memory_for_ever(run_python: RunPython) -> None:
    code = """
import numpy
import tcuda
from mpi4py import MPI
from tcuda import xp
from tcuda._core import for_tests
from tcuda.sanitizer import _detector

comm, x, y = MPI.COMM_SELF, xp.ones(10), xp.zeros(10)
with tcuda.sanitizer.check():
    tcuda.synchronize()
    detector = _detector._started.detector
    for turn in range(200):
        MPI.Request.Waitall([comm.Irecv(y, source=0), comm.Isend(x, dest=0)])
        if turn == 20:
            before = for_tests.sizes_of_detector(detector)["slots"]
    host = numpy.zeros(10)
    pending = [comm.Irecv(host, source=0) for _ in range(50)]  # memory that no device uses
    assert for_tests.sizes_of_detector(detector)["slots"] == before
    for _ in pending:
        comm.Send(numpy.ones(10), dest=0)
    MPI.Request.Waitall(pending)
"""
    done = run_python(code, **mpi_environment())
    assert done.returncode == 0, done.stderr
