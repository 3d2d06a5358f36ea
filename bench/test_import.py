"""The cost of an import in a process of its own: of tcuda, of nothing, and of torch."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from machine import machine
from reference import Reference
from sides import SIDES

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_benchmark.fixture import BenchmarkFixture

STATEMENTS = {"tcuda": "import tcuda", "below": "pass", "torch": "import torch"}
ROUNDS = {"tcuda": 7, "below": 7, "torch": 3}  # the import of torch takes seconds


@pytest.mark.benchmark(timer=time.perf_counter)
@pytest.mark.parametrize("on", SIDES)
def test_import(benchmark: BenchmarkFixture, on: str, tmp_path: Path) -> None:
    benchmark.group = "import tcuda"
    benchmark.extra_info |= machine()

    def execute(statement: str) -> None:  # In another folder, because the source tree would hide the installed package.
        subprocess.run([sys.executable, "-c", statement], cwd=tmp_path, check=True)

    reference = Reference(lambda: execute(STATEMENTS["below"]), time.perf_counter)
    benchmark.pedantic(execute, args=[STATEMENTS[on]], setup=reference.run, rounds=ROUNDS[on], warmup_rounds=1)
    reference.compare(benchmark)
