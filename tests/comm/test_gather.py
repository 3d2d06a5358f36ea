"""``tcuda.comm.gather``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.busy_streams import keep_busy
from support.placed_arrays import on
from support.statuses import status_of
from tcuda._base.statuses import Status
from tcuda.comm import gather

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.skipif(tcuda.device_count() < 2, reason="needs two devices"),
    pytest.mark.usefixtures("memory_comes_back"),
]


def host(array: Any) -> np.ndarray[Any, Any]:
    """Return ``array`` as a NumPy array."""
    found: np.ndarray[Any, Any] = array if isinstance(array, np.ndarray) else array.get()
    return found


@pytest.mark.parametrize("destination", [0, 1, "cuda:1", "cpu"])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["?", "h", "e", "D"])
def test_arrays_are_joined(dtype: str, dim: int, destination: Any) -> None:
    values = [np.arange(24).reshape(4, 6).astype(dtype), np.arange(24).reshape(4, 6).astype(dtype)[::-1]]
    joined = gather([on(place, each) for place, each in enumerate(values)], dim, destination)
    assert isinstance(joined, np.ndarray) == (destination == "cpu")
    np.testing.assert_array_equal(host(joined), np.concatenate(values, dim), strict=True)
    assert joined.flags.c_contiguous


@pytest.mark.parametrize("lengths", [(3, 0), (0, 0), (1, 5), (2,)])
@pytest.mark.parametrize("destination", [0, "cpu"])
def test_arrays_may_have_different_lengths(lengths: tuple[int, ...], destination: Any) -> None:
    values = [np.full((length, 2), place) for place, length in enumerate(lengths)]
    joined = gather([on(place % 2, each) for place, each in enumerate(values)], 0, destination)
    np.testing.assert_array_equal(host(joined), np.concatenate(values), strict=True)


def test_one_array_is_copied() -> None:
    array = on(0, np.ones(3))
    assert gather([array], 0, 0).data.ptr != array.data.ptr


def test_the_current_device_is_the_destination_by_default() -> None:
    arrays = [on(0, np.ones(3)), on(1, np.ones(3))]
    assert gather(arrays).device.id == 0
    with tcuda.device(1):
        assert gather(iter(arrays)).device.id == 1
        assert gather(arrays, destination="cuda").device.id == 1


def test_minus_one_means_the_host_with_a_warning() -> None:
    with pytest.warns(FutureWarning, match="^Using -1 to represent CPU tensor is deprecated. ") as warned:
        joined = gather([on(0, np.ones(3)), on(1, np.ones(2))], 0, -1)
    assert joined.tolist() == [1] * 5
    assert warned[0].filename == __file__


def test_other_dtypes_are_converted_to_that_of_the_first_array() -> None:
    arrays = [on(0, np.array([1.5])), on(1, np.array([2])), on(1, np.array([True]))]
    for destination in (0, "cpu"):
        joined = gather(arrays, 0, destination)
        assert joined.dtype == np.dtype("d")
        assert joined.tolist() == [1.5, 2, 1]


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.T,
        lambda a: a[::-1],
        lambda a: a[:, ::2],
        lambda a: a[:, 3:],
        lambda a: a.reshape(3, 2, 5, 30).transpose(0, 2, 1, 3)[:, 1:],
    ],
)
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("destination", [0, "cpu"])
def test_views_are_joined(view: Callable[[Any], Any], dim: int, destination: Any) -> None:
    values = [np.arange(place, 900 + place, dtype="f").reshape(3, 300) for place in (0, 1)]
    joined = gather([view(on(place, each)) for place, each in enumerate(values)], dim, destination)
    np.testing.assert_array_equal(host(joined), np.concatenate([view(each) for each in values], dim))


OUTPUTS: dict[str, Callable[[], Any]] = {
    "plain": lambda: on(1, np.zeros((4, 7), "f")),
    "converted": lambda: on(0, np.zeros((4, 7), "d")),
    "Fortran order": lambda: on(0, np.zeros((4, 7), "f", order="F")),
    "every other column": lambda: on(0, np.zeros((4, 14), "f"))[:, ::2],
    "host": lambda: np.zeros((4, 7), "f"),
    "host, converted": lambda: np.zeros((4, 7), "d"),
    "host, every other column": lambda: np.zeros((4, 14), "f")[:, ::2],
    "host, other byte order": lambda: np.zeros((4, 7), ">f4"),
}


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("dim", [0, 1])
def test_an_array_is_filled(name: str, dim: int) -> None:
    values = np.arange(28, dtype="f").reshape(4, 7)
    out = OUTPUTS[name]()
    parts = np.split(values, [1], axis=dim)
    assert gather([on(place, each) for place, each in enumerate(parts)], dim, out=out) is out
    np.testing.assert_array_equal(host(out), values)


@pytest.mark.usefixtures("idle")
def test_an_array_of_the_host_is_ready_at_the_return() -> None:
    near, far = on(0, np.zeros(1000)), on(1, np.zeros(1000))
    here, there = tcuda.Stream(0), tcuda.Stream(1)
    for device, array in enumerate((near, far)):
        with tcuda.device(device):
            array += 0  # the first addition compiles a kernel, for longer than the streams stay busy
        tcuda.synchronize(device)
    keep_busy(here)
    keep_busy(there)
    with tcuda.stream(there), tcuda.stream(here):
        for device, array in enumerate((near, far)):
            with tcuda.device(device):
                array += 1
        joined = gather([near, far], destination="cpu")
    assert (here.query(), there.query()) == (True, True)
    assert joined.tolist() == [1] * 2000


@pytest.mark.usefixtures("idle")
def test_page_locked_memory_is_ready_at_the_return(runtime: Any) -> None:
    array, out, stream = on(1, np.ones(1000)), np.zeros(1000), tcuda.Stream(1)
    tcuda.synchronize(1)
    runtime.hostRegister(out.ctypes.data, out.nbytes, 0)
    try:
        keep_busy(stream)
        with tcuda.stream(stream):
            gather([array], out=out)
        assert stream.query()
        assert out.tolist() == [1] * 1000
    finally:
        runtime.hostUnregister(out.ctypes.data)


@pytest.mark.usefixtures("idle")
def test_pending_work_of_every_device_is_seen() -> None:
    near, far = on(0, np.zeros(1000)), on(1, np.zeros(1000))
    here, there = tcuda.Stream(0), tcuda.Stream(1)
    with tcuda.device(1):
        far += 0  # the first addition compiles a kernel, for longer than the stream stays busy
    tcuda.synchronize(0)
    tcuda.synchronize(1)
    keep_busy(there)
    with tcuda.stream(there), tcuda.stream(here):
        with tcuda.device(1):
            far += 1
        joined = gather([near, far], destination=0)
        assert not here.query()
        assert joined.tolist() == [0] * 1000 + [1] * 1000


def refusal(*args: Any, **kwargs: Any) -> str:
    with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)) as raised:
        gather(*args, **kwargs)
    return f"{type(raised.value).__name__}: {raised.value}"


@pytest.mark.parametrize(
    ("tensors", "arguments", "expected"),
    [
        (lambda a, b: [], {}, "RuntimeError: Expected at least one tensor to gather from"),
        (
            lambda a, b: [a, b],
            {"dim": 2},
            "IndexError: Dimension out of range (expected to be in range of [-2, 1], but got 2)",
        ),
        (lambda a, b: [a, b], {"dim": None}, "TypeError: dim must be an integer; got a NoneType."),
        (
            lambda a, b: [a, b[:, :2]],
            {},
            "RuntimeError: Input tensor at index 1 has invalid shape [3, 2], but expected [3, 4]",
        ),
        (
            lambda a, b: [a, b[0]],
            {},
            "RuntimeError: Expected all input tensors to have the same number of dimensions, but tensor at index 1 has "
            "1 dimensions, (expected 2)",
        ),
        (
            lambda a, b: [a, np.ones((3, 4))],
            {},
            "RuntimeError: Expected all input tensors to be CUDA tensors, but tensor at index 1 has device cpu",
        ),
        (lambda a, b: [a[0, 0], b[0, 0]], {}, "IndexError: Dimension specified as 0 but tensor has no dimensions"),
        (lambda a, b: [a, 5], {}, "TypeError: tensors[1] must be an array of "),
        (lambda a, b: [a, b], {"destination": 99}, "AcceleratorError: CUDA error: invalid device ordinal"),
        (lambda a, b: [a, b], {"destination": -2}, "RuntimeError: Expected non-negative device index, but got -2"),
        (lambda a, b: [a, b], {"destination": "meta"}, "ValueError: Expected a cuda device, but got: meta"),
        (
            lambda a, b: [a, b],
            {"destination": 0, "out": np.zeros((6, 4))},
            "RuntimeError: 'destination' must not be specified when 'out' is specified, but got destination=0",
        ),
        (
            lambda a, b: [a, b],
            {"out": np.zeros((5, 4))},
            "RuntimeError: Expected out tensor to have shape [6, 4], but got [5, 4]",
        ),
        (lambda a, b: [a, b], {"out": 5}, "TypeError: out must be an array of "),
    ],
)
def test_other_arguments_are_refused(tensors: Any, arguments: Any, expected: str) -> None:
    given = tensors(on(0, np.ones((3, 4))), on(1, np.ones((3, 4))))
    assert refusal(given, **arguments).startswith(expected)


def test_a_read_only_array_is_refused() -> None:
    out = np.zeros(2)
    out.flags.writeable = False
    assert "read-only" in refusal([on(0, np.ones(2))], out=out)
    assert not out.any()


def test_a_copy_to_the_host_would_invalidate_a_capture() -> None:
    array, graph = on(0, np.zeros(100)), tcuda.CUDAGraph()
    with tcuda.graph(graph):
        array += 1
        status = status_of(lambda: gather([array], destination="cpu"))
    assert status == Status.STREAM_CAPTURE_UNSUPPORTED
    graph.replay()
    assert array.tolist() == [1] * 100
