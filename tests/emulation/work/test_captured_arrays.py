"""Arrays of emulated devices in graphs: captured work, the memory of a graph, and calls that a capture refuses."""

from __future__ import annotations

import operator
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.devices import allocated, synchronized
from support.emulated_streams import new_stream
from tcuda._runtime.protocol import CAPTURE_RELAXED
from tcuda.emulation import xp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.fixture_types import Captured
    from tcuda.emulation.runtime import EmulatedRuntime


pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]


# Arrays

SIZE = 1 << 12
POISON = b"\xff"


def bytes_of(array: Any) -> bytes:
    contents: bytes = array.get().tobytes()
    return contents


def test_a_program_is_captured(captured: Captured) -> None:
    """Capture forward and backward of a layer, and a step that changes the weights in place."""
    random = np.random.default_rng(0)
    data, labels = random.standard_normal((16, 8)).astype("f"), random.standard_normal((16, 3)).astype("f")

    def step(module: Any, data: Any, labels: Any, weights: Any) -> Any:
        wrong = module.tanh(data @ weights) - labels
        weights -= 0.1 * (data.T @ (wrong * (1 - module.tanh(data @ weights) ** 2)))
        return (wrong**2).mean()

    eager = [xp.asarray(host) for host in (data, labels, np.ones((8, 3), "f"))]
    static = [xp.asarray(host) for host in (data, labels, np.ones((8, 3), "f"))]
    loss, launch = captured(lambda: step(xp, *static))
    assert bytes_of(static[2]) == bytes_of(eager[2]), "nothing has run yet"
    for _ in range(5):
        expected = step(xp, *eager)
        launch()
        assert bytes_of(loss) == bytes_of(expected)
        assert bytes_of(static[2]) == bytes_of(eager[2])


def test_a_view_made_in_a_capture_shares_the_memory(captured: Captured) -> None:
    x = xp.arange(12.0).reshape(3, 4)
    (row, reverse, row_of_copy), launch = captured(lambda: (x[1], x[::-1, ::-2], xp.array(x)[2]))
    x[1] = 7
    assert row.tolist() == [7] * 4
    assert row.data.ptr == x.data.ptr + 32
    assert reverse.tolist() == x.get()[::-1, ::-2].tolist()
    launch()
    assert row_of_copy.tolist() == [8, 9, 10, 11]


def test_strided_and_empty_arrays_are_captured(captured: Captured) -> None:
    x, empty = xp.arange(12.0).reshape(3, 4), xp.empty((0, 4))
    target = xp.zeros((3, 2))

    def work() -> Any:
        target[:, ::-1] = x[::-1, 1::2] + xp.broadcast_to(x[:, :1], (3, 2))
        return xp.concatenate([empty, x.T[:0, :].reshape(0, 4)]), empty.sum(axis=0)

    (nothing, sums), launch = captured(work)
    launch()
    host = x.get()
    np.testing.assert_array_equal(target.get()[:, ::-1], host[::-1, 1::2] + host[:, :1])
    assert nothing.shape == (0, 4)
    assert sums.tolist() == [0] * 4


def test_work_on_forked_streams_runs_in_the_order_of_the_capture(runtime: EmulatedRuntime, captured: Captured) -> None:
    x, other = xp.ones(4), tcuda.Stream()

    def work() -> None:
        current = tcuda.current_stream()
        x[...] = x * 2
        other.wait_stream(current)
        with tcuda.stream(other):
            x[...] = x + 1
        current.wait_stream(other)
        x[...] = x * 10

    _, launch = captured(work)
    for expected in (30, 610):
        launch()
        assert x.tolist() == [expected] * 4


def test_new_memory_is_poisoned_until_the_graph_runs(captured: Captured) -> None:
    old = xp.full(4, 3.0)

    def work() -> Any:
        new = old + 1
        old[...] = 5
        return new, xp.zeros(3, "i"), xp.empty(2, "f")

    (new, zeros, empty), launch = captured(work)
    for array in (new, zeros, empty):
        assert bytes_of(array) == POISON * array.nbytes
    assert old.tolist() == [3] * 4
    launch()
    assert (new.tolist(), zeros.tolist(), old.tolist()) == ([4] * 4, [0] * 3, [5] * 4)
    assert bytes_of(empty) == POISON * 8, "nothing writes to it"


