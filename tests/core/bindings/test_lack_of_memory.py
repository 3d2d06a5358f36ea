"""Calls of the core while Python has no memory for an object: a MemoryError, and no end of the process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

PROGRAM = """
import _testcapi
import tcuda
from tcuda._process.ledger import ledger

tcuda.memory._record_memory_history()
x = tcuda.xp.ones(1000)
core = ledger()
{work}
work()
raised = 0
for number in range(600):
    _testcapi.set_nomemory(number, number + 1)
    try:
        work()
    except MemoryError:
        raised += 1
    finally:
        _testcapi.remove_mem_hooks()
    work()
print(raised > {least})
"""

WORK = {
    "a snapshot": ("def work(): core.snapshot(None, True)", 20),
    "a snapshot of the host": ("def work(): core.host_snapshot()", 2),
    "the statistics": ("def work(): core.statistics(0)", 20),
    "a capture": ("def work(): core.expect_capture().end()", 1),
}


@pytest.mark.parametrize(("work", "least"), WORK.values(), ids=WORK)
def test_one_allocation_may_fail(output_of: OutputOf, work: str, least: int) -> None:
    pytest.importorskip("_testcapi", reason="this Python has no module for its own tests")
    assert output_of(PROGRAM.format(work=work, least=least)) == "True"
