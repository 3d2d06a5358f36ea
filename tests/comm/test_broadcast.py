"""``tcuda.comm.broadcast``."""

from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.busy_streams import keep_busy, let_pass
from support.devices import allocated
from support.placed_arrays import on, places
from support.statuses import status_of
from tcuda._base.statuses import Status
from tcuda.comm import broadcast

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.skipif(tcuda.device_count() < 2, reason="needs two devices"),
    pytest.mark.usefixtures("memory_comes_back"),
]
ARRAYS: dict[str, Callable[[], Any]] = {
    "C order": lambda: np.arange(12, dtype="f").reshape(3, 4),
    "Fortran order": lambda: np.arange(12, dtype="d").reshape(3, 4, order="F"),
    "no axes": lambda: np.array(5, "h"),
    "no elements": lambda: np.zeros((0, 3), "e"),
    "complex": lambda: np.arange(6).reshape(2, 3) * (1 + 2j),
    "booleans": lambda: np.arange(9) % 2 == 0,
}
VIEWS: dict[str, Callable[[Any], Any]] = {
    "every other column": lambda array: array[:, ::2],
    "backwards": lambda array: array[::-1],
    "transposed": lambda array: array.T,
    "one column": lambda array: array[:, 1],
    "rows of a block": lambda array: array[1:, :2],
}


@pytest.mark.parametrize("name", ARRAYS)
def test_every_device_gets_the_array(name: str) -> None:
    values = ARRAYS[name]()
    array = on(0, values)
    made = broadcast(array, [1, 0])
    assert made[1] is array
    assert places(made) == [1, 0]
    np.testing.assert_array_equal(made[0].get(), values, strict=True)
    assert made[0].flags.c_contiguous


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_copied_in_c_order(name: str) -> None:
    values = np.arange(12, dtype="f").reshape(3, 4)
    (made,) = broadcast(VIEWS[name](on(1, values)), [0])
    assert made.flags.c_contiguous
    np.testing.assert_array_equal(made.get(), VIEWS[name](values))


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_the_host_are_copied_to_every_device(name: str) -> None:
    values = ARRAYS[name]()
    made = broadcast(values, [0, 1])
    assert places(made) == [0, 1]
    for array in made:
        np.testing.assert_array_equal(array.get(), values, strict=True)


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_the_host_are_copied(name: str) -> None:
    values = VIEWS[name](np.arange(12, dtype="f").reshape(3, 4))
    np.testing.assert_array_equal(broadcast(values, [1])[0].get(), values)


def test_arrays_in_the_other_byte_order_are_converted() -> None:
    values = np.arange(5, dtype=">f4")
    (made,) = broadcast(values, [1])
    assert made.dtype == np.dtype("f")
    assert made.tolist() == values.tolist()


def test_a_device_may_occur_twice() -> None:
    array = on(0, np.arange(5))
    first, second, own = broadcast(array, [1, 1, 0])
    assert own is array
    with tcuda.device(1):
        first += 1
    assert second.tolist() == array.tolist()


def test_devices_are_named_as_elsewhere() -> None:
    array = on(0, np.arange(5))
    named = ["cuda:1", tcuda.device(1), tcuda.Stream(1).device, broadcast(array, [1])[0].device, "cuda:0"]
    assert places(broadcast(array, named)) == [1, 1, 1, 1, 0]


def test_no_devices_get_no_arrays() -> None:
    assert broadcast(on(0, np.arange(5)), []) == []
    assert broadcast(on(0, np.arange(5)), out=[]) == []


OUTPUTS: dict[str, Callable[[], Any]] = {
    "plain": lambda: on(1, np.zeros((3, 4), "f")),
    "own device": lambda: on(0, np.zeros((3, 4), "f")),
    "Fortran order": lambda: on(1, np.zeros((3, 4), "f", order="F")),
    "every other column": lambda: on(1, np.zeros((3, 8), "f"))[:, ::2],
    "long rows": lambda: on(1, np.zeros((3, 9), "f"))[:, 2:6],
    "backwards": lambda: on(1, np.zeros((3, 4), "f"))[::-1],
}


