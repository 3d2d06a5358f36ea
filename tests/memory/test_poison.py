"""Memory that nobody has written, with ``TCUDA_POISON_FREED``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

BEGIN = """
import tcuda
from tcuda import xp

def contents(address, size=1000):
    memory = xp.cuda.MemoryPointer(xp.cuda.UnownedMemory(address, size, None), 0)
    return sorted(set(xp.ndarray((size,), "B", memory).tolist()))

def filled(value, size=1000):
    array = xp.empty(size, "B")
    array.fill(value)
    return array

keep = filled(1)
"""


def poisoned(output_of: OutputOf, program: str, value: str = "0xCB", **variables: str) -> str:
    """Return what ``program`` prints with poison."""
    return output_of(BEGIN + program, TCUDA_POISON_FREED=value, **variables)


@pytest.mark.parametrize(("value", "byte"), [("0xCB", 0xCB), ("17", 17)])
def test_memory_is_filled_when_it_is_given_and_when_it_is_freed(value: str, byte: int, output_of: OutputOf) -> None:
    program = """
x = xp.empty(1000, "B")
print(contents(x.data.ptr))
x.fill(3)
address = x.data.ptr
print(contents(address))
del x
print(contents(address))
address = tcuda.caching_allocator_alloc(1000)
print(contents(address))
"""
    assert poisoned(output_of, program, value).splitlines() == [f"[{byte}]", "[3]", f"[{byte}]", f"[{byte}]"]


def test_the_variable_is_read_once(output_of: OutputOf) -> None:
    program = """
import os
os.environ["TCUDA_POISON_FREED"] = "300"
print(contents(xp.empty(1000, "B").data.ptr))
"""
    assert poisoned(output_of, program, TCUDA_EMULATED_SCHEDULE="late") == "[203]"


def test_without_the_variable_freed_memory_keeps_its_contents(output_of: OutputOf) -> None:
    program = "x = filled(3); address = x.data.ptr; del x; print(contents(address))"
    assert output_of(BEGIN + program, TCUDA_POISON_FREED="") == "[3]"


def test_the_fill_comes_after_the_work_of_the_stream(output_of: OutputOf) -> None:
    program = """
with tcuda.stream(tcuda.Stream()):
    tcuda._sleep(10_000_000)
    x = filled(3)
    y = x + xp.ones(1000, "B")
    address = x.data.ptr
    del x
    again = filled(5)
    assert again.data.ptr == address
    z = again + y
    print(sorted(set(y.tolist())), sorted(set(z.tolist())))
"""
    assert poisoned(output_of, program) == "[4] [9]"


def test_a_block_is_filled_when_no_other_stream_uses_it_any_more(output_of: OutputOf) -> None:
    program = """
side = tcuda.Stream()
x = filled(3)
address = x.data.ptr
tcuda.synchronize()
tcuda.memory.record_stream(x, side)
with tcuda.stream(side):
    tcuda._sleep(2_000_000_000)
    y = x + x
del x
print(contents(address))
side.synchronize()
other = xp.empty(4, "B")
print(contents(address), sorted(set(y.tolist())))
"""
    assert poisoned(output_of, program).splitlines() == ["[3]", "[203] [6]"]


@pytest.mark.parametrize("where", ["tcuda.use_mem_pool(pool)", "tcuda.memory.caching_allocator_disabled()"])
def test_other_memory_than_that_of_the_common_pool_is_filled(where: str, output_of: OutputOf) -> None:
    program = f"""
pool = tcuda.MemPool()
with {where}:
    x = xp.empty(1000, "B")
print(contents(x.data.ptr))
"""
    assert poisoned(output_of, program) == "[203]"


def test_graphs_are_not_filled(output_of: OutputOf) -> None:
    program = """
graph = tcuda.CUDAGraph()
counter = xp.zeros(1, "i")
with tcuda.graph(graph):
    x = filled(3)
    kept = filled(7)
    y = x + kept
    counter += 1
    del x
addresses = y.data.ptr, kept.data.ptr
for _ in range(2):
    graph.replay()
    print(sorted(set(y.tolist())), contents(addresses[1]), counter.tolist())
del y, kept
print(*map(contents, addresses))
graph.replay()
print(*map(contents, addresses))
"""
    assert poisoned(output_of, program).splitlines() == ["[10] [7] [1]", "[10] [7] [2]", "[10] [7]", "[10] [7]"]


def test_a_graph_gets_no_nodes_for_fills(output_of: OutputOf) -> None:
    program = """
graph = tcuda.CUDAGraph()
graph.enable_debug_mode()
with tcuda.graph(graph):
    x = xp.zeros(1000, "B")
    y = x + x
    del x
    z = xp.empty(1000, "B")
graph.debug_dump("graph.dot")
with open("graph.dot") as file:
    print(file.read().lower().count("memset"))
"""
    counts = [
        output_of(f"import os, tempfile; os.chdir(tempfile.mkdtemp())\n{BEGIN}{program}", TCUDA_POISON_FREED=value)
        for value in ("", "0xCB")
    ]
    assert counts[0] == counts[1]


def test_statistics_stay_the_same(output_of: OutputOf) -> None:
    program = """
import json
arrays = [filled(2, size) for size in (1, 512, 70_000, 3 << 20)]
del arrays[1:3]
side = tcuda.Stream()
with tcuda.stream(side):
    other = filled(2)
print(json.dumps(tcuda.memory_stats(), sort_keys=True))
"""
    assert poisoned(output_of, program) == output_of(BEGIN + program, TCUDA_POISON_FREED="")


def test_memory_of_a_destroyed_stream_can_be_freed(output_of: OutputOf) -> None:
    program = """
side = tcuda.Stream()
with tcuda.stream(side):
    x = filled(3)
side.synchronize()
del side
import gc; gc.collect()
del x
with tcuda.stream(tcuda.Stream()):
    print(sorted(set(xp.empty(1000, "B").tolist())))
"""
    assert poisoned(output_of, program) == "[203]"


@pytest.mark.emulated
def test_no_memory_is_filled_while_a_detector_watches(output_of: OutputOf) -> None:
    program = """
import tcuda.sanitizer
with tcuda.sanitizer.check() as report:
    x = filled(3)
    address = x.data.ptr
    tcuda.synchronize()
    del x
    with tcuda.stream(tcuda.Stream()):
        print(contents(address))
"""
    assert poisoned(output_of, program) == "[3]"


def test_a_wrong_value_is_an_error_of_the_first_use(output_of: OutputOf) -> None:
    program = """
import tcuda
for _ in range(2):
    try:
        tcuda.xp.empty(1)
    except ValueError as error:
        print(error)
"""
    lines = output_of(program, TCUDA_POISON_FREED="0x1CB").splitlines()
    assert len(lines) == 2
    assert all(line.startswith("TCUDA_POISON_FREED is '0x1CB'; write the value of one byte") for line in lines)
