"""Arrays that Dask sends: their contents and layout, the copies that are made, and the streams that are waited for."""

from __future__ import annotations

import gc
import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from dask.sizeof import sizeof
from distributed.protocol.serialize import deserialize, serialize
from hypothesis import given, settings
from hypothesis import strategies as st

import tcuda
import tcuda.dask
from support import workers
from tcuda._process.lazy import cuda

if TYPE_CHECKING:
    from distributed import Client

    from support.fixture_types import OutputOf

MIB = 1 << 20


def sent(array: Any) -> Any:
    """Return what arrives when Dask sends ``array``."""
    header, frames = serialize(array)
    assert header["serializer"] == "dask"
    return deserialize(header, [bytearray(frame) for frame in frames])


DTYPES = ["?", "i1", "u2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"]


@settings(deadline=None)
@given(
    shape=st.lists(st.integers(0, 4), max_size=4).map(tuple),
    dtype=st.sampled_from(DTYPES),
    order=st.sampled_from("CF"),
    data=st.data(),
)
def test_arrays_arrive_as_they_were(shape: tuple[int, ...], dtype: str, order: str, data: st.DataObject) -> None:
    size = int(np.prod(shape))
    host = np.arange(size).astype(dtype).reshape(shape, order=order)
    steps = tuple(slice(None, None, data.draw(st.sampled_from([1, 1, 2, -1]))) for _ in shape)
    array, expected = tcuda.xp.asarray(host, order=order)[steps], host[steps]
    arrived = sent(array)
    np.testing.assert_array_equal(arrived.get(), expected)
    assert arrived.dtype == host.dtype
    if array.flags.c_contiguous or array.flags.f_contiguous:
        assert arrived.flags.c_contiguous == array.flags.c_contiguous
        assert arrived.flags.f_contiguous == array.flags.f_contiguous
    assert type(arrived) is type(array)


def test_a_view_is_sent_without_the_elements_that_it_skips(xp: Any) -> None:
    _, frames = serialize(xp.zeros((1000, 10), "u1")[::10, 3])
    assert sum(map(len, frames)) == 100


def test_a_broadcast_array_is_sent_without_its_repetitions(xp: Any) -> None:
    array = xp.broadcast_to(xp.arange(10, dtype="u1"), (1000, 10))
    _, frames = serialize(array)
    assert sum(map(len, frames)) == 10
    arrived = sent(array)
    assert arrived.strides == array.strides
    np.testing.assert_array_equal(arrived.get(), array.get())


def test_arrays_arrive_on_the_current_device(xp: Any) -> None:
    last = tcuda.device_count() - 1
    header, frames = serialize(xp.arange(5))
    with tcuda.device(last):
        assert deserialize(header, frames).data.device_id == last


def test_dask_knows_the_size_of_an_array(xp: Any) -> None:
    assert sizeof(xp.zeros((100, 10), "f4")) == 4000


@pytest.mark.eager  # the late schedule copies pageable memory
def test_the_host_keeps_one_copy(xp: Any) -> None:
    array = xp.zeros(16 * MIB, "u1")
    gc.collect()
    tracemalloc.start()
    try:
        header, frames = serialize(array)
        assert tracemalloc.get_traced_memory()[1] < 17 * MIB
        tracemalloc.reset_peak()
        deserialize(header, frames)
        assert tracemalloc.get_traced_memory()[1] < 17 * MIB
    finally:
        tracemalloc.stop()


@pytest.mark.emulated
def test_each_way_is_one_copy_that_waits_for_the_stream_of_the_array(xp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, Any]] = []

    def note(name: str) -> None:
        original = getattr(cuda, name)

        def call(*args: Any) -> Any:
            calls.append((name, args))
            return original(*args)

        monkeypatch.setattr(cuda, name, call)

    own, other = tcuda.Stream(), tcuda.Stream()
    with tcuda.stream(own):
        array = xp.ones(1000, "f4")
    for name in ("memcpyAsync", "memcpy", "streamSynchronize", "deviceSynchronize", "eventSynchronize"):
        note(name)
    with tcuda.stream(other):
        header, frames = serialize(array)
        assert [(name, args[-1]) for name, args in calls] == [
            ("memcpyAsync", own.cuda_stream),
            ("streamSynchronize", own.cuda_stream),
        ]
        calls.clear()
        deserialize(header, frames)
        assert [(name, args[-1]) for name, args in calls] == [("memcpyAsync", other.cuda_stream)]


def test_the_work_of_the_stream_of_the_array_is_waited_for_and_no_other_work(xp: Any) -> None:
    own, other = tcuda.Stream(), tcuda.Stream()
    with tcuda.stream(own):
        tcuda._sleep(1)
        array = xp.zeros(10)
        array += 0  # the first launch loads the kernel, which would wait for the other stream
    serialize(array)  # the first call imports modules, which may take long
    with tcuda.stream(other):
        tcuda._sleep(1_000_000_000)
    with tcuda.stream(own):
        tcuda._sleep(1_000_000)
        array += 1
    header, frames = serialize(array)
    assert own.query()
    assert not other.query()
    other.synchronize()
    np.testing.assert_array_equal(deserialize(header, frames).get(), np.ones(10))


def test_a_task_gives_its_array_to_a_task_of_another_worker(client: Client, addresses: dict[int, str]) -> None:
    made = client.submit(workers.array_on_a_side_stream, 1000, workers=[addresses[0]], pure=False)
    total, uuid = client.submit(workers.total_and_device, made, workers=[addresses[1]], pure=False).result()
    assert total == 1000
    assert uuid == str(tcuda.get_device_properties(1 % tcuda.device_count()).uuid)


def test_large_arrays_and_arrays_in_collections_reach_the_client(client: Client) -> None:
    host = np.random.default_rng(3).standard_normal(3 * MIB)  # so large that Dask uses its other thread
    array = tcuda.xp.asarray(host)
    kept = client.scatter(array)
    nested = client.submit(lambda value: {"list": [value[0] * 2, value[0][:10]]}, [kept]).result()
    np.testing.assert_array_equal(nested["list"][0].get(), host * 2)
    np.testing.assert_array_equal(nested["list"][1].get(), host[:10])


@pytest.mark.emulated
def test_a_process_without_a_device_says_so(output_of: OutputOf) -> None:
    code = """
import os
import tcuda.dask, tcuda.emulation
from distributed.protocol.serialize import deserialize
os.environ["TCUDA_RUNTIME"] = "cuda"
kind = tcuda.emulation.ndarray
import tcuda._runtime, tcuda.dask._serialization as serialization
try:
    serialization.deserialize({"shape": [2], "dtype": "<f4", "order": "C", "broadcast_to": [2]}, [b"12345678"])
except RuntimeError as error:
    print(str(error).splitlines()[0])
"""
    printed = output_of(code, TCUDA_RUNTIME="cuda", CUDA_VISIBLE_DEVICES="")
    assert printed.startswith("An array of shape (2,) and dtype float32 has arrived in a process that cannot hold it: ")
    assert printed.endswith("by array.get() in the task.")
