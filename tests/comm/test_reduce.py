"""``tcuda.comm.reduce_add``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.busy_streams import LONG, keep_busy
from support.placed_arrays import on
from tcuda.comm import _reduce, gather, reduce_add, scatter
from tcuda.comm._routes import Way

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda._backend import Backend

pytestmark = [
    pytest.mark.skipif(tcuda.device_count() < 2, reason="needs two devices"),
    pytest.mark.usefixtures("memory_comes_back"),
]
DTYPES = ["?", "b", "H", "i", "q", "e", "f", "d", "F", "D"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("destination", [0, 1])
def test_arrays_of_two_devices_are_added(destination: int, dtype: str) -> None:
    random = np.random.default_rng(0)
    values = [random.integers(0, 2 if dtype == "?" else 100, (7, 9)).astype(dtype) for _ in range(2)]
    total = reduce_add([on(place, each) for place, each in enumerate(values)], destination)
    assert total.device.id == destination
    np.testing.assert_array_equal(total.get(), values[0] + values[1], strict=True)


def test_arrays_of_bfloat16_are_scattered_added_and_gathered(xp: Any) -> None:
    kind = pytest.importorskip("ml_dtypes", reason="bfloat16 is a type of ml_dtypes").bfloat16
    values = np.arange(8).astype(kind)
    parts = scatter(on(0, values), [0, 1])
    assert [part.dtype for part in parts] == [kind] * 2
    assert gather(parts, destination=1).get().tolist() == values.tolist()
    total = reduce_add([on(0, values), on(1, values)], 0)
    assert total.dtype == kind
    assert total.get().tolist() == (values + values).tolist()


@pytest.mark.parametrize("shape", [(), (0, 3), (1, 1, 1)])
def test_small_arrays_keep_their_shape(shape: tuple[int, ...]) -> None:
    total = reduce_add([on(0, np.ones(shape)), on(1, np.ones(shape))], 0)
    np.testing.assert_array_equal(total.get(), np.full(shape, 2.0), strict=True)


def test_the_inputs_stay_as_they_are() -> None:
    inputs = [on(0, np.ones(5)), on(1, np.ones(5))]
    reduce_add(inputs, 1)
    assert [array.tolist() for array in inputs] == [[1] * 5] * 2


def test_the_current_device_is_the_destination_by_default() -> None:
    inputs = [on(0, np.ones(5)), on(1, np.ones(5))]
    with tcuda.device(1):
        assert reduce_add(inputs).device.id == 1
    assert reduce_add(inputs, "cuda").device.id == 0
    assert reduce_add(inputs, "cuda:1").device.id == 1


def test_one_array_is_its_own_sum() -> None:
    array = on(1, np.ones(5))
    assert reduce_add([array], 1) is array


def test_the_last_array_of_the_destination_comes_first() -> None:
    values = 2.0**53, 1.0, -(2.0**53), 1.0
    devices = 1, 0, 0, 1
    inputs = [on(device, np.array([value])) for device, value in zip(devices, values, strict=True)]
    assert reduce_add(inputs, 0).tolist() == [values[2] + (values[0] + (values[1] + values[3]))]
    assert reduce_add(inputs, 1).tolist() == [values[3] + (values[0] + (values[1] + values[2]))]


@pytest.mark.parametrize("pieces", [1, 3, 64])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_a_chain_gives_the_bits_of_a_flat_sum(count: int, pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    values = [random.standard_normal(5000).astype("f") for _ in range(count)]
    inputs = [on(place % 2, each) for place, each in enumerate(values)]
    flat = reduce_add(inputs, 0)
    monkeypatch.setattr(_reduce, "best_sum", lambda devices, nbytes: Way("chain", pieces))
    chained = reduce_add(inputs, 0)
    assert chained.get().tobytes() == flat.get().tobytes()


def test_only_the_last_piece_of_a_chain_releases_the_inputs(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[bool] = []
    transfers = backend.transfers()
    add = transfers.add

    def noted(out: Any, inputs: Any, *, release: bool = True) -> bool:
        released.append(release)
        return add(out, inputs, release=release)

    monkeypatch.setattr(_reduce, "best_sum", lambda devices, nbytes: Way("chain", 3))
    monkeypatch.setattr(transfers, "add", noted)
    inputs = [on(place % 2, np.ones(3 * 512)) for place in range(3)]
    assert reduce_add(inputs, 0).tolist() == [3] * (3 * 512)
    assert released == [False] * 4 + [True] * 2


@pytest.mark.parametrize(
    "view",
    [lambda a: a.T, lambda a: a[::-1], lambda a: a[:, ::2], lambda a: a[:, 1], lambda a: a[:, ::-2].T],
)
def test_views_are_added(view: Callable[[Any], Any]) -> None:
    values = np.arange(24.0).reshape(4, 6), np.arange(24.0).reshape(4, 6) ** 2
    total = reduce_add([view(on(place, each)) for place, each in enumerate(values)], 0)
    np.testing.assert_array_equal(total.get(), view(values[0]) + view(values[1]))


def test_the_axes_of_the_sum_have_the_order_of_those_of_the_destination() -> None:
    values = np.arange(24.0).reshape(2, 3, 4)
    swapped = on(0, values).transpose(2, 0, 1), on(1, values.transpose(2, 0, 1))
    total = reduce_add(swapped, 0)
    assert total.strides == swapped[0].strides
    np.testing.assert_array_equal(total.get(), 2 * values.transpose(2, 0, 1))
    assert reduce_add(swapped, 1).flags.c_contiguous == swapped[1].flags.c_contiguous


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("chained", [False, True])
def test_pending_work_is_seen_and_later_work_waits(chained: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if chained:
        monkeypatch.setattr(_reduce, "best_sum", lambda devices, nbytes: Way("chain", 2))
    near, far = on(0, np.zeros(2000)), on(1, np.zeros(2000))
    reduce_add([near, far, near], 0)  # the first sums compile kernels, for longer than the streams stay busy
    for device, array in enumerate((near, far)):
        with tcuda.device(device):
            array += 0
        tcuda.synchronize(device)
    here, there = tcuda.Stream(0), tcuda.Stream(1)
    keep_busy(here)
    keep_busy(there, 2 * LONG)
    with tcuda.stream(here):
        near += 1
        with tcuda.stream(there):
            far += 1
            total = reduce_add([near, far, near], 0)
        # The destination waits for the other device, and the other device waits until its array has been read.
        assert (here.query(), there.query()) == (False, False)
        keep_busy(here)
        there.synchronize()
        assert not here.query()
        assert total.tolist() == [3] * 2000


def refusal(*args: Any) -> str:
    with pytest.raises((RuntimeError, TypeError, ValueError, AssertionError, IndexError)) as raised:
        reduce_add(*args)
    return f"{type(raised.value).__name__}: {raised.value}"


NOWHERE = "RuntimeError: reduce_add expects destination to be on the same GPU with one of the tensors"


@pytest.mark.parametrize(
    ("inputs", "destination", "expected"),
    [
        (lambda a, b: [], 0, "IndexError: list index out of range"),
        (lambda a, b: [a], 1, NOWHERE),
        (lambda a, b: [a, b], 99, NOWHERE),
        (lambda a, b: [a, b], -1, NOWHERE),
        (lambda a, b: [a, b], "cpu", "ValueError: Expected a non cpu device, but got: cpu"),
        (
            lambda a, b: [a, np.ones(10)],
            0,
            "AssertionError: reduce_add expects all inputs to be on GPUs, but input 1 is on CPU",
        ),
        (lambda a, b: [a, b[:5]], 0, "ValueError: input 1 has invalid size: got 5, but expected 10"),
        (lambda a, b: [a, b.reshape(2, 5)], 0, "ValueError: input 1 has invalid size: got 2x5, but expected 10"),
        (
            lambda a, b: [a, b.view("q")],
            0,
            "RuntimeError: all inputs and outputs must be of the same Tensor dtype; got float64, int64",
        ),
        (lambda a, b: [a, 5], 0, "TypeError: inputs[1] must be an array of "),
    ],
)
def test_other_inputs_are_refused(inputs: Any, destination: Any, expected: str) -> None:
    assert refusal(inputs(on(0, np.ones(10)), on(1, np.ones(10))), destination).startswith(expected)


def test_the_first_sum_of_a_kind_can_be_captured() -> None:
    values = [np.arange(10, dtype="u2") + place for place in range(7)]  # no other test adds seven arrays
    inputs = [on(place % 2, each) for place, each in enumerate(values)]
    tcuda.synchronize(1)  # a capture waits for its own device only
    graph, here, there = tcuda.CUDAGraph(), tcuda.Stream(0), tcuda.Stream(1)
    with tcuda.stream(there), tcuda.graph(graph, stream=here):
        there.wait_stream(here)
        total = reduce_add(inputs, 0)
        here.wait_stream(there)
    graph.replay()
    np.testing.assert_array_equal(total.get(), sum(values))
    del total, graph
