"""Arrays that other processes receive: the same memory, layouts, views, and the ways by which arrays travel."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import pickle
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
import tcuda.multiprocessing
from support import receivers
from support.busy_streams import keep_busy
from support.receivers import SPAWN, Worker

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_an_array_arrives_in_the_same_memory(xp: Any, worker: Worker) -> None:
    array = xp.zeros(5, np.int32)
    worker.call(receivers.keep, "array", array)
    array.fill(7)
    tcuda.synchronize()
    assert worker.call(receivers.elements, "array") == [7] * 5
    worker.call(receivers.fill, "array", 8)
    assert array.get().tolist() == [8] * 5


@pytest.mark.parametrize(
    "view",
    [
        lambda array: array,
        lambda array: array[3],
        lambda array: array[1:, ::2],
        lambda array: array[::-1, ::-2],
        lambda array: array.T,
        lambda array: array[2, 3],
        lambda array: array[:, 4:4],
        lambda array: array[:0].T,
        lambda array: array.reshape(-1)[5:].view(np.uint8),
    ],
)
def test_views_keep_their_layout(xp: Any, worker: Worker, view: Any) -> None:
    array = view(xp.arange(4 * 6, dtype=np.int32).reshape(4, 6))
    received = worker.call(receivers.copied, array)
    np.testing.assert_array_equal(received, array.get(), strict=True)
    back = worker.call(receivers.echo, array)
    assert (back.shape, back.strides, back.dtype) == (array.shape, array.strides, array.dtype)


def test_a_broadcast_array_keeps_its_layout(xp: Any, worker: Worker) -> None:
    array = xp.broadcast_to(xp.arange(3), (4, 3))
    back = worker.call(receivers.echo, array)
    assert back.strides == array.strides
    np.testing.assert_array_equal(back.get(), array.get())


@pytest.mark.parametrize("dtype", "?bhilqBHILQefdFD")
def test_every_dtype_arrives(xp: Any, worker: Worker, dtype: str) -> None:
    array = xp.arange(4).astype(dtype)
    np.testing.assert_array_equal(worker.call(receivers.copied, array), array.get(), strict=True)


def test_arrays_of_one_segment_share_a_mapping(xp: Any, worker: Worker) -> None:
    tcuda.empty_cache()
    arrays = [xp.full(10, number) for number in range(4)]
    for number, array in enumerate(arrays):
        worker.call(receivers.keep, str(number), array)
    assert worker.call(receivers.mapped_segments) == 1
    assert [worker.call(receivers.elements, str(number))[0] for number in range(4)] == [0, 1, 2, 3]
    worker.call(receivers.drop, "0", "1", "2")
    worker.call(receivers.collect)
    assert worker.call(receivers.elements, "3") == [3] * 10
    worker.call(receivers.drop, "3")
    worker.call(receivers.collect)
    assert worker.call(receivers.mapped_segments) == 0


@pytest.fixture
def patient(worker: Worker) -> Iterator[Worker]:
    """The worker, which keeps mappings without arrays open until it is told to close them."""
    usual = worker.call(receivers.set_idle_time, 1e6)
    yield worker
    worker.call(receivers.set_idle_time, usual)


def test_a_mapping_is_kept_for_the_next_message_and_keeps_no_block(xp: Any, patient: Worker) -> None:
    tcuda.empty_cache()
    array = xp.arange(10)
    used = tcuda.memory_allocated()
    address = patient.call(receivers.address_of, array)
    patient.call(receivers.settle)
    assert patient.call(receivers.mapped_segments) == 1
    assert patient.call(receivers.address_of, array) == address
    patient.call(receivers.settle)
    del array
    tcuda.ipc_collect()
    assert tcuda.memory_allocated() < used
    assert patient.call(receivers.mapped_segments) == 1
    patient.call(receivers.collect)
    assert patient.call(receivers.mapped_segments) == 0


def test_a_mapping_without_arrays_is_closed_after_its_time(xp: Any, worker: Worker) -> None:
    usual = worker.call(receivers.set_idle_time, 0.0)
    worker.call(receivers.keep, "array", xp.arange(10))
    assert worker.call(receivers.mapped_segments) == 1
    worker.call(receivers.drop, "array")
    worker.call(receivers.settle)
    worker.call(receivers.settle)  # the thread closes the mapping between the two calls
    assert worker.call(receivers.mapped_segments) == 0
    worker.call(receivers.set_idle_time, usual)


def test_only_so_many_mappings_without_arrays_stay_open(xp: Any, patient: Worker) -> None:
    most = patient.call(receivers.set_most_idle, 2)
    tcuda.empty_cache()
    arrays = [xp.zeros(60 << 20, np.uint8) for _ in range(4)]  # each in pieces of its own
    for number, array in enumerate(arrays):
        patient.call(receivers.keep, str(number), array)
    assert patient.call(receivers.mapped_segments) == 4
    patient.call(receivers.drop)
    patient.call(receivers.settle)
    assert patient.call(receivers.mapped_segments) == 2
    patient.call(receivers.set_most_idle, most)


def test_an_old_mapping_is_not_used_for_new_memory_at_the_same_addresses(xp: Any, patient: Worker) -> None:
    tcuda.empty_cache()
    keeper = xp.zeros(30 << 20, np.uint8)  # keeps the segment and its addresses
    addresses = []
    for value in range(3):
        array = xp.full(100 << 20, value, np.uint8)
        addresses.append(array.data.ptr)
        assert patient.call(receivers.first_and_last, array) == (value, value)
        del array
        patient.call(receivers.settle)
        tcuda.ipc_collect()
        tcuda.empty_cache()
    assert len(set(addresses)) == 1  # otherwise the test says nothing
    assert keeper.size


def test_a_large_array_of_many_pieces_arrives(xp: Any, worker: Worker) -> None:
    tcuda.empty_cache()
    small = [xp.zeros(3 << 20, np.uint8) for _ in range(3)]
    del small
    array = xp.arange(40 << 18, dtype=np.int32)  # the segment has grown before, so the array lies in several pieces
    received = worker.call(receivers.copied, array)
    np.testing.assert_array_equal(received, array.get())


def test_segments_of_the_runtime_arrive(xp: Any, worker: Worker) -> None:
    with tcuda.caching_allocator_disabled():  # each array has a cudaMalloc of its own
        array = xp.arange(10)
    np.testing.assert_array_equal(worker.call(receivers.copied, array), np.arange(10))


def test_an_array_that_is_sent_back_is_in_the_own_memory(xp: Any, worker: Worker) -> None:
    array = xp.arange(6)
    worker.call(receivers.keep, "array", array)
    back = worker.call(receivers.send_back, "array")
    assert back.data.mem is array.data.mem
    assert worker.call(receivers.echo, array[2:]).data.ptr == array[2:].data.ptr


def test_the_device_of_the_array_does_not_become_current(xp: Any, worker: Worker) -> None:
    if tcuda.device_count() < 2:
        pytest.skip("needs two devices")
    with tcuda.device(1):
        array = xp.arange(3)
    back = worker.call(receivers.echo, array)
    assert int(back.device) == 1
    assert tcuda.current_device() == 0


def test_plain_pickles_are_copies(xp: Any) -> None:
    array = xp.arange(4)
    copied = pickle.loads(pickle.dumps(array))
    assert copied.data.ptr != array.data.ptr
    assert tcuda.multiprocessing.unreceived() == 0


def test_a_message_that_is_loaded_twice_gives_two_arrays(xp: Any) -> None:
    array = xp.arange(4)
    message = bytes(ForkingPickler.dumps(array))
    first, second = pickle.loads(message), None
    with pytest.raises(RuntimeError, match="The array is gone"):
        second = pickle.loads(message)  # no process holds the memory for others any more
    assert (first.data.ptr, second) == (array.data.ptr, None)


def test_a_message_is_loaded_twice_while_its_memory_is_shared(xp: Any, worker: Worker) -> None:
    array = xp.arange(4)
    message = bytes(ForkingPickler.dumps(array))
    worker.call(receivers.load, "first", message)
    worker.call(receivers.load, "second", message)
    worker.call(receivers.fill, "first", 9)
    assert worker.call(receivers.elements, "second") == [9] * 4
    assert array.get().tolist() == [9] * 4


def test_an_array_is_sent_on(xp: Any, worker: Worker) -> None:
    ours, theirs = SPAWN.Pipe()
    with receivers.worker(ours) as first, receivers.worker(theirs) as second:
        array = xp.arange(4)
        first.call(receivers.keep, "array", array)
        pointer, allocated = array.data.ptr, tcuda.memory_allocated()
        del array
        first.call(receivers.pass_on, "array")
        first.call(receivers.drop, "array")
        first.call(receivers.collect)
        tcuda.ipc_collect()
        assert tcuda.memory_allocated() == allocated  # the message on the way keeps the memory
        second.call(receivers.keep_from_other, "array")
        first.kill()
        assert second.call(receivers.elements, "array") == [0, 1, 2, 3]
        back = second.call(receivers.send_back, "array")
        assert back.data.ptr == pointer
        del back
        second.call(receivers.drop)
        second.call(receivers.collect)
    tcuda.ipc_collect()
    assert tcuda.memory_allocated() < allocated


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_arguments_and_queues_of_processes(xp: Any, start: str) -> None:
    context: Any = multiprocessing.get_context(start)
    array, queue = xp.arange(4), context.Queue()
    process = context.Process(target=receivers.double_and_put, args=(queue, array))
    process.start()
    back = queue.get(timeout=60)
    assert back.data.ptr == array.data.ptr
    assert array.get().tolist() == [0, 2, 4, 6]
    queue.put(None)
    process.join(60)
    assert process.exitcode == 0


def test_executors(xp: Any) -> None:
    array = xp.arange(4)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=SPAWN) as executor:
        back = executor.submit(receivers.double, array).result(timeout=60)
    assert back.data.ptr == array.data.ptr
    assert array.get().tolist() == [0, 2, 4, 6]


def test_the_receiver_waits_for_the_work_of_the_sender(xp: Any, worker: Worker) -> None:
    stream = tcuda.Stream()
    array = xp.zeros(1000)
    tcuda.synchronize()
    keep_busy(stream)
    with tcuda.stream(stream):
        array.fill(5)
        worker.send(receivers.copied, array)
    np.testing.assert_array_equal(worker.answer(), np.full(1000, 5.0))


def test_a_queue_waits_for_the_streams_that_use_the_array(xp: Any, worker: Worker) -> None:
    # A thread of the queue pickles the array, and the current stream of this thread says nothing about the array.
    made, recorded = tcuda.Stream(), tcuda.Stream()
    with tcuda.stream(made):
        array = xp.zeros(1000)
    made.synchronize()
    keep_busy(recorded)
    with tcuda.stream(recorded):
        array[:500] = 1
    tcuda.memory.record_stream(array, recorded)
    keep_busy(made)
    with tcuda.stream(made):
        array[500:] = 2
    pickled = []
    thread = receivers.started(lambda: pickled.append(bytes(ForkingPickler.dumps(array))))
    thread.join()
    worker.call(receivers.load, "array", pickled[0])
    assert worker.call(receivers.elements, "array") == [1.0] * 500 + [2.0] * 500


@pytest.mark.emulated
def test_the_stream_of_the_receiver_is_busy_until_the_sender_is_done(xp: Any, worker: Worker) -> None:
    array = xp.zeros(4)
    stream = tcuda.Stream()
    keep_busy(stream, 10**12)
    with tcuda.stream(stream):
        worker.call(receivers.keep, "array", array)
    assert not worker.call(receivers.is_idle)
    stream.synchronize()
    worker.call(receivers.synchronize)
    assert worker.call(receivers.is_idle)


def test_events_are_sent(worker: Worker) -> None:
    event = tcuda.Event(interprocess=True)
    event.record()
    assert worker.call(receivers.wait_for, event)
    assert pickle.loads(ForkingPickler.dumps(event)) is event


def test_an_event_that_is_not_for_processes_is_refused() -> None:
    event = tcuda.Event()
    event.record()
    with pytest.raises(tcuda.AcceleratorError):
        ForkingPickler.dumps(event)
    assert tcuda.multiprocessing.unreceived() == 0
