"""Graphs that work on another array in the place of one array."""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.captures import captured
from support.pools import settle
from support.sizes import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tcuda._runtime.protocol import Runtime

pytestmark = pytest.mark.usefixtures("allocator_as_found")

NAMES = ["float32", "float64", "complex64", "float16"]


@pytest.fixture
def graph(runtime: Runtime) -> Iterator[tcuda.CUDAGraph]:
    """A graph that keeps its nodes, and that is reset at the end."""
    made = tcuda.CUDAGraph(keep_graph=True)
    yield made
    made._abandon_capture()
    made.reset()


def addresses_of(graph: tcuda.CUDAGraph) -> list[int]:
    """Return the addresses in the nodes, as the picture of the graph shows them."""
    from tcuda._process.lazy import cuda

    return cuda.graphContents(graph.raw_cuda_graph()).addresses


def squares(xp: Any, *shape: int) -> Any:
    return xp.arange(float(np.prod(shape))).reshape(shape) ** 2


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "a function of each element": lambda xp, x: xp.sqrt(x) + 1,
    "a copy": lambda xp, x: x.copy(),
    "a transposed copy": lambda xp, x: xp.ascontiguousarray(x.T),
    "a sum": lambda xp, x: x.sum(),
    "a sum along an axis": lambda xp, x: x.sum(axis=0),
    "a cumulative sum": lambda xp, x: xp.cumsum(x, axis=1),
    "a maximum": lambda xp, x: x.max(axis=1),
    "a place of a maximum": lambda xp, x: xp.argmax(x),
    "a product of matrices": lambda xp, x: x @ x,
    "a product of a stack of matrices": lambda xp, x: xp.matmul(x.reshape(4, 16, 64), x.reshape(4, 64, 16)),
    "a product of vectors": lambda xp, x: x[0] @ x[1],
    "a contraction": lambda xp, x: xp.tensordot(x, x, axes=2),
    "a view": lambda xp, x: x[3:40, ::3] * 2,
    "a reversed view": lambda xp, x: x[::-1, ::-1] + 1,
    "a condition": lambda xp, x: xp.where(x > 40, x, 0),
    "a join": lambda xp, x: xp.concatenate([x, x[:5]]),
    "a selection": lambda xp, x: xp.take(x, xp.arange(0, 60, 7), axis=0),
    "a sort": lambda xp, x: xp.sort(x, axis=1),
    "a sort of all": lambda xp, x: xp.argsort(x.ravel()),
    "a Fourier transform": lambda xp, x: xp.fft.fft(x, axis=1),
    "a Fourier transform of two axes": lambda xp, x: xp.fft.rfft2(x),
    "a cross": lambda xp, x: xp.outer(x[0], x[1]),
}


