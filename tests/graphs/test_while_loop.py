"""Loops that the device repeats in a graph, and the same loops outside of graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.captures import captured, nothing_captures

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda._runtime.protocol import Runtime

pytestmark = pytest.mark.usefixtures("allocator_as_found")


class Countdown:
    """A loop that runs as many rounds as ``left`` says, and counts them in ``rounds``."""

    def __init__(self, xp: Any, dtype: str = "bool") -> None:
        self.xp = xp
        self.left, self.rounds = xp.zeros((), "int32"), xp.zeros((), "int32")
        self.flag = self.left if dtype == "int32" else xp.zeros((), bool)
        self.calls = 0

    def start(self, rounds: int) -> None:
        self.left.fill(rounds)
        self.rounds.fill(0)
        if self.flag is not self.left:
            self.flag.fill(rounds > 0)

    def body(self) -> None:
        self.calls += 1
        self.rounds += 1
        self.left -= 1
        if self.flag is not self.left:
            self.xp.greater(self.left, 0, out=self.flag)


@pytest.mark.parametrize("dtype", ["bool", "int32"])
class TestRounds:
    def test_the_device_repeats_the_body_that_was_captured_once(
        self, xp: Any, graph: tcuda.CUDAGraph, dtype: str
    ) -> None:
        loop = Countdown(xp, dtype)
        with tcuda.graph(graph):
            tcuda.graphs.while_loop(loop.flag, loop.body)
        assert loop.calls == 1
        for rounds in (0, 1, 7, 3):
            loop.start(rounds)
            graph.replay()
            assert int(loop.rounds) == rounds
        assert loop.calls == 1

    def test_the_host_repeats_the_body_outside_of_captures(self, xp: Any, dtype: str) -> None:
        for rounds in (0, 1, 7):
            loop = Countdown(xp, dtype)
            loop.start(rounds)
            tcuda.graphs.while_loop(loop.flag, loop.body)
            assert int(loop.rounds) == loop.calls == rounds


def test_arguments_are_handed_to_the_body(xp: Any, graph: tcuda.CUDAGraph) -> None:
    x, flag = xp.zeros(()), xp.ones((), bool)

    def body(step: Any, *, limit: float) -> None:
        x.__iadd__(step)
        xp.less(x, limit, out=flag)

    tcuda.graphs.while_loop(flag, body, 2, limit=5)
    assert float(x) == 6
    x.fill(0)
    flag.fill(True)
    with tcuda.graph(graph):
        tcuda.graphs.while_loop(flag, body, 3, limit=8)
    graph.replay()
    assert float(x) == 9


def test_loops_and_bodies_nest(xp: Any, graph: tcuda.CUDAGraph) -> None:
    outer, inner, total, even = Countdown(xp), Countdown(xp), xp.zeros((), "int32"), xp.zeros((), bool)

    def inner_body() -> None:
        inner.body()
        total.__iadd__(1)

    def outer_body() -> None:
        inner.start(3)
        tcuda.graphs.while_loop(inner.flag, inner_body)
        xp.equal(outer.left % 2, 0, out=even)
        graph.begin_capture_to_if_node(even)
        total.__iadd__(100)
        graph.end_capture_to_conditional_node()
        outer.body()

    with tcuda.graph(graph):
        tcuda.graphs.while_loop(outer.flag, outer_body)
    outer.start(5)
    graph.replay()
    assert int(total) == 5 * 3 + 2 * 100


def test_memory_of_a_body_is_used_again_in_every_round(xp: Any, graph: tcuda.CUDAGraph) -> None:
    loop, x, addresses = Countdown(xp), xp.ones(10_000), []

    def body() -> None:
        for _ in range(2):
            doubled = x * 2
            addresses.append(doubled.data.ptr)
            x[...] = doubled
            del doubled
        loop.body()

    with tcuda.graph(graph):
        tcuda.graphs.while_loop(loop.flag, body)
    assert len(set(addresses)) == 1
    loop.start(4)
    graph.replay()
    assert (x.get() == 2**8).all()


def test_work_around_the_loop_keeps_its_order(xp: Any, graph: tcuda.CUDAGraph) -> None:
    loop, x = Countdown(xp), xp.zeros(1000)

    def body() -> None:
        x.__iadd__(1)
        loop.body()

    with tcuda.graph(graph):
        x.fill(5)
        tcuda.graphs.while_loop(loop.flag, body)
        y = x * 2
    loop.start(10)
    graph.replay()
    assert (y.get() == 30).all()


class TestErrors:
    def test_an_exception_of_the_body_propagates_and_the_capture_fails(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        flag = xp.ones((), bool)

        def work() -> None:
            origin = tcuda.current_stream()
            with pytest.raises(ZeroDivisionError):
                tcuda.graphs.while_loop(flag, lambda: 1 // 0)
            assert tcuda.current_stream() == origin

        with pytest.raises(tcuda.AcceleratorError) as caught:
            captured(work, graph)
        assert caught.value.error_code == 901
        assert nothing_captures()

    @pytest.mark.parametrize("capturing", [False, True])
    @pytest.mark.parametrize(
        ("make", "error", "text"),
        [
            (lambda xp: 1, TypeError, r"while_loop\(\) takes an array on a device as its flag; got an int"),
            (lambda xp: xp.ones(()), RuntimeError, "expected a flag of dtype bool or int32, but found float64"),
            (lambda xp: xp.ones((2, 1), bool), RuntimeError, r"one element, but found the shape \(2, 1\)"),
        ],
    )
    def test_another_flag_is_refused(
        self,
        xp: Any,
        graph: tcuda.CUDAGraph,
        capturing: bool,
        make: Callable[[Any], Any],
        error: type[Exception],
        text: str,
    ) -> None:
        flag, x = make(xp), xp.zeros(10)
        if not capturing:
            with pytest.raises(error, match=text):
                tcuda.graphs.while_loop(flag, lambda: None)
            return
        with tcuda.graph(graph):
            with pytest.raises(error, match=text):
                tcuda.graphs.while_loop(flag, lambda: None)
            x += 1
        graph.replay()
        assert (x.get() == 1).all()

    def test_a_body_that_is_no_function_is_refused(self, xp: Any) -> None:
        with pytest.raises(TypeError, match="body must be callable; got an int"):
            tcuda.graphs.while_loop(xp.zeros((), bool), 5)  # type: ignore[arg-type]

    def test_a_capture_of_another_library_is_refused(self, xp: Any, runtime: Runtime) -> None:
        flag, stream = xp.ones((), bool), tcuda.Stream()
        with tcuda.stream(stream):
            runtime.streamBeginCapture(stream.cuda_stream, 2)
            try:
                with pytest.raises(RuntimeError, match="tcuda did not begin the capture"):
                    tcuda.graphs.while_loop(flag, lambda: None)
            finally:
                runtime.graphDestroy(runtime.streamEndCapture(stream.cuda_stream))


@pytest.mark.emulated
def test_the_results_are_the_same_with_the_late_schedule(output_of: Any) -> None:
    code = """
import tcuda
xp = tcuda.xp
x, left = xp.zeros(()), xp.zeros((), "int32")
def body():
    x.__iadd__(1)
    x.__imul__(2)
    left.__isub__(1)
graph = tcuda.CUDAGraph()
with tcuda.graph(graph):
    tcuda.graphs.while_loop(left, body)
for rounds in (3, 0):
    left.fill(rounds)
    graph.replay()
print(float(x))
"""
    for schedule in ("late", "late:1", "late:2"):
        printed = output_of(code, TCUDA_RUNTIME="emulated", TCUDA_EMULATED_SCHEDULE=schedule)
        assert printed == "14.0"
