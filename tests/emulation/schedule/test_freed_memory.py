"""Memory that the allocator gives back while work on it is pending."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

pytestmark = pytest.mark.emulated


@pytest.mark.parametrize(
    "settings", ["expandable_segments:True", "expandable_segments:False", "backend:cudaMallocAsync"]
)
def test_pending_work_may_use_memory_that_is_given_back(settings: str, output_of: OutputOf) -> None:
    code = """
import tcuda, tcuda.emulation
tcuda.emulation.enable(1, schedule="late")
from tcuda._runtime import runtime
memory = runtime().devices[0].memory
xp, side = tcuda.xp, tcuda.Stream()
x, y = xp.ones(4 << 20), xp.ones(4 << 20)
tcuda.synchronize()
with tcuda.stream(side):
    xp.add(x, 1, out=y)  # nothing waits for the end of this work before the memory of x goes
del x
tcuda.empty_cache()
print(len(runtime().schedule) > 0, memory.kept >= 32 << 20)
z = xp.full(4 << 20, 5.0)
tcuda.synchronize()
print(float(z[0]), float(z[-1]))
del y, z
tcuda.empty_cache()
tcuda.synchronize()
print(float(xp.ones(3).sum()), memory.kept < 4096)
"""
    assert output_of(code, PYTORCH_CUDA_ALLOC_CONF=settings).split() == ["True", "True", "5.0", "5.0", "3.0", "True"]


@pytest.mark.long
def test_memory_is_used_again_only_after_the_work_of_its_stream(output_of: OutputOf) -> None:
    code = """
import tcuda.emulation
tcuda.emulation.enable(1, memory="64MiB", schedule="late")
xp = tcuda.emulation.xp
results = []
for step in range(200):
    x = xp.full(1 << 20, float(step))
    results.append((x * 2).sum())
    del x
print([float(result) for result in results] == [2.0 * step * (1 << 20) for step in range(200)])
"""
    assert output_of(code) == "True"
