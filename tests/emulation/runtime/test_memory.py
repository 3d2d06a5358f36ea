"""The memory that an emulated runtime knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

pytestmark = pytest.mark.emulated

# Up to Python 3.11, garbage is collected wherever a tuple is made.
FINALIZED = """
import gc
import tcuda
from tcuda._process.lazy import cuda

tcuda.init()
PAGE, RANGES = 4096, 300
for place in range(1, RANGES):
    cuda.hostRegister(place * PAGE, PAGE, 0)

class Node:
    def __init__(self, place):
        self.place, self.me = place, self
    def __del__(self):
        cuda.hostUnregister(self.place * PAGE)

for place in range(1, RANGES):
    gc.set_threshold(700, 10, 10)
    Node(place)
    gc.set_threshold(gc.get_count()[0] + place % 100, 1, 1)
    cuda.hostRegister(RANGES * PAGE, PAGE, 0)
    cuda.hostUnregister(RANGES * PAGE)
    gc.collect()
print("done")
"""


def test_a_finalizer_may_unregister_memory_while_memory_is_registered(output_of: OutputOf) -> None:
    assert output_of(FINALIZED) == "done"
