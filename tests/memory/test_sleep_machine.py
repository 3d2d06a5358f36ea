"""Random programs whose pools sleep and wake at any step, against a shadow: bytes, addresses and statistics."""

from __future__ import annotations

import gc
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import tcuda
from support.examples import examples
from tcuda import xp

SIZES = (1, 700, 300_000, 700_000, 3_000_000)


class Shadow(NamedTuple):
    """An array of a pool, and what the array must contain."""

    array: Any
    pool: int
    address: int
    expected: Any


class Captured(NamedTuple):
    """A graph that computes ``output = input * 3 + 1``, and the pool of the graph."""

    graph: tcuda.CUDAGraph
    source: Shadow
    output: Shadow
    pool: int


class Machine(RuleBasedStateMachine):
    """The default pool has the number 0; the others are objects of the program."""

    def __init__(self) -> None:
        super().__init__()
        gc.collect()  # other tests may have left memory, which must not go in the middle of a step
        tcuda.empty_cache()
        self.pools = [None, tcuda.MemPool(), tcuda.MemPool()]
        self.asleep = [False] * 3
        self.arrays: list[Shadow] = []
        self.graphs: list[Captured] = []
        self.value = 0

    def awake(self) -> list[int]:
        return [place for place, asleep in enumerate(self.asleep) if not asleep]

    def usable(self) -> list[Shadow]:
        return [shadow for shadow in self.arrays if not self.asleep[shadow.pool]]

    def alive(self) -> list[Shadow]:
        """Return the arrays of the program and of its graphs, which keep the arrays that they read."""
        return [*self.arrays, *(shadow for captured in self.graphs for shadow in (captured.source, captured.output))]

    def next_value(self) -> int:
        self.value = self.value % 250 + 1
        return self.value

    def made(self, pool: int, size: int, value: int) -> Any:
        of_pool = self.pools[pool]
        if of_pool is None:
            return xp.full(size, value, "uint8")
        with tcuda.use_mem_pool(of_pool):
            return xp.full(size, value, "uint8")

    @rule(pool=st.integers(0, 2), size=st.sampled_from(SIZES))
    def allocate(self, pool: int, size: int) -> None:
        value = self.next_value()
        if self.asleep[pool]:
            with pytest.raises(RuntimeError, match="asleep"):
                self.made(pool, size, value)
            return
        array = self.made(pool, size, value)
        self.arrays.append(Shadow(array, pool, array.data.ptr, np.full(size, value, "uint8")))

    @precondition(lambda self: self.arrays)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        self.arrays.pop(data.draw(st.integers(0, len(self.arrays) - 1)))

    @precondition(lambda self: self.usable())
    @rule(data=st.data())
    def write(self, data: st.DataObject) -> None:
        shadow = data.draw(st.sampled_from(self.usable()))
        begin, value = data.draw(st.integers(0, shadow.expected.size)), self.next_value()
        shadow.array[begin:] = value
        shadow.expected[begin:] = value

    @precondition(lambda self: self.usable())
    @rule(data=st.data())
    def write_on_a_side_stream(self, data: st.DataObject) -> None:
        shadow, value = data.draw(st.sampled_from(self.usable())), self.next_value()
        side = tcuda.Stream()
        side.wait_stream(tcuda.current_stream())
        with tcuda.stream(side):
            tcuda._sleep(1_000_000)
            shadow.array.fill(value)
        tcuda.current_stream().wait_stream(side)
        shadow.expected[...] = value

    @precondition(lambda self: self.usable() and not self.asleep[0])
    @rule(data=st.data())
    def capture(self, data: st.DataObject) -> None:
        pool, source = data.draw(st.sampled_from(self.awake())), data.draw(st.sampled_from(self.usable()))
        graph, of_pool = tcuda.CUDAGraph(), self.pools[pool]
        with tcuda.graph(graph, pool=None if of_pool is None else of_pool.id):
            passed = source.array * 3
            array = passed + 1
            del passed
        expected = np.zeros(source.expected.size, "uint8")
        captured = Captured(graph, source, Shadow(array, pool, array.data.ptr, expected), pool)
        self.graphs.append(captured)
        self.replayed(captured)

    def replayed(self, captured: Captured) -> None:
        captured.graph.replay()
        captured.output.expected[...] = captured.source.expected * 3 + 1

    @precondition(lambda self: self.graphs)
    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        captured = data.draw(st.sampled_from(self.graphs))
        if self.asleep[captured.pool] or self.asleep[captured.source.pool]:
            with pytest.raises(RuntimeError, match="asleep"):
                captured.graph.replay()
        else:
            self.replayed(captured)

    @precondition(lambda self: self.graphs)
    @rule(data=st.data())
    def reset(self, data: st.DataObject) -> None:
        self.graphs.pop(data.draw(st.integers(0, len(self.graphs) - 1))).graph.reset()

    @rule(pool=st.integers(0, 2))
    def sleep(self, pool: int) -> None:
        of_pool = self.pools[pool]
        (tcuda.memory if of_pool is None else of_pool).sleep()
        self.asleep[pool] = True

    @rule(pool=st.integers(0, 2))
    def sleep_without_contents(self, pool: int) -> None:
        if self.asleep[pool]:
            return
        of_pool = self.pools[pool]
        (tcuda.memory if of_pool is None else of_pool).sleep(keep=False)
        (tcuda.memory if of_pool is None else of_pool).wake()
        for shadow in self.alive():
            if shadow.pool == pool:
                value = self.next_value()
                shadow.array.fill(value)
                shadow.expected[...] = value

    @rule(pool=st.integers(0, 2))
    def wake(self, pool: int) -> None:
        of_pool = self.pools[pool]
        (tcuda.memory if of_pool is None else of_pool).wake()
        self.asleep[pool] = False

    @rule()
    def empty_cache(self) -> None:
        tcuda.empty_cache()

    @invariant()
    def arrays_have_their_bytes_and_addresses(self) -> None:
        for shadow in self.alive():
            assert shadow.array.data.ptr == shadow.address
            if not self.asleep[shadow.pool]:
                assert np.array_equal(shadow.array.get(), shadow.expected)

    @invariant()
    def sleeping_bytes_are_counted_apart(self) -> None:
        stats = tcuda.memory_stats()
        if not any(self.asleep):
            assert stats["sleeping_bytes.all.current"] == 0
        assert (
            stats["reserved_bytes.all.current"] + stats["sleeping_bytes.all.current"]
            >= (stats["allocated_bytes.all.current"])
        )
        segments = [segment for segment in tcuda.memory_snapshot() if segment["device"] == tcuda.current_device()]
        asleep = sum(segment["total_size"] for segment in segments if segment.get("is_asleep"))
        assert asleep == stats["sleeping_bytes.all.current"]
        assert sum(segment["total_size"] for segment in segments) == asleep + stats["reserved_bytes.all.current"]

    def teardown(self) -> None:
        for place in range(3):
            self.wake(place)
        self.arrays_have_their_bytes_and_addresses()
        for captured in self.graphs:
            captured.graph.reset()
        self.graphs.clear()
        self.arrays.clear()
        self.pools.clear()
        tcuda.empty_cache()


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=examples(25),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