@pytest.mark.parametrize("source", [0, None])
@pytest.mark.parametrize("name", OUTPUTS)
def test_arrays_are_filled(name: str, source: int | None) -> None:
    values = np.arange(12, dtype="f").reshape(3, 4)
    targets = [OUTPUTS[name](), OUTPUTS["plain"]()]
    made = broadcast(values if source is None else on(source, values), out=targets)
    assert [each is target for each, target in zip(made, targets, strict=True)] == [True, True]
    for target in targets:
        np.testing.assert_array_equal(target.get(), values)


def test_an_array_is_its_own_output() -> None:
    array = on(0, np.arange(5))
    assert broadcast(array, out=[array])[0] is array
    assert array.tolist() == [0, 1, 2, 3, 4]


def test_page_locked_memory_is_copied_without_a_wait(runtime: Any) -> None:
    values = np.arange(4096, dtype="f")
    runtime.hostRegister(values.ctypes.data, values.nbytes, 0)
    try:
        stream = tcuda.Stream(1)
        keep_busy(stream)
        with tcuda.stream(stream):
            (made,) = broadcast(values, [1])
        assert not stream.query()
        stream.synchronize()
        assert made.tolist() == values.tolist()
    finally:
        runtime.hostUnregister(values.ctypes.data)


def test_memory_that_another_library_has_locked_lives_until_it_is_copied(runtime: Any) -> None:
    from tcuda.comm import _kept_memory

    both = np.arange(8192, dtype="f")  # one array, because CUDA may refuse to lock a page twice
    values, others = both[:4096], both[4096:]
    runtime.hostRegister(both.ctypes.data, both.nbytes, 0)
    try:
        stream = tcuda.Stream(1)
        keep_busy(stream)
        with tcuda.stream(stream):
            broadcast(values, [1])
            assert any(np.shares_memory(memory, values) for *_, memory in _kept_memory.in_use)
            stream.synchronize()
            broadcast(others, [1])
        assert not any(np.shares_memory(memory, values) for *_, memory in _kept_memory.in_use)
        stream.synchronize()
    finally:
        runtime.hostUnregister(both.ctypes.data)


@pytest.mark.usefixtures("idle")
def test_pending_work_of_the_source_is_seen() -> None:
    array = on(0, np.zeros(1000))
    array += 0  # the first addition compiles a kernel, for longer than the stream stays busy
    stream = tcuda.Stream(0)
    tcuda.synchronize(0)
    keep_busy(stream)
    with tcuda.stream(stream):
        array += 1
        (made,) = broadcast(array, [1])
    assert made.tolist() == [1] * 1000


@pytest.mark.alone
@pytest.mark.usefixtures("idle")
def test_later_work_of_the_target_waits_for_the_copy() -> None:
    array, here, there = on(0, np.zeros(1000)), tcuda.Stream(0), tcuda.Stream(1)
    broadcast(array, [1])  # the first copy makes the devices peers, for longer than the stream stays busy
    for stream in (here, there):
        keep_busy(stream, 1)  # the first launch on a device loads the kernel
        tcuda.synchronize(stream.device_index)
    keep_busy(here)
    with tcuda.stream(there), tcuda.stream(here):
        broadcast(array, [1])
    let_pass(tcuda.Stream(1))  # the copy would be complete by now
    assert not there.query()
    there.synchronize()
    assert here.query()


def test_threads_copy_at_the_same_time() -> None:
    wrong: list[object] = []

    def work(value: int) -> None:
        home = value % 2
        for _ in range(20):
            array = on(home, np.full(1000, value))
            for copy in (broadcast(array, [1 - home])[0], *broadcast(array.get(), [0, 1])):
                if copy.tolist() != [value] * 1000:
                    wrong.append(copy)

    threads = [threading.Thread(target=work, args=(value,)) for value in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("host", [False, True])
def test_a_device_without_memory_changes_nothing(host: bool) -> None:
    values = np.ones(1 << 20)
    array = values if host else on(0, values)
    gc.collect()  # arrays of earlier tests must not be freed between the two figures
    tcuda.empty_cache()
    before, fraction = allocated(), tcuda.get_per_process_memory_fraction(1)
    tcuda.set_per_process_memory_fraction((4 << 20) / tcuda.mem_get_info(1)[1], 1)
    try:
        with pytest.raises(tcuda.OutOfMemoryError):
            broadcast(array, [0, 1])
    finally:
        tcuda.set_per_process_memory_fraction(fraction, 1)
    assert allocated() == before
    assert tcuda.current_device() == 0
    assert broadcast(array, [1])[0].tolist() == values.tolist()


def refusal(*args: Any, **kwargs: Any) -> str:
    with pytest.raises((RuntimeError, TypeError, ValueError)) as raised:
        broadcast(*args, **kwargs)
    return f"{type(raised.value).__name__}: {raised.value}"


def test_devices_and_out_exclude_each_other() -> None:
    array = on(0, np.arange(10, dtype="f"))
    text = "RuntimeError: Exactly one of 'devices' and 'out' must be specified, but got devices="
    assert refusal(array) == f"{text}None and out=None"
    assert refusal(array, [0], out=[array]) == f"{text}[0] and out=[float32[10]]"


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        (["cpu"], "ValueError: Expected a non cpu device, but got: cpu"),
        ([-1], "RuntimeError: Expected non-negative device index, but got -1"),
        ([0, None], "ValueError: Expected a torch.device with a specified index or an integer, but got:None"),
        ([0, 99], "AcceleratorError: CUDA error: invalid device ordinal"),
    ],
)
@pytest.mark.parametrize("host", [False, True])
def test_other_devices_are_refused(devices: Any, expected: str, host: bool) -> None:
    values = np.arange(3)
    assert refusal(values if host else on(0, values), devices).startswith(expected)