@pytest.mark.eager
def test_memory_outside_a_capture_is_not_poisoned(runtime: EmulatedRuntime) -> None:
    host = np.full(SIZE, 1, np.uint8)
    address = xp.asarray(host).data.ptr
    with capturing_elsewhere(runtime):
        again = xp.empty(SIZE, np.uint8)
    assert again.data.ptr == address
    assert again.tolist() == host.tolist()


class capturing_elsewhere:
    """A scope in which a stream captures that is not the current stream."""

    def __init__(self, runtime: EmulatedRuntime) -> None:
        self.runtime, self.stream = runtime, new_stream(runtime)

    def __enter__(self) -> None:
        self.runtime.streamBeginCapture(self.stream, CAPTURE_RELAXED)

    def __exit__(self, *_: object) -> None:
        self.runtime.graphDestroy(self.runtime.streamEndCapture(self.stream))
        self.runtime.streamDestroy(self.stream)


def test_memory_of_a_dead_array_is_reused_in_the_capture(captured: Captured) -> None:
    x, addresses = xp.arange(float(SIZE)), list[int]()

    def work() -> Any:
        result = x
        for _ in range(4):
            result = result + 1
            addresses.append(result.data.ptr)
        return result

    result, launch = captured(work)
    assert len(set(addresses)) == 2, "each step needs only the array that is read and the array that is written"
    launch()
    np.testing.assert_array_equal(result.get(), x.get() + 4)


def work_of_every_kind(x: Any) -> Iterator[Any]:
    """Run one operation for each way to launch work, and yield the arrays that the operations use."""
    mask, indices = x > 2, xp.argsort(x)
    yield from (mask, indices)
    yield x.sum()
    yield xp.add(x, x, out=xp.empty_like(x))
    yield xp.cumsum(x, out=xp.empty_like(x))
    yield x[indices]
    yield x.astype("f")
    yield x[::2].reshape(2, -1).copy().T.reshape(-1)
    yield xp.zeros_like(x)
    yield xp.full(4, x[0])
    yield xp.asarray(2.0)
    yield xp.array([x, x])
    target = xp.ones_like(x)
    target[indices] = x
    target[1:] = x[1:]
    xp.copyto(target, x, where=mask)
    xp.add.at(target, indices, x)
    yield target


def test_a_graph_keeps_no_memory_alive(captured: Captured) -> None:
    before, dead = allocated(), list[weakref.ref[Any]]()

    def work() -> None:
        for array in work_of_every_kind(xp.arange(8.0)):
            dead.extend(map(weakref.ref, (array, array._block)))

    captured(work)
    assert [reference() for reference in dead] == [None] * len(dead)
    assert allocated() == before


def test_graph_contents_name_the_memory_that_arrays_use(runtime: EmulatedRuntime) -> None:
    stream = tcuda.Stream()
    x, y = xp.arange(8.0), xp.ones(8)
    with tcuda.stream(stream):
        runtime.streamBeginCapture(stream.cuda_stream, CAPTURE_RELAXED)
        total = (x[2:] * 2).sum()
        y[...] = 3
        graph = runtime.streamEndCapture(stream.cuda_stream)
    nodes, addresses = runtime.graphContents(graph)
    runtime.graphDestroy(graph)
    assert nodes == 3
    assert {x.data.ptr, y.data.ptr, total.data.ptr} < set(addresses)
    assert len(addresses) == 4  # the fourth is the product


def test_nodes_have_the_names_of_the_functions(runtime: EmulatedRuntime, tmp_path: Path) -> None:
    stream, x, path = tcuda.Stream(), xp.arange(8.0), tmp_path / "graph.dot"
    with tcuda.stream(stream):
        runtime.streamBeginCapture(stream.cuda_stream, CAPTURE_RELAXED)
        kept = [xp.sin(x), x.mean(), x[xp.argsort(x)], x.copy(), xp.zeros(3)]
        x.fill(1)
        graph = runtime.streamEndCapture(stream.cuda_stream)
    runtime.graphDebugDotPrint(graph, str(path), 0)
    runtime.graphDestroy(graph)
    names = [line.split(r"\n")[1] for line in path.read_text().splitlines() if "shape=" in line]
    assert names == ["sin", "mean", "argsort", "select", "copyto", "memset", "fill"]
    del kept


