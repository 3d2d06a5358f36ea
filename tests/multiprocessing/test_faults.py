"""Shared arrays when processes die, queues are full, and thousands of arrays are sent."""

from __future__ import annotations

import queue
import threading
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
    from support.fixture_types import OutputOf

pytestmark = pytest.mark.usefixtures("allocator_as_found")


def test_memory_lives_until_the_receiver_lets_it_go(xp: Any, worker: Worker) -> None:
    array = xp.arange(1000)
    before = tcuda.memory_allocated()
    worker.call(receivers.keep, "array", array)
    worker.call(receivers.keep, "view", array[5:])
    del array
    assert tcuda.memory_allocated() == before
    worker.call(receivers.drop, "array")
    worker.call(receivers.collect)
    tcuda.ipc_collect()
    assert tcuda.memory_allocated() == before
    assert worker.call(receivers.elements, "view")[0] == 5
    worker.call(receivers.drop, "view")
    worker.call(receivers.collect)
    tcuda.ipc_collect()
    assert tcuda.memory_allocated() < before


def test_memory_goes_back_after_the_work_of_the_receiver(xp: Any, worker: Worker) -> None:
    array = xp.zeros(1000)
    before = tcuda.memory_allocated()
    worker.call(receivers.keep, "array", array)
    del array
    worker.call(receivers.drop_while_busy, "array")
    worker.call(receivers.collect)
    tcuda.ipc_collect()
    assert tcuda.memory_allocated() < before
    assert worker.call(receivers.is_idle)


def test_memory_goes_back_after_the_streams_that_are_recorded(xp: Any, worker: Worker) -> None:
    array = xp.zeros(1000)
    worker.call(receivers.keep, "array", array)
    worker.call(receivers.record_and_drop, "array")
    worker.call(receivers.collect)
    assert worker.call(receivers.side_is_idle)


def test_a_message_on_the_way_keeps_the_memory(xp: Any, worker: Worker) -> None:
    array = xp.arange(10)
    before = tcuda.memory_allocated()
    message = bytes(ForkingPickler.dumps(array))
    del array
    tcuda.ipc_collect()
    assert tcuda.multiprocessing.unreceived() == 1
    assert tcuda.memory_allocated() == before
    worker.call(receivers.load, "array", message)
    assert tcuda.multiprocessing.unreceived() == 0
    assert worker.call(receivers.elements, "array") == list(range(10))


def test_withdrawn_messages_keep_no_memory(xp: Any, worker: Worker) -> None:
    first, second = xp.arange(10), xp.arange(10)
    before = tcuda.memory_allocated()
    messages = [bytes(ForkingPickler.dumps(array)) for array in (first, first[2:], second)]
    assert tcuda.multiprocessing.withdraw(first) == 2
    assert tcuda.multiprocessing.unreceived() == 1
    del first
    assert tcuda.memory_allocated() < before
    with pytest.raises(RuntimeError, match=r"The array is gone: .* has freed its memory"):
        worker.call(receivers.load, "array", messages[0])
    worker.call(receivers.load, "array", messages[2])
    assert worker.call(receivers.elements, "array") == list(range(10))
    with pytest.raises(TypeError, match="takes an array"):
        tcuda.multiprocessing.withdraw(3)


def test_a_receiver_that_is_killed_lets_everything_go(xp: Any) -> None:
    with receivers.worker() as doomed:
        array = xp.arange(1000)
        before = tcuda.memory_allocated()
        doomed.call(receivers.keep, "array", array)
        doomed.call(receivers.keep, "view", array[2:])
        del array
        tcuda.ipc_collect()
        assert tcuda.memory_allocated() == before
        doomed.kill()
    tcuda.ipc_collect()
    assert tcuda.memory_allocated() < before


def test_a_receiver_that_is_killed_before_it_receives(xp: Any) -> None:
    array = xp.arange(1000)
    before = tcuda.memory_allocated()
    with receivers.worker() as doomed:
        doomed.call(receivers.keep, "other", array)
        message = ForkingPickler.dumps(array)  # the process will never load the message
        doomed.kill()
    del array, message
    tcuda.ipc_collect()
    assert tcuda.memory_allocated() == before
    assert tcuda.multiprocessing.withdraw() == 1
    assert tcuda.memory_allocated() < before


