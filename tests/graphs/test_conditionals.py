"""Conditional nodes: work of a graph that a replay does only if a flag on the device says so."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.captures import MODES, captured, nothing_captures
from support.pools import pool_of, settle
from support.sizes import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcuda._runtime.protocol import Runtime

pytestmark = pytest.mark.usefixtures("allocator_as_found")


@contextlib.contextmanager
def if_node(graph: tcuda.CUDAGraph, flag: Any) -> Iterator[None]:
    """Capture the block into the body of an IF node."""
    graph.begin_capture_to_if_node(flag)
    yield
    graph.end_capture_to_conditional_node()


class TestIf:
    @pytest.mark.parametrize("mode", MODES)
    def test_the_body_runs_if_the_flag_is_true_at_the_replay(self, xp: Any, graph: tcuda.CUDAGraph, mode: str) -> None:
        x, flag = xp.zeros(10), xp.zeros((), bool)
        with tcuda.graph(graph, capture_error_mode=mode), if_node(graph, flag):
            x += 1
        assert (x.get() == 0).all()
        for value, expected in ((False, 0), (True, 1), (True, 2), (False, 2)):
            flag.fill(value)
            graph.replay()
            assert (x.get() == expected).all()

    def test_the_flag_is_read_at_its_place_in_the_graph(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, flag, limit = xp.zeros(()), xp.zeros((), bool), xp.full((), 3.0)
        with tcuda.graph(graph):
            x.__iadd__(1)
            xp.greater(x, limit, out=flag)
            with if_node(graph, flag):
                x.fill(0)
        seen = []
        for _ in range(8):
            graph.replay()
            seen.append(float(x))
        assert seen == [1, 2, 3, 0, 1, 2, 3, 0]

    def test_the_work_after_the_node_waits_for_the_body(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, flag = xp.zeros(1000), xp.ones(1, bool)
        with tcuda.graph(graph):
            x.fill(1)
            with if_node(graph, flag):
                tcuda._sleep(1_000_000)
                x += 2
            x *= 10
        graph.replay()
        assert (x.get() == 30).all()
        flag.fill(False)
        graph.replay()
        assert (x.get() == 10).all()

    def test_bodies_nest(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, outer, inner = xp.zeros(()), xp.zeros((), bool), xp.zeros((), bool)
        with tcuda.graph(graph), if_node(graph, outer):
            x.__iadd__(1)
            with if_node(graph, inner):
                x.__iadd__(10)
            x.__iadd__(100)
        results = {}
        for first in (False, True):
            for second in (False, True):
                x.fill(0)
                outer.fill(first)
                inner.fill(second)
                graph.replay()
                results[first, second] = float(x)
        assert results == {(False, False): 0, (False, True): 0, (True, False): 101, (True, True): 111}

    @pytest.mark.emulated
    def test_more_bodies_than_the_ring_has_streams(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, flag = xp.zeros(()), xp.ones((), bool)
        with tcuda.graph(graph):
            for _ in range(40):
                graph.begin_capture_to_if_node(flag)
            x.__iadd__(1)
            for _ in range(40):
                graph.end_capture_to_conditional_node()
        graph.replay()
        assert float(x) == 1

    def test_streams_of_the_body_are_forked_and_joined(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, y, flag, side = xp.zeros(10), xp.zeros(10), xp.ones((), bool), tcuda.Stream()
        with tcuda.graph(graph), if_node(graph, flag):
            here = tcuda.current_stream()
            side.wait_stream(here)
            with tcuda.stream(side):
                y += 2
            x += 1
            here.wait_stream(side)
            x += y
        graph.replay()
        assert (x.get() == 3).all()

    def test_two_streams_of_the_capture_have_their_own_bodies(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, y, flag, side = xp.zeros(10), xp.zeros(10), xp.ones((), bool), tcuda.Stream()
        used = []
        with tcuda.graph(graph):
            here = tcuda.current_stream()
            side.wait_stream(here)
            for stream, array in ((here, x), (side, y), (here, x)):
                with tcuda.stream(stream), if_node(graph, flag):
                    used.append(tcuda.current_stream())
                    array += 1
            here.wait_stream(side)
        graph.replay()
        assert (x.get() == 2).all()
        assert (y.get() == 1).all()
        assert used[0] == used[2] != used[1]

    def test_the_body_is_a_part_of_the_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        flag = xp.ones((), bool)
        with tcuda.graph(graph):
            origin = tcuda.current_stream()
            x = xp.zeros(10)
            with if_node(graph, flag):
                assert tcuda.current_stream() != origin
                assert tcuda.is_current_stream_capturing()
                assert tcuda.CUDAGraph.get_currently_capturing_graph() is graph
                with pytest.raises(tcuda.AcceleratorError) as caught:
                    tcuda.current_stream().wait_stream(origin)  # its work is in another CUDA capture
                assert caught.value.error_code == 902
                x += 1
            assert tcuda.current_stream() == origin
        graph.replay()
        assert (x.get() == 1).all()

    def test_products_of_matrices_are_captured_in_a_body(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, weights, flag = xp.ones((4, 8), "float32"), xp.full((8, 2), 0.5, "float32"), xp.ones((), bool)
        y = xp.zeros((4, 2), "float32")
        with tcuda.graph(graph), if_node(graph, flag):
            y += x @ weights
        for _ in range(2):
            graph.replay()
        assert (y.get() == 8).all()

    def test_another_graph_of_the_same_kind_can_follow(self, xp: Any) -> None:
        x, flag = xp.zeros(10), xp.ones((), bool)
        for _ in range(3):
            graph = tcuda.CUDAGraph()
            with tcuda.graph(graph), if_node(graph, flag):
                x += 1
            graph.replay()
            graph.reset()
        assert (x.get() == 3).all()
        assert nothing_captures()

    def test_a_kept_graph_is_instantiated_again(self, xp: Any) -> None:
        x, flag, graph = xp.zeros(10), xp.ones((), bool), tcuda.CUDAGraph(keep_graph=True)
        with tcuda.graph(graph), if_node(graph, flag):
            x += 1
        for _ in range(2):
            graph.instantiate()
            graph.replay()
        graph.instantiate()
        assert (x.get() == 2).all()
        kinds = [node["node_type"] for node in graph.get_graph_data()["nodes"]]
        assert kinds == ["kernel", "conditional"]

    @pytest.mark.multigpu
    def test_the_node_runs_on_the_device_of_the_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        with tcuda.device(1):
            x, flag = xp.zeros(10), xp.ones((), bool)
            with tcuda.graph(graph), if_node(graph, flag):
                x += 1
        graph.replay()
        with tcuda.device(1):
            assert (x.get() == 1).all()


class TestMemory:
    def test_of_a_body_comes_from_the_pool_of_the_graph(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        flag = xp.ones((), bool)
        with tcuda.graph(graph):
            before = xp.zeros(2 * MIB, xp.uint8)
            with if_node(graph, flag):
                inside = xp.zeros(2 * MIB, xp.uint8)
            after = xp.zeros(2 * MIB, xp.uint8)
        assert [pool_of(array) for array in (before, inside, after)] == [graph.pool()] * 3

    def test_of_a_forked_stream_comes_from_the_pool_of_the_graph(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        flag, side = xp.ones((), bool), tcuda.Stream()
        with tcuda.graph(graph), if_node(graph, flag):
            here = tcuda.current_stream()
            side.wait_stream(here)
            with tcuda.stream(side):
                inside = xp.zeros(2 * MIB, xp.uint8)
            here.wait_stream(side)
        assert pool_of(inside) == graph.pool()
        with tcuda.stream(side):
            outside = xp.zeros(2 * MIB, xp.uint8)
        assert pool_of(outside) == (0, 0)

    def test_is_used_again_within_a_body_and_in_the_next_body(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        flag, x, total, addresses = xp.ones((), bool), xp.ones(10_000), xp.zeros(10_000), []
        with tcuda.graph(graph):
            for _ in range(2):
                with if_node(graph, flag):
                    for _ in range(3):
                        temporary = x * 2
                        addresses.append(temporary.data.ptr)
                        total += temporary
                        del temporary
        assert len(set(addresses)) == 1
        graph.replay()
        assert (total.get() == 12).all()

    def test_that_only_a_body_reads_is_kept_by_the_graph(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, total, flag = xp.full(10_000, 3.0), xp.zeros(10_000), xp.ones((), bool)
        with tcuda.graph(graph), if_node(graph, flag):
            total += x
        address = x.data.ptr
        del x, flag
        others = [xp.zeros(10_000) for _ in range(20)]
        assert address not in [other.data.ptr for other in others]
        graph.replay()
        assert (total.get() == 3).all()

    def test_goes_back_with_the_graph(self, xp: Any) -> None:
        flag = xp.ones((), bool)
        tcuda.empty_cache()
        before = tcuda.memory_reserved()
        graph = tcuda.CUDAGraph()
        with tcuda.graph(graph), if_node(graph, flag):
            xp.zeros(64 * MIB, xp.uint8)
        graph.replay()
        assert tcuda.memory_reserved() >= before + 64 * MIB
        graph.reset()
        settle()
        assert tcuda.memory_reserved() == before


class TestErrors:
    def test_a_body_needs_a_capture_of_the_graph(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        flag, other = xp.ones((), bool), tcuda.CUDAGraph()
        with pytest.raises(RuntimeError, match=r"capture_begin\(\) must be called before"):
            graph.begin_capture_to_if_node(flag)
        with pytest.raises(RuntimeError, match="no body is being captured"):
            graph.end_capture_to_conditional_node()
        with tcuda.graph(graph):
            x = xp.zeros(10)
            with pytest.raises(RuntimeError, match=r"capture_begin\(\) must be called before"):
                other.begin_capture_to_if_node(flag)
            with tcuda.stream(tcuda.Stream()), pytest.raises(RuntimeError, match="must take part in the capture"):
                graph.begin_capture_to_if_node(flag)
            x += 1
        graph.replay()
        assert (x.get() == 1).all()
        with pytest.raises(RuntimeError, match="already owns a captured graph"):
            graph.begin_capture_to_if_node(flag)

    @pytest.mark.parametrize(
        ("make", "error", "text"),
        [
            (lambda xp: True, TypeError, "takes an array on a device as its flag; got a bool"),
            (lambda xp: xp.ones((), bool).get(), TypeError, "takes an array on a device"),
            (lambda xp: xp.ones(()), RuntimeError, "expected a flag of dtype bool, but found float64"),
            (lambda xp: xp.ones((), "int32"), RuntimeError, "expected a flag of dtype bool, but found int32"),
            (lambda xp: xp.ones(2, bool), RuntimeError, r"one element, but found the shape \(2,\)"),
            (lambda xp: xp.ones((0, 3), bool), RuntimeError, r"one element, but found the shape \(0, 3\)"),
        ],
    )
    def test_the_flag_is_one_bool_on_the_device(
        self, xp: Any, graph: tcuda.CUDAGraph, make: Callable[[Any], Any], error: type[Exception], text: str
    ) -> None:
        flag = make(xp)
        with tcuda.graph(graph):
            x = xp.zeros(10)
            with pytest.raises(error, match=text):
                graph.begin_capture_to_if_node(flag)
            x += 1
        graph.replay()
        assert (x.get() == 1).all()

    @pytest.mark.multigpu
    def test_a_flag_on_another_device_is_refused(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        with tcuda.device(1):
            flag = xp.ones((), bool)
        with tcuda.graph(graph):
            x = xp.zeros(10)
            with pytest.raises(RuntimeError, match="on the current device cuda:0, but found a flag on cuda:1"):
                graph.begin_capture_to_if_node(flag)
            x += 1
        graph.replay()
        assert (x.get() == 1).all()

    def test_random_numbers_are_refused_and_the_capture_goes_on(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        flag = xp.ones((), bool)
        with tcuda.graph(graph):
            before = xp.random.standard_normal(4)
            with if_node(graph, flag):
                with pytest.raises(RuntimeError, match="^RNG within data-dependent conditional nodes is not supported"):
                    xp.random.standard_normal(4)
                before *= 0
        graph.replay()
        assert (before.get() == 0).all()

    def test_an_open_body_lets_the_capture_fail(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, flag = xp.zeros(10), xp.ones((), bool)
        with pytest.raises(RuntimeError, match="has no end_capture_to_conditional_node"):
            captured(lambda: graph.begin_capture_to_if_node(flag), graph)
        assert nothing_captures()
        captured(lambda: x.__iadd__(1), graph)
        graph.replay()
        assert (x.get() == 1).all()

    def test_an_exception_in_a_body_drops_the_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, flag = xp.zeros(10), xp.ones((), bool)

        def work() -> None:
            graph.begin_capture_to_if_node(flag)
            graph.begin_capture_to_if_node(flag)
            x.__iadd__(1 // 0)

        with pytest.raises(ZeroDivisionError):
            captured(work, graph)
        assert nothing_captures()
        captured(lambda: x.__iadd__(1), graph)
        graph.replay()
        assert (x.get() == 1).all()

    def test_a_body_ends_on_its_own_stream(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, flag = xp.zeros(10), xp.ones((), bool)
        with tcuda.graph(graph):
            graph.begin_capture_to_if_node(flag)
            with (
                tcuda.stream(tcuda.Stream()),
                pytest.raises(RuntimeError, match="must end on the stream that its begin has made current"),
            ):
                graph.end_capture_to_conditional_node()
            x += 1
            graph.end_capture_to_conditional_node()
        graph.replay()
        assert (x.get() == 1).all()

    def test_a_body_with_an_unjoined_stream_lets_the_capture_fail(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, flag, side = xp.zeros(10), xp.ones((), bool), tcuda.Stream()

        def work() -> None:
            graph.begin_capture_to_if_node(flag)
            side.wait_stream(tcuda.current_stream())
            with tcuda.stream(side):
                x.__iadd__(1)
            with pytest.raises(tcuda.AcceleratorError) as unjoined:
                graph.end_capture_to_conditional_node()
            assert unjoined.value.error_code == 904

        with pytest.raises(tcuda.AcceleratorError) as caught:
            captured(work, graph)
        assert caught.value.error_code == 901
        assert nothing_captures()

    def test_a_node_that_cuda_forbids_is_named_at_the_end_of_the_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        flag, event = xp.ones((), bool), tcuda.Event(external=True)

        def work() -> None:
            x = xp.zeros(10)
            with if_node(graph, flag):
                x += 1
                event.record()

        with pytest.raises(tcuda.AcceleratorError, match="may contain only kernels") as caught:
            captured(work, graph)
        assert caught.value.error_code == 1
        assert nothing_captures()

    def test_a_call_that_waits_is_refused_and_the_capture_goes_on(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, flag = xp.zeros(10), xp.ones((), bool)
        with tcuda.graph(graph), if_node(graph, flag):
            with pytest.raises(tcuda.AcceleratorError) as caught:
                tcuda.current_stream().synchronize()
            assert caught.value.error_code == 900
            x += 1
        graph.replay()
        assert (x.get() == 1).all()

    def test_a_capture_that_was_invalidated_before_gets_no_body(
        self, xp: Any, graph: tcuda.CUDAGraph, runtime: Runtime
    ) -> None:
        flag = xp.ones((), bool)

        def work() -> None:
            xp.zeros(10)
            with pytest.raises(tcuda.AcceleratorError):
                runtime.streamSynchronize(tcuda.current_stream().cuda_stream)  # which invalidates the capture
            graph.begin_capture_to_if_node(flag)

        with pytest.raises(tcuda.AcceleratorError) as caught:
            captured(work, graph)
        assert caught.value.error_code == 901
        assert nothing_captures()