# Refused calls

D2H = "the current stream is capturing, so D2H transfers are disallowed"
H2D = "the current stream is capturing, so H2D transfers are disallowed"

TRANSFERS: dict[str, tuple[str, Callable[[Any, Any], object]]] = {
    "get": (D2H, lambda x, one: x.get()),
    "get to an array": (D2H, lambda x, one: x.get(out=np.empty(8))),
    "get without waiting": (D2H, lambda x, one: x.get(blocking=False)),
    "get with gaps": (D2H, lambda x, one: x[::2].get()),
    "asnumpy": (D2H, lambda x, one: xp.asnumpy(x)),
    "item": (D2H, lambda x, one: one.item()),
    "tolist": (D2H, lambda x, one: x.tolist()),
    "bool": (D2H, lambda x, one: bool(one)),
    "int": (D2H, lambda x, one: int(one)),
    "float": (D2H, lambda x, one: float(one)),
    "complex": (D2H, lambda x, one: complex(one)),
    "str": (D2H, lambda x, one: str(x)),
    "repr": (D2H, lambda x, one: repr(x)),
    "format": (D2H, lambda x, one: f"{one:.2f}"),
    "tobytes": (D2H, lambda x, one: x.tobytes()),
    "dumps": (D2H, lambda x, one: x.dumps()),
    "array2string": (D2H, lambda x, one: xp.array2string(x)),
    "set": (H2D, lambda x, one: x.set(np.ones(8))),
    "asarray": (H2D, lambda x, one: xp.asarray(np.ones(8))),
    "array of a list": (H2D, lambda x, one: xp.array([1.0, 2.0])),
    "blocking array": (H2D, lambda x, one: xp.array(np.ones(8), blocking=True)),
    "frombuffer": (H2D, lambda x, one: xp.frombuffer(b"12", np.uint8)),
    "indices of a list": (H2D, lambda x, one: x[[0, 1]]),
    "assignment at a mask": (D2H, lambda x, one: operator.setitem(x, x > 1, 0)),
    "assignment of an array at a mask": (D2H, lambda x, one: operator.setitem(x, x > 1, one)),
    "nonzero": (D2H, lambda x, one: x.nonzero()),
    "compress": (D2H, lambda x, one: x.compress(x > 1)),
    "numpy.unique": (D2H, lambda x, one: np.unique(x)),
    "dlpack to the host": (D2H, lambda x, one: x.__dlpack__(dl_device=(1, 0))),
}


@pytest.mark.parametrize("what", TRANSFERS)
def test_transfers_are_refused_and_do_not_invalidate_the_capture(captured: Captured, what: str) -> None:
    words, transfer = TRANSFERS[what]
    x, one = xp.arange(8.0), xp.asarray(1.0)
    host = np.full(8, 5.0)

    def work() -> None:
        before = allocated()
        with pytest.raises(RuntimeError) as raised:
            transfer(x, one)
        assert raised.type is RuntimeError
        assert str(raised.value).startswith(f"{words}. ")
        del raised
        assert allocated() == before
        x[...] = x + one

    _, launch = captured(work)
    np.testing.assert_array_equal(x.get(out=host), np.arange(8.0))
    launch()
    np.testing.assert_array_equal(x.get(), np.arange(8.0) + 1)


def test_refused_calls_add_no_node(runtime: EmulatedRuntime) -> None:
    stream, x, mask = tcuda.Stream(), xp.arange(8.0), xp.zeros(8, bool)
    refused: list[Callable[[], object]] = [
        x.get,
        x[::2].get,
        lambda: x.set(np.ones(8)),
        lambda: xp.asarray(np.ones(8)),
        lambda: x[mask],
        lambda: x[True],
        lambda: operator.setitem(x, mask, 0),
        lambda: xp.unique(x),
        lambda: xp.linalg.svd(x.reshape(2, 4)),
        lambda: operator.setitem(x, slice(None), xp.empty(3)),
    ]
    with tcuda.stream(stream):
        runtime.streamBeginCapture(stream.cuda_stream, CAPTURE_RELAXED)
        for call in refused:
            with pytest.raises((RuntimeError, NotImplementedError, ValueError)):
                call()
        graph = runtime.streamEndCapture(stream.cuda_stream)
    assert runtime.graphContents(graph) == (0, [])
    runtime.graphDestroy(graph)