class TestOperations:
    @pytest.mark.parametrize("name", OPERATIONS)
    def test_read_the_new_array(self, xp: Any, graph: tcuda.CUDAGraph, name: str) -> None:
        function = OPERATIONS[name]
        old, new = squares(xp, 64, 64), squares(xp, 64, 64)[::-1].copy() + 5
        function(xp, old)  # CUDA cannot load kernels and libraries during a capture
        _, result = captured(lambda: function(xp, old), graph)
        assert graph.replace(old, new) >= 1
        expected = function(xp, new).get()
        graph.replay()
        np.testing.assert_allclose(result.get(), expected, rtol=1e-12)

    @pytest.mark.parametrize("name", OPERATIONS)
    def test_have_no_address_of_the_old_array(self, xp: Any, graph: tcuda.CUDAGraph, name: str) -> None:
        old, new = squares(xp, 64, 64), squares(xp, 64, 64)
        OPERATIONS[name](xp, old)
        captured(lambda: OPERATIONS[name](xp, old), graph)
        graph.replace(old, new)
        begin, end = old.data.ptr, old.data.ptr + old.nbytes
        assert not [address for address in addresses_of(graph) if begin <= address < end]

    @pytest.mark.parametrize("dtype", NAMES)
    @pytest.mark.parametrize("size", [16, 128])
    def test_products_of_every_type(self, xp: Any, graph: tcuda.CUDAGraph, dtype: str, size: int) -> None:
        check_product(xp, graph, dtype, size)

    @pytest.mark.gpu
    @pytest.mark.parametrize("dtype", NAMES)
    @pytest.mark.parametrize("size", [512, 1024, 4096])
    def test_products_of_large_matrices(self, xp: Any, graph: tcuda.CUDAGraph, dtype: str, size: int) -> None:
        check_product(xp, graph, dtype, size)

    def test_write_the_new_array(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, old, new = xp.arange(10.0), xp.zeros(10), xp.zeros(10)
        captured(lambda: xp.multiply(x, 3, out=old), graph)
        graph.replace(old, new)
        graph.replay()
        assert (new.get() == 3 * np.arange(10)).all()
        assert (old.get() == 0).all()

    def test_read_and_write_the_new_array(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        old, new = xp.zeros(10), xp.full(10, 5.0)
        captured(lambda: old.__iadd__(1), graph)
        graph.replace(old, new)
        for _ in range(3):
            graph.replay()
        assert (new.get() == 8).all()
        assert (old.get() == 0).all()

    def test_fills_and_copies_of_bytes(self, xp: Any, runtime: Runtime, graph: tcuda.CUDAGraph) -> None:
        old, new, target = xp.ones(100), xp.ones(100), xp.ones(100)

        def work() -> None:
            stream = tcuda.current_stream().cuda_stream
            runtime.memsetAsync(old.data.ptr + 8, 0, 80, stream)
            runtime.memcpyAsync(target.data.ptr, old.data.ptr, 800, 3, stream)

        captured(work, graph)
        assert graph.replace(old, new) == 2
        graph.replay()
        expected = np.ones(100)
        expected[1:11] = 0
        assert (new.get() == expected).all()
        assert (target.get() == expected).all()
        assert (old.get() == 1).all()

    def test_pointers_of_a_kernel_of_the_program(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        kernel = xp.RawKernel(
            'extern "C" __global__ void twice(double *y, const double *x, int n) {\n'
            "    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 2 * x[i];\n}",
            "twice",
        )
        x, y, other, result = xp.arange(9.0), xp.zeros(9), xp.ones(9), xp.zeros(9)
        kernel((1,), (32,), (y, x, 9))
        captured(lambda: kernel((1,), (32,), (y, x, 9)), graph)
        assert graph.replace(x, other) == graph.replace(y, result) == 1
        graph.replay()
        assert (result.get() == 2).all()
        assert (y.get() == 2 * np.arange(9)).all()

    def test_in_the_body_of_a_conditional_node(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        flag, other_flag = xp.ones((), bool), xp.zeros((), bool)
        old, new = xp.zeros(10), xp.zeros(10)
        with tcuda.graph(graph):
            graph.begin_capture_to_if_node(flag)
            old += 1
            graph.end_capture_to_conditional_node()
        graph.replay()
        assert graph.replace(old, new) == 1
        graph.replay()
        assert (new.get() == 1).all()
        assert (old.get() == 1).all()
        assert graph.replace(flag, other_flag) == 1
        graph.replay()
        assert (new.get() == 1).all()

    def test_in_a_loop_of_the_device(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        going_on, old, new = xp.ones((), bool), xp.zeros(()), xp.full((), 2.0)

        def step() -> None:
            old.__iadd__(1)
            xp.less(old, 5, out=going_on)

        captured(lambda: tcuda.graphs.while_loop(going_on, step), graph)
        assert graph.replace(old, new) == 2
        graph.replay()
        assert float(new) == 5
        assert float(old) == 0

    def test_random_numbers_go_to_the_new_array(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        old, new = xp.zeros(100), xp.zeros(100)
        captured(lambda: xp.add(xp.random.random(100), 1, out=old), graph)
        graph.replace(old, new)
        tcuda.manual_seed(3)
        graph.replay()
        tcuda.manual_seed(3)
        assert (new.get() == xp.random.random(100).get() + 1).all()
        assert (old.get() == 0).all()


def check_product(xp: Any, graph: tcuda.CUDAGraph, dtype: str, size: int) -> None:
    """Check that a product of matrices reads and writes new arrays."""
    left, right = (xp.asarray(np.random.default_rng(3).random((size, size)), dtype) for _ in range(2))
    others = left + left, right[::-1].copy()
    out, other_out = xp.zeros((size, size), dtype), xp.zeros((size, size), dtype)
    xp.matmul(left, right, out=out)
    captured(lambda: xp.matmul(left, right, out=out), graph)
    out.fill(0)
    for old, new in zip((left, right, out), (*others, other_out), strict=True):
        graph.replace(old, new)
    graph.replay()
    expected = xp.matmul(*others).get()
    np.testing.assert_allclose(other_out.get(), expected, rtol=2e-2 if dtype == "float16" else 1e-4)
    assert (out.get() == 0).all()


class TestReplacements:
    def test_follow_each_other(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        arrays = [xp.full(10, float(number)) for number in range(5)]
        _, y = captured(lambda: arrays[0] * 2, graph)
        for number, (old, new) in enumerate(itertools.pairwise(arrays), 1):
            graph.replace(old, new)
            graph.replay()
            assert (y.get() == 2 * number).all()

    def test_before_the_graph_is_instantiated(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        old, new = xp.zeros(10), xp.ones(10)
        _, y = captured(lambda: old * 2, graph)
        with pytest.raises(RuntimeError):
            graph.raw_cuda_graph_exec()
        graph.replace(old, new)
        graph.replay()
        assert (y.get() == 2).all()

    def test_last_when_the_graph_is_instantiated_again(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        old, new = xp.zeros(10), xp.ones(10)
        _, y = captured(lambda: old * 2, graph)
        graph.instantiate()
        graph.replace(old, new)
        graph.instantiate()
        graph.replay()
        assert (y.get() == 2).all()

    def test_keep_the_executable_graph(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        old, new = xp.zeros(10), xp.ones(10)
        captured(lambda: old * 2, graph)
        graph.instantiate()
        executable = graph.raw_cuda_graph_exec()
        graph.replace(old, new)
        assert graph.raw_cuda_graph_exec() == executable

    def test_do_not_change_replays_that_were_launched_before(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        old, new = xp.full(MIB, 1.0), xp.full(MIB, 2.0)
        _, y = captured(lambda: old + 1, graph)
        graph.replay()
        before = y.copy()
        graph.replace(old, new)
        graph.replay()
        assert (before.get() == 2).all()
        assert (y.get() == 3).all()

    def test_of_a_view_of_another_array(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        whole, new = xp.zeros(1000), xp.ones(100)
        _, y = captured(lambda: whole[200:300] + 1, graph)
        graph.replace(whole[200:300], new)
        graph.replay()
        assert (y.get() == 2).all()

    def test_by_a_view_of_another_array(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        old, whole = xp.zeros(100), xp.arange(1000.0)
        _, y = captured(lambda: old[10:] + 1, graph)
        graph.replace(old, whole[200:300])
        graph.replay()
        assert (y.get() == np.arange(210, 300) + 1).all()

    def test_of_an_array_of_the_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, new = xp.ones(10), xp.zeros(10)
        _, y = captured(lambda: x + 1, graph)
        graph.replace(y, new)
        graph.replay()
        assert (new.get() == 2).all()

    @pytest.mark.emulated  # the picture of CUDA has no addresses of kernels
    def test_are_in_the_picture(self, xp: Any, graph: tcuda.CUDAGraph, tmp_path: Path) -> None:
        old, new = xp.zeros(10), xp.ones(10)
        graph.enable_debug_mode()
        captured(lambda: old * 2, graph)
        graph.replace(old, new)
        graph.debug_dump(tmp_path / "graph.dot")
        picture = (tmp_path / "graph.dot").read_text()
        assert hex(new.data.ptr) in picture
        assert hex(old.data.ptr) not in picture

    def test_are_told_in_the_log(self, xp: Any, graph: tcuda.CUDAGraph, caplog: pytest.LogCaptureFixture) -> None:
        old, new = xp.zeros(10), xp.ones(10)
        captured(lambda: old * 2, graph)
        with caplog.at_level("DEBUG", "tcuda"):
            graph.replace(old, new)
        assert f"uses {new.data.ptr:#x} in the place of {old.data.ptr:#x}" in caplog.text


SIZE = 4 * MIB


def given_out(xp: Any, *places: int) -> list[bool]:
    """Return for each address whether new arrays get the memory that begins there."""
    settle()
    arrays = [xp.zeros(SIZE, xp.uint8) for _ in range(8)]
    found = {array.data.ptr for array in arrays}
    return [place in found for place in places]


class TestMemory:
    def test_of_the_old_array_is_given_out_again_and_that_of_the_new_one_is_kept(
        self, xp: Any, graph: tcuda.CUDAGraph
    ) -> None:
        old, new = xp.zeros(SIZE, xp.uint8), xp.ones(SIZE, xp.uint8)
        _, y = captured(lambda: old + xp.uint8(1), graph)
        graph.replay()
        places = old.data.ptr, new.data.ptr
        graph.replace(old, new)
        old = new = None
        assert given_out(xp, *places) == [True, False]
        graph.replay()
        assert (y.get() == 2).all()
        graph.reset()
        assert given_out(xp, *places) == [True, True]

    def test_that_a_body_uses_is_exchanged(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        flag, old, new = xp.ones((), bool), xp.zeros(SIZE, xp.uint8), xp.ones(SIZE, xp.uint8)
        with tcuda.graph(graph):
            graph.begin_capture_to_if_node(flag)
            old += 1
            graph.end_capture_to_conditional_node()
        graph.replay()
        places = old.data.ptr, new.data.ptr
        graph.replace(old, new)
        old = new = None
        assert given_out(xp, *places) == [True, False]

    def test_of_the_old_array_stays_after_an_error(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        old, new = xp.zeros(SIZE, xp.uint8), xp.ones(SIZE, xp.uint8)
        captured(lambda: (old + xp.uint8(1), old[5:] + xp.uint8(1)), graph)
        places = old.data.ptr, new.data.ptr
        with pytest.raises(RuntimeError, match="uses another part"):
            graph.replace(old[32:], new[32:])
        with pytest.raises(RuntimeError, match="no node of the graph"):
            graph.replace(new, xp.ones(SIZE, xp.uint8))
        old = new = None
        assert given_out(xp, *places) == [False, True]

    def test_no_array_is_kept_alive(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        old, new = xp.zeros(10), xp.ones(10)
        captured(lambda: old + 1, graph)
        graph.replace(old, new)
        alive = weakref.ref(new)
        del new
        assert alive() is None


class TestErrors:
    @pytest.mark.parametrize(
        ("what", "make"),
        [
            ("shape", lambda xp: xp.zeros(11)),
            ("dtype", lambda xp: xp.zeros(10, xp.int64)),
            ("strides", lambda xp: xp.zeros(20)[::2]),
        ],
    )
    def test_another_layout(self, xp: Any, graph: tcuda.CUDAGraph, what: str, make: Callable[[Any], Any]) -> None:
        old = xp.zeros(10)
        _, y = captured(lambda: old + 1, graph)
        with pytest.raises(RuntimeError, match=f"the {what} of old is"):
            graph.replace(old, make(xp))
        graph.replay()
        assert (y.get() == 1).all()

    @pytest.mark.multigpu
    def test_another_device(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        old = xp.zeros(10)
        captured(lambda: old + 1, graph)
        with tcuda.device(1):
            new = xp.zeros(10)
        with pytest.raises(RuntimeError, match="the device of old is 0 and the device of new is 1"):
            graph.replace(old, new)

    def test_an_alignment_that_kernels_may_not_expect(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        old = xp.zeros(10)
        captured(lambda: old + 1, graph)
        with pytest.raises(RuntimeError, match="must be a multiple of 16"):
            graph.replace(old, xp.zeros(11)[1:])

    @pytest.mark.parametrize("wrong", [None, 3, np.zeros(10)])
    def test_no_array_of_a_device(self, xp: Any, graph: tcuda.CUDAGraph, wrong: Any) -> None:
        x = xp.zeros(10)
        captured(lambda: x + 1, graph)
        with pytest.raises(TypeError, match=r"replace\(\) takes arrays of a device; new is"):
            graph.replace(x, wrong)

    def test_an_array_that_no_node_uses(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.zeros(10)
        captured(lambda: x + 1, graph)
        with pytest.raises(RuntimeError, match="no node of the graph has the address"):
            graph.replace(xp.zeros(10), xp.zeros(10))

    def test_an_array_without_elements(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.zeros(10)
        captured(lambda: x + 1, graph)
        with pytest.raises(RuntimeError, match="no elements"):
            graph.replace(xp.zeros(0), xp.zeros(0))

    def test_a_part_of_an_array_that_another_node_uses_as_a_whole(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        whole = xp.arange(1000.0)
        _, (y, total) = captured(lambda: (whole[200:300] + 1, whole.sum()), graph)
        before = addresses_of(graph)
        with pytest.raises(RuntimeError, match=r"node 1 \(.*\) uses another part"):
            graph.replace(whole[200:300], xp.zeros(100))
        assert addresses_of(graph) == before
        graph.replay()
        assert (y.get() == np.arange(200, 300) + 1).all()
        assert float(total) == np.arange(1000).sum()

    @pytest.mark.emulated  # CUDA does not know how far a kernel goes
    def test_a_part_of_an_array_that_a_node_leaves(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        whole = xp.arange(1000.0)
        _, y = captured(lambda: whole[299:100:-1] + 1, graph)
        with pytest.raises(RuntimeError, match=r"node 0 \(.*\) uses another part"):
            graph.replace(whole[200:300], xp.zeros(100))
        graph.replay()
        assert (y.get() == np.arange(299, 100, -1) + 1).all()

    def test_a_graph_without_its_nodes(self, xp: Any) -> None:
        x = xp.zeros(10)
        graph, _ = captured(lambda: x + 1)
        with pytest.raises(RuntimeError, match="keep_graph=True"):
            graph.replace(x, x)

    def test_a_graph_without_a_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        with pytest.raises(RuntimeError, match="has captured nothing yet"):
            graph.replace(xp.zeros(10), xp.zeros(10))

    def test_a_graph_in_its_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, new = xp.zeros(10), xp.zeros(10)
        with tcuda.graph(graph):
            y = x + 1
            with pytest.raises(RuntimeError, match="is being captured"):
                graph.replace(x, new)
        graph.replay()
        assert (y.get() == 1).all()


class TestRaces:
    @pytest.mark.wings
    def test_are_found_on_the_new_array_and_no_longer_on_the_old_one(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        old, new, side = xp.zeros(1000), xp.zeros(1000), tcuda.Stream()
        old.__iadd__(1)
        tcuda.synchronize()
        with tcuda.sanitizer.check(mode="collect") as report:
            captured(lambda: old.__iadd__(1), graph)
            graph.replay()
            tcuda.synchronize()
            graph.replace(old, new)
            graph.replay()
            with tcuda.stream(side):
                old.__imul__(2)
            assert not [*report.races, *report.possible]
            with tcuda.stream(side):
                new.__imul__(2)
        tcuda.synchronize()
        assert [*report.races, *report.possible]  # on CUDA, the race is possible: the driver knows less of the new node


class TestDuringACapture:
    def test_of_another_graph(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        old, new, x = xp.zeros(10), xp.ones(10), xp.zeros(10)
        _, y = captured(lambda: old + 1, graph)
        graph.instantiate()
        other = tcuda.CUDAGraph()
        with tcuda.graph(other):
            z = x + 4
            graph.replace(old, new)
        graph.replay()
        other.replay()
        assert (y.get() == 2).all()
        assert (z.get() == 4).all()
