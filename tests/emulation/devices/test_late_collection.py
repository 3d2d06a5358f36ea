"""Memory in cycles of references is freed before an emulated device reports that it has no room, as by CuPy's pool."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.emulated

PROGRAM = """
import gc, tcuda, tcuda.emulation
tcuda.emulation.enable(memory="64MiB")
gc.set_threshold(1_000_000)
for _ in range(20):
    cycle = []
    cycle.append((cycle, tcuda.xp.zeros(16 << 20, "B")))
print(tcuda.memory_stats()["num_ooms"])
kept = []
try:
    while True:
        kept.append(tcuda.xp.zeros(16 << 20, "B"))
except tcuda.OutOfMemoryError:
    print(tcuda.memory_stats()["num_ooms"])
"""


@pytest.fixture
def lines(run_python):
    """Return a function that runs a program in a process of its own, and returns its lines."""

    def run(program):
        done = run_python(program, TCUDA_RUNTIME=None, TCUDA_EMULATED_MEMORY=None)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()

    return run


def test_garbage_is_collected_before_an_error_of_missing_memory(lines):
    assert lines(PROGRAM) == ["0", "1"]