@pytest.mark.parametrize("give", [True, False], ids=["given", "current"])
def test_a_transfer_is_refused_if_its_own_stream_captures(runtime: EmulatedRuntime, give: bool) -> None:
    capturing, other = tcuda.Stream(), tcuda.Stream()
    x, host = xp.arange(8.0), np.ones(8)
    tcuda.synchronize()
    given, current = (capturing, other) if give else (other, capturing)
    runtime.streamBeginCapture(capturing.cuda_stream, CAPTURE_RELAXED)
    with tcuda.stream(current):
        if give:
            with pytest.raises(RuntimeError, match=D2H):
                x.get(stream=given)
            with pytest.raises(RuntimeError, match=H2D):
                x.set(host, stream=given)
        else:
            x.set(host, stream=given)
            assert x.get(stream=given).tolist() == host.tolist()
    runtime.graphDestroy(runtime.streamEndCapture(capturing.cuda_stream))


def test_arrays_of_scalars_are_captured(captured: Captured) -> None:
    (x, y), launch = captured(lambda: (xp.asarray(3.0), xp.array(np.float32(4), blocking=True)))
    launch()
    assert (x.item(), y.item()) == (3.0, 4.0)


WRONG: dict[str, Callable[[Any], object]] = {
    "shape": lambda x: operator.setitem(x, slice(None), xp.ones(3)),
    "shape of operands": lambda x: x + xp.ones(3),
    "shape of the output": lambda x: xp.add(x, x, out=xp.ones(3)),
    "shape of a sum": lambda x: x.sum(axis=0, out=xp.ones(3)),
    "type of the output": lambda x: xp.add(x, x, out=xp.ones(8, "i")),
    "axis": lambda x: x.sum(axis=3),
    "index": lambda x: x[0, 0],
    "device": lambda x: x + _of_device_1(),
}


def _of_device_1() -> Any:
    with tcuda.device(1):
        return xp.empty(8)


@pytest.mark.parametrize("what", WRONG)
def test_mistakes_raise_during_the_capture(captured: Captured, what: str) -> None:
    x = xp.arange(8.0)
    eager: list[type[BaseException]] = []

    def mistake() -> None:
        before = allocated()
        with pytest.raises((ValueError, TypeError, IndexError)) as raised:
            WRONG[what](x)
        eager.append(raised.type)
        del raised
        assert allocated() == before

    mistake()
    _, launch = captured(mistake)
    launch()
    assert eager[0] is eager[1]
    assert x.tolist() == list(range(8))


@pytest.mark.parametrize("kind", ["b", "q", "B", "Q"])
def test_values_of_indices_are_read_at_the_launch(captured: Captured, kind: str) -> None:
    x = xp.arange(8.0)
    order = xp.asarray(np.array([5, 3, 1], kind))

    def work() -> Any:
        indices = order.copy()  # every bit of new memory is one until the launch
        x[indices] = -x[indices]
        return x.take(indices)

    taken, launch = captured(work)
    launch()
    assert taken.tolist() == [-5, -3, -1]
    assert x.tolist() == [0, -1, 2, -3, 4, -5, 6, 7]


def test_choices_are_captured(captured: Captured) -> None:
    order = xp.asarray(np.array([5, 3, 1]))
    chosen, launch = captured(lambda: order.copy().choose(xp.arange(18.0).reshape(6, 3), mode="clip"))
    launch()
    assert chosen.tolist() == [15, 10, 5]


def test_an_index_out_of_bounds_raises_at_the_launch(captured: Captured) -> None:
    x, indices = xp.arange(8.0), xp.asarray(np.array([1, 2]))
    _, launch = captured(lambda: x[indices])
    indices.fill(8)
    with pytest.raises(IndexError), synchronized():
        launch()


def test_division_by_zero_gives_no_warning_at_a_launch(captured: Captured) -> None:
    x = xp.asarray(np.array([1.0, 0.0]))
    (ratio, mean), launch = captured(lambda: (x / 0, (x / x).mean()))
    with np.errstate(all="raise"):
        launch()
    assert ratio.tolist()[0] == np.inf
    assert np.isnan(mean.item())
