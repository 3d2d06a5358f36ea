"""The whole programs of the benchmarks, and the process that runs one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
import pytest

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable

_BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def programs(bench_module: Callable[[str], Any]) -> Any:
    """The module ``bench/programs.py``."""
    return bench_module("programs")


@pytest.mark.parametrize("name", ["training of a network", "heat equation", "spectra"])
def test_a_program_computes_what_numpy_computes(programs: Any, name: str) -> None:
    made = programs.PROGRAMS[name]
    assert made(tcuda.xp, 1)() == pytest.approx(made(numpy, 1)(), rel=1e-4)


def test_batches_pass_through_page_locked_memory(programs: Any) -> None:
    tcuda.init()
    before = tcuda.host_memory_stats()["active_requests.allocated"]
    found = programs.PROGRAMS["page-locked batches"](tcuda.xp, 1)()
    batches = programs.batches_of(1)
    assert found == pytest.approx(sum((batch[0] ** 2).sum() for batch in batches))
    assert tcuda.host_memory_stats()["active_requests.allocated"] - before >= 2 * len(batches)


@pytest.mark.emulated
@pytest.mark.parametrize("name", ["conjugate gradient", "k-means", "page-locked batches", "sparse solver"])
def test_a_worker_answers_each_line_with_seconds_and_bytes(name: str) -> None:
    pytest.importorskip("scipy")
    worker = _BENCH / "program_worker.py"
    done = subprocess.run(
        [sys.executable, "-m", "tcuda.emulation", str(worker), "tcuda", name, "1"],
        env={**os.environ, "PYTHONPATH": str(_BENCH)},
        input="\n\n",
        capture_output=True,
        text=True,
        check=True,
    )
    ready, *answers = done.stdout.splitlines()
    assert ready == ""
    assert len(answers) == 2
    for answer in answers:
        seconds, held = answer.split()
        assert float(seconds) > 0
        assert int(held) >= 2 << 20
