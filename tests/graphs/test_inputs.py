"""Memory that a graph reads: the graph keeps the memory, also if the arrays are freed."""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

import pytest

import tcuda
from support.captures import captured
from support.pools import settle
from support.sizes import KIB, MIB

pytestmark = pytest.mark.usefixtures("allocator_as_found")


class TestInputs:
    """Inputs of a graph: arrays that were allocated before the capture."""

    @staticmethod
    def clutter(xp: Any) -> list[Any]:
        return [xp.full(1000, -1.0) for _ in range(30)]

    def test_are_kept_if_they_are_freed_after_the_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.full(1000, 3.0)
        _, y = captured(partial(xp.multiply, x, 2), graph)
        del x
        others = self.clutter(xp)
        graph.replay()
        assert (y.get() == 6).all()
        del others

    def test_are_kept_if_they_are_freed_during_the_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        inputs = [xp.full(1000, 3.0)]
        _, y = captured(lambda: inputs.pop() * 2, graph)
        others = self.clutter(xp)
        graph.replay()
        assert (y.get() == 6).all()
        del others

    def test_are_kept_if_the_graph_reads_only_a_part(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.arange(1000.0)
        part = x[500:600]
        _, y = captured(partial(xp.multiply, part, 2), graph)
        del x, part
        others = self.clutter(xp)
        graph.replay()
        assert (y.get() == [2.0 * number for number in range(500, 600)]).all()
        del others

    def test_that_are_only_written_or_copied_are_kept(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        arrays = [xp.full(1000, 3.0), xp.zeros(1000), xp.empty(1000)]

        def work() -> None:
            x, y, z = arrays
            y[...] = x
            z.fill(1)

        captured(work, graph)
        addresses = {array.data.ptr for array in arrays}
        arrays.clear()
        others = self.clutter(xp)
        assert not addresses & {other.data.ptr for other in others}

    def test_in_the_pool_of_another_graph_are_kept(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        handle = tcuda.graph_pool_handle()
        first, y = captured(lambda: xp.full(1000, 3.0), pool=handle)
        _, z = captured(partial(xp.multiply, y, 2), graph, pool=handle)
        address = y.data.ptr
        del y
        third, w = captured(lambda: xp.zeros(1000), pool=handle)
        assert w.data.ptr != address
        first.replay()
        third.replay()
        graph.replay()
        assert (z.get() == 6).all()
        first.reset()
        third.reset()

    def test_are_freed_by_the_reset(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        before = tcuda.memory_stats()["active_bytes.all.current"]
        x = xp.full(MIB, 3.0)
        _, y = captured(partial(xp.multiply, x, 2), graph)
        del x, y
        stats = tcuda.memory_stats()
        assert stats["allocated_bytes.all.current"] <= before
        assert stats["active_bytes.all.current"] >= before + 8 * MIB
        graph.replay()
        graph.reset()
        settle()
        assert tcuda.memory_stats()["active_bytes.all.current"] == before

    def test_that_the_graph_does_not_use_are_free_after_the_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        before = tcuda.memory_stats()["active_bytes.all.current"]
        unused = [xp.full(MIB, 3.0)]
        with tcuda.graph(graph):
            unused.clear()
            y = xp.zeros(10)
        assert tcuda.memory_stats()["active_bytes.all.current"] <= before + KIB
        del y

    def test_are_freed_by_a_reset_during_another_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.full(1000, 3.0)
        first, y = captured(partial(xp.multiply, x, 2))
        before = tcuda.memory_stats()["active_bytes.all.current"]
        del x
        with tcuda.graph(graph):
            z = xp.zeros(10)
            first.reset()
            del y
        graph.replay()
        assert (z.get() == 0).all()
        assert tcuda.memory_stats()["active_bytes.all.current"] < before

    def test_may_belong_to_a_graph_that_is_collected_during_another_capture(
        self, xp: Any, graph: tcuda.CUDAGraph
    ) -> None:
        x = xp.zeros(1000)
        holder: list[Any] = list(captured(lambda: x + 1))
        holder.append(holder)
        del holder
        with tcuda.graph(graph):
            x += 1
            gc.collect()
            x += 1
        graph.replay()
        assert (x.get() == 2).all()