def test_a_child_of_the_receiver_keeps_nothing(xp: Any) -> None:
    with receivers.worker() as doomed:
        array = xp.arange(1000)
        before = tcuda.memory_allocated()
        doomed.call(receivers.keep, "array", array)
        del array
        ours, theirs = SPAWN.Pipe()
        doomed.call(receivers.fork_child, theirs)  # the child lives until `ours` is closed
        theirs.close()
        assert ours.recv() == "forked"
        doomed.kill()
        tcuda.ipc_collect()
        assert tcuda.memory_allocated() < before
        ours.close()


def test_a_sender_that_is_killed_before_the_array_is_opened() -> None:
    with receivers.worker() as doomed:
        message = doomed.call(receivers.message_of_new, "array", 10)
        doomed.kill()
    with pytest.raises(RuntimeError, match=rf"The array is gone: the process {doomed.process.pid}.* has ended"):
        receivers.load("array", message)


def test_a_sender_that_is_killed_after_the_array_is_opened(xp: Any) -> None:
    with receivers.worker() as doomed:
        array = doomed.call(receivers.new, "array", 10)
        later = doomed.call(receivers.message_of, "array")
        doomed.kill()
    assert array.get().tolist() == list(range(10))
    array += 1
    assert array.get().tolist() == list(range(1, 11))
    with pytest.raises(RuntimeError, match="has ended"):
        ForkingPickler.dumps(array)  # nobody could keep the memory for the next process
    with pytest.raises(RuntimeError, match="has ended"):
        receivers.load("later", later)
    del array
    tcuda.ipc_collect()
    assert receivers.mapped_segments() == 0


def test_a_process_that_is_killed_after_it_has_sent_an_array_on(xp: Any) -> None:
    ours, theirs = SPAWN.Pipe()
    with receivers.worker(ours) as middle, receivers.worker(theirs) as last:
        ours.close()
        theirs.close()
        array = xp.arange(4)
        before = tcuda.memory_allocated()
        middle.call(receivers.keep, "array", array)
        del array
        middle.call(receivers.pass_on, "array")
        middle.kill()
        tcuda.ipc_collect()
        assert tcuda.memory_allocated() == before  # the message is still on the way
        last.call(receivers.keep_from_other, "array")
        assert last.call(receivers.elements, "array") == [0, 1, 2, 3]
        last.call(receivers.drop)
        last.call(receivers.collect)
        tcuda.ipc_collect()
        assert tcuda.memory_allocated() < before


def test_a_process_that_has_sent_a_thousand_views_on_can_go_on(xp: Any) -> None:
    ours, theirs = SPAWN.Pipe()
    with receivers.worker(ours) as middle, receivers.worker(theirs) as last:
        ours.close()
        theirs.close()
        array = xp.arange(2000)
        middle.call(receivers.keep, "array", array)
        last.send(receivers.keep_from_other, "views")
        middle.call(receivers.pass_views_on, "array", 1000)
        last.answer()
        middle.call(receivers.keep, "next", array)  # the owner has told the middle of a thousand receipts before
        assert middle.call(receivers.elements, "next") == list(range(2000))
        last.call(receivers.drop)
        middle.call(receivers.drop)


def test_a_process_that_is_killed_after_the_receiver_has_connected_to_it(xp: Any) -> None:
    ours, theirs = SPAWN.Pipe()
    with receivers.worker(ours) as middle, receivers.worker(theirs) as last:
        ours.close()
        theirs.close()
        middle.call(receivers.keep, "array", xp.arange(4))
        middle.call(receivers.new, "own", 3)
        middle.call(receivers.pass_on, "own")
        middle.call(receivers.pass_on, "array")  # with other events, because the first message is on the way
        last.call(receivers.keep_from_other, "own")
        middle.kill()
        last.call(receivers.keep_from_other, "array")
        assert last.call(receivers.elements, "array") == [0, 1, 2, 3]
        last.call(receivers.drop)


def test_memory_goes_back_after_the_captures_of_the_receiver(xp: Any, worker: Worker) -> None:
    array = xp.arange(4)
    before = tcuda.memory_allocated()
    worker.call(receivers.keep, "array", array)
    del array
    assert worker.call(receivers.drop_in_capture, "array") == [1.0] * 4
    worker.call(receivers.collect)
    tcuda.ipc_collect()
    assert tcuda.memory_allocated() < before