@pytest.mark.parametrize(
    ("out", "expected"),
    [
        (
            lambda: on(0, np.zeros(9, "f")),
            "RuntimeError: Expected all output tensors to have same shape as the source tensor [10], but output tensor "
            "at index 1 has shape [9]",
        ),
        (
            lambda: np.zeros(10, "f"),
            "RuntimeError: Expected all output tensors to be CUDA tensors, but output tensor at index 1 has device "
            "'cpu'",
        ),
        (
            lambda: on(1, np.zeros(10, "d")),
            "RuntimeError: all inputs and outputs must be of the same Tensor dtype; the source is float32, and the "
            "output at index 1 is float64",
        ),
        (lambda: 5, "TypeError: out[1] must be an array of "),
    ],
)
def test_other_outputs_are_refused_before_anything_is_copied(out: Any, expected: str) -> None:
    first = on(1, np.zeros(10, "f"))
    assert refusal(on(0, np.ones(10, "f")), out=[first, out()]).startswith(expected)
    assert not first.get().any()


@pytest.mark.parametrize("tensor", [5, None, [1, 2], "x"])
def test_other_objects_are_refused(tensor: Any) -> None:
    assert refusal(tensor, [0]).startswith("TypeError: tensor must be an array of ")


def test_a_copy_joins_the_capture_of_the_target() -> None:
    source, graph = on(1, np.ones((100, 2)))[:, 0], tcuda.CUDAGraph()
    there = tcuda.Stream(1)
    with tcuda.stream(there), tcuda.device(0), tcuda.graph(graph):
        (made,) = broadcast(source, [0])
    with tcuda.device(1):
        source += 1
        tcuda.synchronize()
    graph.replay()
    assert made.tolist() == [2] * 100
    used = {segment["device"] for segment in tcuda.memory_snapshot() if segment["segment_pool_id"] == graph.pool()}
    assert used == {0, 1}, "memory between the devices belongs to the graph too"
    del made, graph


def test_a_copy_of_a_capture_runs_at_every_launch() -> None:
    source, target = on(0, np.zeros(100)), on(1, np.zeros(100))
    graph, here, there = tcuda.CUDAGraph(), tcuda.Stream(0), tcuda.Stream(1)
    with tcuda.stream(there), tcuda.graph(graph, stream=here):
        there.wait_stream(here)
        source += 1
        broadcast(source, out=[target])
        here.wait_stream(there)
    assert target.tolist() == [0] * 100
    for launch in (1, 2):
        graph.replay()
        tcuda.synchronize(0)
        assert target.tolist() == [launch] * 100


@pytest.mark.parametrize("host", [False, True])
def test_a_copy_that_would_invalidate_a_capture_is_refused(host: bool) -> None:
    array, graph = on(0, np.zeros(100)), tcuda.CUDAGraph()
    with tcuda.graph(graph):
        array += 1
        status = status_of(lambda: broadcast(np.ones(3), [0]) if host else broadcast(array, [1]))
    assert status == (Status.STREAM_CAPTURE_UNSUPPORTED if host else Status.STREAM_CAPTURE_ISOLATION)
    graph.replay()
    assert array.tolist() == [1] * 100
