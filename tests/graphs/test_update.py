"""Graphs that take over the work of another capture of the same shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.busy_streams import keep_busy
from support.captures import captured
from support.pools import held_by, settle
from support.sizes import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcuda._runtime.protocol import Runtime

pytestmark = pytest.mark.usefixtures("allocator_as_found")


@pytest.fixture
def kept(runtime: Runtime) -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """A function that captures a function into a graph with ``keep_graph=True``, which is reset at the end."""
    made: list[tcuda.CUDAGraph] = []

    def capture(function: Callable[[], Any]) -> Any:
        made.append(tcuda.CUDAGraph(keep_graph=True))
        return captured(function, made[-1])

    yield capture
    for graph in made:
        graph.reset()


def test_the_next_replay_does_the_work_of_the_other_capture(xp: Any, graph: tcuda.CUDAGraph, kept: Any) -> None:
    x, z = xp.arange(10.0), xp.ones(10)
    captured(lambda: x * 2 + 1, graph)
    graph.replay()
    executable = graph.raw_cuda_graph_exec()
    later, y = kept(lambda: z * 5 + 3)
    graph.update(later)
    assert graph.raw_cuda_graph_exec() == executable
    graph.replay()
    assert (y.get() == 8).all()
    z.fill(2)
    graph.replay()
    assert (y.get() == 13).all()


def test_sizes_and_grids_may_differ(xp: Any, graph: tcuda.CUDAGraph, kept: Any) -> None:
    captured(lambda: xp.ones(10) + 1, graph)
    later, y = kept(lambda: xp.ones((300, 200)) + 5)
    graph.update(later)
    graph.replay()
    assert y.shape == (300, 200)
    assert (y.get() == 6).all()


def test_updates_follow_each_other(xp: Any, kept: Any) -> None:
    x = xp.zeros(10)
    graph, _ = kept(lambda: x + 0)
    graph.instantiate()
    for number in range(1, 5):
        later, y = kept(lambda number=number: x + number)
        graph.update(later)
        graph.replay()
        assert (y.get() == number).all()


def test_the_other_graph_is_as_after_a_reset(xp: Any, graph: tcuda.CUDAGraph, kept: Any) -> None:
    x = xp.zeros(10)
    captured(lambda: x + 1, graph)
    later, _ = kept(lambda: x + 2)
    graph.update(later)
    assert "nothing captured" in repr(later)
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        later.replay()
    _, y = captured(lambda: x + 3, later)
    later.replay()
    assert (y.get() == 3).all()


def test_memory_changes_its_owner(xp: Any, graph: tcuda.CUDAGraph, kept: Any) -> None:
    captured(lambda: xp.ones(4 * MIB, xp.uint8), graph)
    graph.replay()
    pool = graph.pool()
    later, y = kept(lambda: xp.full(4 * MIB, 3, xp.uint8))
    later_pool = later.pool()
    graph.update(later)
    settle()
    tcuda.empty_cache()
    assert held_by(pool) == 0
    assert graph.pool() == later_pool
    assert held_by(later_pool) >= 4 * MIB
    del later
    graph.replay()
    assert (y.get() == 3).all()
    del y
    graph.reset()
    settle()
    tcuda.empty_cache()
    assert held_by(later_pool) == 0


def test_memory_stays_until_a_replay_of_the_other_graph_is_done(xp: Any, graph: tcuda.CUDAGraph, kept: Any) -> None:
    stream = tcuda.Stream()
    keep_busy(stream, 10)
    captured(lambda: xp.ones(64 * MIB, xp.uint8), graph)
    later, y = kept(lambda: xp.full(64 * MIB, 3, xp.uint8))
    later.instantiate()
    pool = later.pool()
    del y
    tcuda.synchronize()
    with tcuda.stream(stream):
        keep_busy(stream)
        later.replay()
    graph.update(later)
    graph.reset()
    held, is_done = held_by(pool), stream.query()
    assert held >= 64 * MIB or is_done  # a GPU may be done meanwhile
    settle()
    tcuda.empty_cache()
    assert held_by(pool) == 0


def test_both_graphs_may_share_a_pool(xp: Any, graph: tcuda.CUDAGraph) -> None:
    x = xp.zeros(10)
    _, y = captured(lambda: x + 1, graph)
    later, z = captured(lambda: x + 2, tcuda.CUDAGraph(keep_graph=True), pool=graph.pool())
    graph.update(later)
    graph.replay()
    assert (z.get() == 2).all()
    assert graph.pool() is not None
    del y


def test_the_graph_can_be_instantiated_again(xp: Any, kept: Any) -> None:
    x = xp.zeros(10)
    graph, _ = kept(lambda: x + 1)
    graph.instantiate()
    later, y = kept(lambda: x + 2)
    graph.update(later)
    graph.instantiate()
    graph.replay()
    assert (y.get() == 2).all()


def test_an_array_is_replaced_after_an_update(xp: Any, kept: Any) -> None:
    x, new = xp.zeros(10), xp.ones(10)
    graph, _ = kept(lambda: x + 1)
    graph.instantiate()
    later, y = kept(lambda: x + 2)
    graph.update(later)
    graph.replace(x, new)
    graph.replay()
    assert (y.get() == 3).all()


def test_random_numbers(xp: Any, graph: tcuda.CUDAGraph, kept: Any) -> None:
    captured(lambda: xp.random.random(100), graph)
    graph.replay()
    later, y = kept(lambda: xp.random.random(500))
    graph.update(later)
    tcuda.manual_seed(5)
    for _ in range(2):
        graph.replay()
        drawn = y.get()
    tcuda.manual_seed(5)
    expected = [xp.random.random(500).get() for _ in range(2)]
    assert (drawn == expected[1]).all()


def test_random_numbers_of_a_graph_that_is_instantiated_again(xp: Any, kept: Any) -> None:
    graph, _ = kept(lambda: xp.random.random(100))
    graph.replay()
    later, y = kept(lambda: xp.random.random(100))
    graph.update(later)
    graph.replay()
    graph.instantiate()
    tcuda.manual_seed(5)
    graph.replay()
    tcuda.manual_seed(5)
    assert (y.get() == xp.random.random(100).get()).all()


def test_bodies_of_conditional_nodes(xp: Any, kept: Any) -> None:
    x, flag = xp.zeros(10), xp.ones((), bool)

    def work(graph: tcuda.CUDAGraph, number: int) -> None:
        with tcuda.graph(graph):
            graph.begin_capture_to_if_node(flag)
            x.__iadd__(number)
            graph.end_capture_to_conditional_node()

    graph, later = tcuda.CUDAGraph(keep_graph=True), tcuda.CUDAGraph(keep_graph=True)
    work(graph, 1)
    work(later, 10)
    graph.replay()
    graph.update(later)
    graph.replay()
    assert (x.get() == 11).all()
    flag.fill(False)
    graph.replay()
    assert (x.get() == 11).all()


def test_several_streams(xp: Any, kept: Any) -> None:
    x, side = xp.zeros(1000), tcuda.Stream()

    def work(number: int) -> Any:
        here = tcuda.current_stream()
        side.wait_stream(here)
        with tcuda.stream(side):
            first = x + number
        second = x + 2 * number
        here.wait_stream(side)
        return first + second

    graph, _ = kept(lambda: work(1))
    graph.instantiate()
    later, y = kept(lambda: work(10))
    graph.update(later)
    graph.replay()
    assert (y.get() == 30).all()


@pytest.mark.wings
def test_races_are_found_on_the_arrays_of_the_other_capture(xp: Any, kept: Any) -> None:
    x, z, side = xp.zeros(1000), xp.zeros(1000), tcuda.Stream()
    graph, _ = kept(lambda: x.__iadd__(1))
    graph.replay()
    tcuda.synchronize()
    with tcuda.sanitizer.check(mode="collect") as report:
        graph.replay()
        later, _ = kept(lambda: z.__iadd__(1))
        tcuda.synchronize()
        graph.update(later)
        graph.replay()
        with tcuda.stream(side):
            x.__imul__(2)
        assert not [*report.races, *report.possible]
        with tcuda.stream(side):
            z.__imul__(2)
    assert [*report.races, *report.possible]
    tcuda.synchronize()


CHANGES: dict[str, tuple[Callable[[Any, Any, Runtime], Any], str]] = {
    "more nodes": (lambda xp, x, runtime: (x + 1) + 1, "the graphs differ in the number of their nodes"),
    "another type": (
        lambda xp, x, runtime: runtime.memsetAsync(x.data.ptr, 0, 8, tcuda.current_stream().cuda_stream),
        r"node 0 \(memset.*\): the type of the node differs",
    ),
}


class TestErrors:
    @pytest.mark.parametrize("name", CHANGES)
    def test_another_shape_leaves_both_graphs_unchanged(
        self, xp: Any, graph: tcuda.CUDAGraph, kept: Any, runtime: Runtime, name: str
    ) -> None:
        function, reason = CHANGES[name]
        x, z = xp.zeros(10), xp.ones(10)
        _, y = captured(lambda: x + 1, graph)
        graph.replay()
        y.fill(0)
        later, other = kept(lambda: function(xp, z, runtime))
        with pytest.raises(tcuda.AcceleratorError, match=reason) as caught:
            graph.update(later)
        assert caught.value.error_code == 910
        graph.replay()
        assert (y.get() == 1).all()
        later.replay()
        if other is not None:
            assert (other.get() == 3).all()
        else:
            assert float(z[0]) == 0

    def test_a_copy_from_another_kind_of_memory(self, xp: Any, kept: Any, runtime: Runtime) -> None:
        x, z = xp.zeros(10), xp.ones(10)
        host = tcuda.memory.empty_pinned(10)
        host[:] = 5

        def copy(source: int, kind: int) -> None:
            runtime.memcpyAsync(x.data.ptr, source, 80, kind, tcuda.current_stream().cuda_stream)

        graph, _ = kept(lambda: copy(z.data.ptr, 3))
        graph.replay()
        later, _ = kept(lambda: copy(host.ctypes.data, 1))
        with pytest.raises(tcuda.AcceleratorError, match=r"node 0 \(memcpy.*\)") as caught:
            graph.update(later)
        assert caught.value.error_code == 910
        x.fill(0)
        graph.replay()
        assert (x.get() == 1).all()

    def test_a_graph_without_its_nodes(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.zeros(10)
        captured(lambda: x + 1, graph)
        other, _ = captured(lambda: x + 1)
        with pytest.raises(RuntimeError, match=r"update\(\): other: the graph has not kept its nodes"):
            graph.update(other)

    def test_the_graph_itself(self, xp: Any, kept: Any) -> None:
        x = xp.zeros(10)
        graph, _ = kept(lambda: x + 1)
        with pytest.raises(RuntimeError, match="another graph"):
            graph.update(graph)

    def test_no_graph(self, xp: Any, kept: Any) -> None:
        x = xp.zeros(10)
        graph, _ = kept(lambda: x + 1)
        with pytest.raises(TypeError, match=r"update\(\) takes a tcuda.CUDAGraph; got"):
            graph.update(None)

    def test_a_graph_without_a_capture(self, xp: Any, graph: tcuda.CUDAGraph, kept: Any) -> None:
        x = xp.zeros(10)
        later, _ = kept(lambda: x + 1)
        with pytest.raises(RuntimeError, match="has captured nothing yet"):
            graph.update(later)
        with pytest.raises(RuntimeError, match=r"update\(\): other: the graph has captured nothing yet"):
            later.update(graph)

    def test_another_number_of_generators(self, xp: Any, kept: Any) -> None:
        graph, _ = kept(lambda: xp.random.random(10))
        later, _ = kept(lambda: xp.ones(10))
        with pytest.raises(RuntimeError, match="this graph has 1 and other has 0"):
            graph.update(later)


class TestNodes:
    def test_are_skipped_until_they_are_enabled_again(self, xp: Any, kept: Any) -> None:
        x = xp.zeros(10)
        graph, _ = kept(lambda: (x.__iadd__(1), x.__iadd__(10)))
        assert [graph.is_node_enabled(node) for node in range(2)] == [True, True]
        total = 0
        for switches, step in (((0, False), 10), ((1, False), 0), ((0, True), 1), ((1, True), 11)):
            graph.set_node_enabled(*switches)
            graph.replay()
            total += step
            assert float(x[0]) == total
        assert [graph.is_node_enabled(node) for node in range(2)] == [True, True]

    def test_copies_and_fills_cannot_be_skipped(self, xp: Any, kept: Any, runtime: Runtime) -> None:
        x, z = xp.zeros(10), xp.ones(10)

        def work() -> None:
            stream = tcuda.current_stream().cuda_stream
            runtime.memcpyAsync(x.data.ptr, z.data.ptr, 80, 3, stream)
            runtime.memsetAsync(x.data.ptr, 0, 40, stream)

        graph, _ = kept(work)
        for place, kind in enumerate(("memcpy", "memset")):
            with pytest.raises(RuntimeError, match=rf"node {place} \({kind}.*\) is no kernel"):
                graph.set_node_enabled(place, False)
            assert graph.is_node_enabled(place)
        graph.replay()
        assert (x.get() == np.repeat([0.0, 1.0], 5)).all()

    def test_stay_disabled_when_an_array_is_replaced(self, xp: Any, kept: Any) -> None:
        x, z = xp.zeros(10), xp.zeros(10)
        graph, _ = kept(lambda: (x.__iadd__(1), x.__iadd__(10)))
        graph.set_node_enabled(0, False)
        graph.replace(x, z)
        graph.replay()
        assert (z.get() == 10).all()
        assert not graph.is_node_enabled(0)
        graph.set_node_enabled(0, True)
        graph.replay()
        assert (z.get() == 21).all()

    def test_stay_disabled_when_the_graph_is_updated(self, xp: Any, kept: Any) -> None:
        x, z = xp.zeros(10), xp.zeros(10)
        graph, _ = kept(lambda: (x.__iadd__(1), x.__iadd__(10)))
        graph.set_node_enabled(0, False)
        later, _ = kept(lambda: (z.__iadd__(2), z.__iadd__(20)))
        graph.update(later)
        graph.replay()
        assert (z.get() == 20).all()
        graph.set_node_enabled(0, True)
        graph.replay()
        assert (z.get() == 42).all()

    def test_are_enabled_when_the_graph_is_instantiated_again(self, xp: Any, kept: Any) -> None:
        x = xp.zeros(10)
        graph, _ = kept(lambda: x.__iadd__(1))
        graph.set_node_enabled(0, False)
        graph.instantiate()
        assert graph.is_node_enabled(0)
        graph.replay()
        assert (x.get() == 1).all()

    @pytest.mark.wings
    def test_that_are_disabled_take_part_in_no_race(self, xp: Any, kept: Any) -> None:
        x, side = xp.zeros(1000), tcuda.Stream()
        x.__iadd__(1)
        tcuda.synchronize()
        with tcuda.sanitizer.check(mode="collect") as report:
            graph, _ = kept(lambda: x.__iadd__(1))
            graph.set_node_enabled(0, False)
            graph.replay()
            with tcuda.stream(side):
                x.__imul__(2)
            assert not [*report.races, *report.possible]
            tcuda.synchronize()
            graph.set_node_enabled(0, True)
            graph.replay()
            with tcuda.stream(side):
                x.__imul__(2)
        tcuda.synchronize()
        assert [*report.races, *report.possible]

    def test_of_other_types_cannot_be_disabled(self, xp: Any, kept: Any) -> None:
        x, flag = xp.zeros(10), xp.ones((), bool)
        graph = tcuda.CUDAGraph(keep_graph=True)
        with tcuda.graph(graph):
            graph.begin_capture_to_if_node(flag)
            x.__iadd__(1)
            graph.end_capture_to_conditional_node()
        graph.instantiate()
        kinds = [node["node_type"] for node in graph.get_graph_data()["nodes"]]
        place = kinds.index("conditional")
        with pytest.raises(RuntimeError, match="is no kernel"):
            graph.set_node_enabled(place, False)
        with pytest.raises(tcuda.AcceleratorError) as caught:
            graph.is_node_enabled(place)
        assert caught.value.error_code == 1
        graph.replay()
        assert (x.get() == 1).all()

    @pytest.mark.parametrize("node", [-1, 1, 5])
    def test_that_do_not_exist(self, xp: Any, kept: Any, node: int) -> None:
        x = xp.zeros(10)
        graph, _ = kept(lambda: x.__iadd__(1))
        with pytest.raises(IndexError, match=f"node is {node}, but the graph has 1 nodes"):
            graph.set_node_enabled(node, False)
        with pytest.raises(IndexError, match=f"node is {node}, but the graph has 1 nodes"):
            graph.is_node_enabled(node)

    def test_of_a_graph_that_has_not_kept_them(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.zeros(10)
        captured(lambda: x.__iadd__(1), graph)
        with pytest.raises(RuntimeError, match="keep_graph=True"):
            graph.set_node_enabled(0, False)

    @pytest.mark.parametrize(("node", "enabled"), [("0", True), (0, "yes"), (0.0, True)])
    def test_by_arguments_of_another_type(self, xp: Any, kept: Any, node: Any, enabled: Any) -> None:
        x = xp.zeros(10)
        graph, _ = kept(lambda: x.__iadd__(1))
        with pytest.raises(TypeError):
            graph.set_node_enabled(node, enabled)