def test_a_full_queue_keeps_no_memory(xp: Any) -> None:
    full = SPAWN.Queue(1)
    array = xp.arange(10)
    full.put(array)
    with pytest.raises(queue.Full):
        full.put_nowait(array)
    back = full.get(timeout=60)
    assert back.data.ptr == array.data.ptr
    assert tcuda.multiprocessing.unreceived() == 0
    full.close()
    full.join_thread()


@pytest.mark.long
@pytest.mark.alone
def test_ten_thousand_arrays_leave_nothing_behind(xp: Any) -> None:
    with receivers.worker() as receiver:

        def rounds(count: int) -> None:
            for start in range(0, count, 500):
                receiver.send(receivers.count_elements, [xp.full(100, start + place) for place in range(500)])
                assert receiver.answer() == sum(100 * (start + place) for place in range(500))

        def state() -> list[Any]:
            return [receiver.call(receivers.resources), receivers.resources(), tcuda.mem_get_info()[0]]

        rounds(500)
        before = state()
        rounds(10_000)
        assert state() == before


def test_many_threads(xp: Any) -> None:
    failures: list[BaseException] = []

    def exchange(orders: Any, number: int) -> None:
        try:
            for turn in range(30):
                array = xp.full(50, number * 1000 + turn)
                orders.send(array[turn:])
                back = orders.recv()
                assert back.data.ptr == array[turn:].data.ptr
                np.testing.assert_array_equal(back.get(), array[turn:].get())
        except BaseException as error:
            failures.append(error)

    with receivers.worker() as receiver:
        pipes = [SPAWN.Pipe() for _ in range(4)]
        receiver.call(receivers.echo_in_threads, [theirs for _, theirs in pipes])
        threads = [threading.Thread(target=exchange, args=(ours, number)) for number, (ours, _) in enumerate(pipes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for ours, theirs in pipes:
            theirs.close()
            ours.close()
        receiver.call(receivers.join_threads)
        receiver.call(receivers.collect)
    tcuda.ipc_collect()
    assert not failures


EXITS = """
import multiprocessing, sys
import tcuda, tcuda.multiprocessing

def receive(arrays, barrier):
    array = arrays.recv()
    arrays.send("received")
    if barrier.recv() == "exit":  # before the sender
        return
    try:
        barrier.recv()  # until the sender has ended
    except EOFError:
        assert array.get().tolist() == [0, 1, 2]
        print("received", flush=True)

def main(first):
    context = multiprocessing.get_context("spawn")
    (ours, theirs), (barrier, other) = context.Pipe(), context.Pipe()
    process = context.Process(target=receive, args=(theirs, other))
    process.start()
    theirs.close()
    other.close()
    ours.send(tcuda.xp.arange(3))
    assert ours.recv() == "received"
    if first == "receiver":
        barrier.send("exit")
        process.join()
        assert process.exitcode == 0
        print("done")
        return
    print("done", flush=True)
    barrier.send("stay")
    multiprocessing.process._children.discard(process)  # the sender does not wait for the receiver

if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else first)
"""


@pytest.mark.parametrize("first", ["sender", "receiver"])
def test_both_processes_end_in_either_order(output_of: OutputOf, tmp_path: Any, first: str) -> None:
    program = tmp_path / "exits.py"
    program.write_text(EXITS)
    run = (
        f"import runpy, sys; sys.argv = ['exits.py', {first!r}]; runpy.run_path({str(program)!r}, run_name='__main__')"
    )
    # The output ends when both processes have ended.
    assert output_of(run).split() == (["done", "received"] if first == "sender" else ["done"])


def test_a_process_ends_with_messages_on_the_way(output_of: OutputOf) -> None:
    output_of(
        "import tcuda, tcuda.multiprocessing\n"
        "from multiprocessing.reduction import ForkingPickler\n"
        "array = tcuda.xp.arange(3)\n"
        "message = ForkingPickler.dumps(array)\n"
    )


def test_a_stream_that_is_busy_does_not_delay_the_sender(xp: Any, worker: Worker) -> None:
    array = xp.zeros(10)
    stream = tcuda.Stream()
    keep_busy(stream)
    with tcuda.stream(stream):
        message = ForkingPickler.dumps(array)
        assert not stream.query()
    stream.synchronize()
    worker.call(receivers.load, "array", bytes(message))
