"""``tcuda.comm.scatter``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.busy_streams import keep_busy
from support.placed_arrays import on, places
from tcuda.comm import scatter

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.skipif(tcuda.device_count() < 2, reason="needs two devices"),
    pytest.mark.usefixtures("memory_comes_back"),
]


@pytest.mark.parametrize("source", [0, 1, None])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["?", "h", "e", "D"])
def test_parts_are_equal_or_the_last_is_shorter(dtype: str, dim: int, source: int | None) -> None:
    values = np.arange(35).reshape(5, 7).astype(dtype)
    parts = scatter(values if source is None else on(source, values), [1, 0, 1], dim=dim)
    assert type(parts) is tuple
    assert places(parts) == [1, 0, 1]
    size = -(-values.shape[dim] // 3)
    for part, expected in zip(parts, np.split(values, [size, 2 * size], axis=dim), strict=True):
        np.testing.assert_array_equal(part.get(), expected, strict=True)


@pytest.mark.parametrize(("length", "expected"), [(4, [2, 2]), (1, [1]), (0, [0, 0, 0]), (3, [1, 1, 1])])
def test_there_may_be_fewer_parts_than_devices(length: int, expected: list[int]) -> None:
    parts = scatter(on(0, np.zeros((length, 3))), [0, 1, 0])
    assert [part.shape for part in parts] == [(size, 3) for size in expected]


def test_parts_have_the_given_lengths() -> None:
    values = np.arange(10)
    parts = scatter(on(0, values), [0, 1, 1], [3, 0, 7])
    assert [part.tolist() for part in parts] == [[0, 1, 2], [], [3, 4, 5, 6, 7, 8, 9]]


@pytest.mark.parametrize("values", [np.arange(20).reshape(10, 2), np.arange(20.0).reshape(10, 2)[:, ::-1]])
def test_parts_of_the_host_have_the_given_lengths(values: Any) -> None:
    parts = scatter(values, [0, 1, 1], [3, 0, 7])
    assert places(parts) == [0, 1, 1]
    assert [part.tolist() for part in parts] == [values[:3].tolist(), [], values[3:].tolist()]


def test_page_locked_memory_is_cut_without_a_wait_and_lives_until_it_is_copied(runtime: Any) -> None:
    from tcuda.comm import _kept_memory

    values = np.arange(4096, dtype="f")
    runtime.hostRegister(values.ctypes.data, values.nbytes, 0)
    try:
        stream = tcuda.Stream(1)
        keep_busy(stream)
        with tcuda.stream(stream):
            _, made = scatter(values, [0, 1])
        assert not stream.query()
        assert any(np.shares_memory(memory, values) for *_, memory in _kept_memory.in_use)
        stream.synchronize()
        assert made.tolist() == values[2048:].tolist()
    finally:
        runtime.hostUnregister(values.ctypes.data)


@pytest.mark.parametrize("make", [np.empty, tcuda.memory.empty_pinned])
def test_memory_that_waits_for_its_copies_by_itself_is_not_kept(make: Any) -> None:
    from tcuda.comm import _kept_memory

    values = make(4096, "f")
    values[...] = range(4096)
    stream = tcuda.Stream(1)
    keep_busy(stream)
    with tcuda.stream(stream):
        _, made = scatter(values, [0, 1])
    assert not any(np.shares_memory(memory, values) for *_, memory in _kept_memory.in_use)
    del values
    overwritten = make(4096, "f")
    overwritten[...] = -1
    stream.synchronize()
    assert made.tolist() == list(range(2048, 4096))


def test_the_part_of_the_own_device_is_a_view() -> None:
    array = on(1, np.arange(10))
    first, second = scatter(array, [0, 1])
    assert second.data.ptr == array.data.ptr + 5 * array.itemsize
    assert first.data.ptr != array.data.ptr


@pytest.mark.parametrize("rows", [3, 500])
def test_long_rows_are_copied_without_memory_in_between(rows: int, changes: Any) -> None:
    values = np.arange(rows * 256, dtype="f").reshape(rows, 256)
    array = on(0, values)
    with changes(0) as changed:
        (part,) = scatter(array, [1], dim=1)[:1]
        own, away = scatter(array, [0, 1], dim=1)
    assert changed.get("allocation.all.allocated", 0) == 0
    np.testing.assert_array_equal(part.get(), values)
    np.testing.assert_array_equal(own.get(), values[:, :128])
    np.testing.assert_array_equal(away.get(), values[:, 128:])


@pytest.mark.parametrize(
    "view", [lambda a: a.T, lambda a: a[::-1], lambda a: a[:, ::2], lambda a: a[:, 3:], lambda a: a.transpose(1, 0)[2:]]
)
@pytest.mark.parametrize("dim", [0, 1])
def test_views_are_scattered(view: Callable[[Any], Any], dim: int) -> None:
    values = np.arange(6 * 300, dtype="f").reshape(6, 300)
    parts = scatter(view(on(0, values)), [1, 0], dim=dim)
    for part, expected in zip(parts, np.array_split(view(values), 2, axis=dim), strict=True):
        np.testing.assert_array_equal(part.get(), expected)


def test_the_axes_of_a_part_have_the_order_of_those_of_the_array() -> None:
    array = on(0, np.arange(12.0).reshape(3, 4, order="F"))
    (part,) = scatter(array, [1])
    assert part.flags.f_contiguous
    assert not part.flags.c_contiguous


@pytest.mark.parametrize("source", [0, None])
@pytest.mark.parametrize("dim", [0, 1])
def test_arrays_are_filled(dim: int, source: int | None) -> None:
    values = np.arange(48, dtype="f").reshape(8, 6)
    shapes = [(3, 6), (5, 6)] if dim == 0 else [(8, 2), (8, 4)]
    out = [on(1, np.zeros(shapes[0], "d", order="F")), on(0, np.zeros((shapes[1][0], 2 * shapes[1][1]), "i"))[:, ::2]]
    made = scatter(values if source is None else on(source, values), dim=dim, out=out)
    assert [each is target for each, target in zip(made, out, strict=True)] == [True, True]
    for part, expected in zip(out, np.split(values, [shapes[0][dim]], axis=dim), strict=True):
        np.testing.assert_array_equal(part.get(), expected)


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("source", [0, None])
def test_a_stream_takes_the_place_of_the_current_stream_of_the_part(source: int | None) -> None:
    values = np.arange(1000)
    array = values if source is None else on(source, values)
    tcuda.synchronize(0)
    here, current, stream = tcuda.Stream(0), tcuda.Stream(1), tcuda.Stream(1)
    keep_busy(stream)
    with tcuda.stream(current), tcuda.stream(here):
        own, part = scatter(array, [0, 1], streams=[None, stream])
        assert (tcuda.current_device(), tcuda.current_stream(1)) == (0, current)
        # The current stream has no work, although `stream` works for a long time.
        assert (current.query(), stream.query()) == (True, False)
        assert own.tolist() == values[:500].tolist()
    with tcuda.stream(stream):
        assert part.tolist() == values[500:].tolist()


def test_streams_of_parts_that_stay_are_ignored() -> None:
    array = on(0, np.arange(4))
    parts = scatter(array, [0, 1], streams=[tcuda.Stream(1), tcuda.Stream(1)])
    assert [part.tolist() for part in parts] == [[0, 1], [2, 3]]
    assert len(scatter(array, [0, 1], streams=[])) == 2


def refusal(*args: Any, **kwargs: Any) -> str:
    with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)) as raised:
        scatter(*args, **kwargs)
    return f"{type(raised.value).__name__}: {raised.value}"


def other_stream() -> dict[str, Any]:
    return {"devices": [0, 1], "streams": [None, tcuda.Stream(0)]}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "TypeError: 'NoneType' object is not iterable"),
        ({"devices": []}, "RuntimeError: Expected at least one device to scatter to"),
        ({"devices": ["cpu"]}, "ValueError: Expected a non cpu device, but got: cpu"),
        ({"devices": [-1]}, "RuntimeError: Expected non-negative device index, but got -1"),
        ({"devices": [99]}, "AcceleratorError: CUDA error: invalid device ordinal"),
        (
            {"devices": [0, 1], "chunk_sizes": [3, 6]},
            "RuntimeError: split_with_sizes expects split_sizes to sum exactly to 10 (input tensor's size at dimension "
            "0), but got split_sizes=[3, 6]",
        ),
        (
            {"devices": [0, 1], "chunk_sizes": [3, 6, 1]},
            "RuntimeError: Expected devices and chunk_sizes to be of same length, but got len(devices) = 2 and "
            "len(chunk_sizes) = 3",
        ),
        (
            {"devices": [0, 1], "chunk_sizes": [-1, 11]},
            "RuntimeError: split_with_sizes expects split_sizes have only non-negative entries, but got "
            "split_sizes=[-1, 11]",
        ),
        (
            {"devices": [0, 1], "dim": 1},
            "IndexError: Dimension out of range (expected to be in range of [-1, 0], but got 1)",
        ),
        ({"devices": [0, 1], "dim": "x"}, "TypeError: dim must be an integer; got a str."),
        (
            other_stream,
            "RuntimeError: Expected the device associated with the stream at index 1 (was 0) to match the device "
            "supplied at that index (expected 1)",
        ),
        (
            {"devices": [0, 1], "streams": [None, 5]},
            "RuntimeError: Unknown data type found in stream list. Need torch.cuda.Stream or None",
        ),
        ({"devices": [0, 1], "streams": 5}, "TypeError: streams must be a sequence of streams and None; got an int."),
        ({"out": []}, "RuntimeError: Expected at least one output tensor to scatter to"),
        (
            {"devices": [0], "out": []},
            "RuntimeError: 'devices' must not be specified when 'out' is specified, but got devices=[0]",
        ),
        (
            {"chunk_sizes": [10], "out": []},
            "RuntimeError: 'chunk_sizes' must not be specified when 'out' is specified, but got chunk_sizes=[10]",
        ),
        (
            lambda: {"out": [on(1, np.zeros(4)), on(1, np.zeros(5))]},
            "RuntimeError: Total size for output tensors along scatter dim 0 does not match the source tensor size at "
            "dim 0. Expected 10, but got total size 9",
        ),
        (
            lambda: {"out": [on(1, np.zeros(4)), on(1, np.zeros((2, 5)))]},
            "RuntimeError: Output tensor at index 1 has incorrect shape: [2, 5]. Expected same shape except for "
            "scatter dim 0 as the source tensor: [10]",
        ),
        (
            lambda: {"out": [np.zeros(10)]},
            "RuntimeError: Expected all output tensors to be CUDA tensors, but output tensor at index 0 has device "
            "'cpu'",
        ),
        ({"out": [5]}, "TypeError: out[0] must be an array of "),
    ],
)
@pytest.mark.parametrize("host", [False, True])
def test_other_arguments_are_refused(arguments: Any, expected: str, host: bool) -> None:
    values = np.ones(10)
    given = arguments() if callable(arguments) else arguments
    assert refusal(values if host else on(0, values), **given).startswith(expected)
    for target in given.get("out", []):
        assert not np.any(target.get() if hasattr(target, "get") else target == 1)


def test_an_array_without_axes_is_refused() -> None:
    array = on(0, np.array(1.0))
    assert refusal(array, [0, 1]) == "RuntimeError: chunk expects at least a 1-dimensional tensor"
    assert refusal(array, [0], [1]) == "RuntimeError: split expects at least a 1-dimensional tensor"
    assert refusal(array, [0], dim=1).startswith("IndexError: Dimension out of range")


def test_other_objects_are_refused() -> None:
    assert refusal([1, 2], [0]).startswith("TypeError: tensor must be an array of ")
