"""Functions that workers of Dask run. Workers import this module, but not the modules of tests."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any

from distributed import get_worker

import tcuda
from tcuda import nccl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distributed import Worker

    from tcuda.dask import Group

_both_threads = threading.Barrier(2, timeout=30)


def current_uuid() -> str:
    """Return the UUID of the current device."""
    return str(tcuda.get_device_properties(tcuda.current_device()).uuid)


async def current_uuid_in_a_coroutine() -> str:
    """Return the UUID of the current device of the thread that runs coroutines."""
    await asyncio.sleep(0)
    return current_uuid()


def meet_and_tell_the_device() -> tuple[int, str]:
    """Wait until a second thread calls the function too; return the thread, and the UUID of its current device."""
    _both_threads.wait()
    return threading.get_ident(), current_uuid()


def seed_of_current_device() -> int:
    """Return the seed of the default generator of the current device."""
    return tcuda.default_generators[tcuda.current_device()].initial_seed()


def change_device_and_stream() -> None:
    """Leave another device and another stream as the current ones."""
    tcuda.set_device(tcuda.device_count() - 1 - tcuda.current_device())
    tcuda.set_stream(tcuda.Stream())


def device_and_stream() -> tuple[str, int]:
    """Return the UUID of the current device, and the handle of the current stream."""
    return current_uuid(), tcuda.current_stream().cuda_stream


async def send_metrics(dask_worker: Worker) -> None:
    """Send the metrics of the worker to the scheduler now."""
    await dask_worker.heartbeat()


class Counter:
    """An actor that knows where it was made."""

    def __init__(self) -> None:
        self.made_on = current_uuid()

    def devices(self) -> tuple[str, str]:
        """Return the UUIDs of the device on which the actor was made, and of the current device."""
        return self.made_on, current_uuid()


def collectives(group: Group, inputs: Sequence[Any], op: str) -> dict[str, Any]:
    """Run all collectives with the input of this rank, and return the results on the host."""
    with group.join(30) as communicator:
        own = tcuda.xp.asarray(inputs[communicator.rank])
        reduced, sent = own.copy(), own.copy()
        results = {
            "all_reduce": communicator.all_reduce(reduced, op),
            "in place": reduced,
            "broadcast": communicator.broadcast(sent, communicator.size - 1),
            "all_gather": communicator.all_gather(own),
            "reduce_scatter": communicator.reduce_scatter(own, op),
        }
        communicator.barrier()
        return {name: array.get() for name, array in results.items()}


def fail_on_rank_1(group: Group) -> None:
    """Let the rank 0 wait for the rank 1, whose task fails."""
    with group.join(30) as communicator:
        if communicator.rank == 1:
            raise ZeroDivisionError("the task of the rank 1")
        communicator.all_reduce(tcuda.xp.ones(3))


def die_on_rank_1(group: Group) -> None:
    """Let the rank 0 wait for the rank 1, whose worker dies."""
    with group.join(30) as communicator:
        if communicator.rank == 1:
            os._exit(1)
        communicator.all_reduce(tcuda.xp.ones(3))


def die_before_rank_0_sends(group: Group) -> None:
    """Let the rank 0 send to the rank 1 after the scheduler has reported the death of its worker."""
    with group.join(30) as communicator:
        if communicator.rank == 1:
            os._exit(1)
        mailbox = communicator._mailbox
        with mailbox._changed:
            assert mailbox._changed.wait_for(lambda: mailbox._gone, timeout=30)
        communicator.all_reduce(tcuda.xp.ones(3))


def join_and_die_on_rank_1(group: Group) -> None:
    """Let the rank 0 wait for the rank 1 to join, whose worker dies."""
    if get_worker().address == group.addresses[1]:
        os._exit(1)
    with group.join(30):
        pass


def end_process(group: Group) -> None:
    """Let the worker die."""
    os._exit(1)


def current_uuid_of(group: Group) -> str:
    """Return the UUID of the current device."""
    return current_uuid()


def die_while_rank_0_connects(group: Group) -> None:
    """Let the worker of the rank 1 die when all ranks have joined, before the rank 1 takes part in NCCL's clique."""
    if get_worker().address == group.addresses[1]:
        nccl.init_rank = lambda *args: os._exit(1)
    group.join(30)


def leave_early_on_rank_1(group: Group) -> None:
    """Let the rank 0 wait for the rank 1, whose task has left the group."""
    with group.join(30) as communicator:
        if communicator.rank == 0:
            communicator.all_reduce(tcuda.xp.ones(3))


def abandon_while_another_thread_waits(group: Group) -> str:
    """Return the error of a thread of the rank 0 whose communicator another thread abandons."""
    with group.join(30) as communicator:
        if communicator.rank == 1:
            try:
                communicator.broadcast(tcuda.xp.ones(3), root=0)
            except RuntimeError as error:
                return str(error)
            return "no error"
        waiting, errors = threading.Event(), []

        def wait() -> None:
            waiting.set()
            try:
                communicator.broadcast(tcuda.xp.ones(3), root=1)
            except RuntimeError as error:
                errors.append(str(error))

        thread = threading.Thread(target=wait)
        thread.start()
        waiting.wait()
        communicator.abandon("the test ends it")
        thread.join()
        return errors[0] if errors else "no error"


def refused(group: Group) -> list[str]:
    """Return the errors of calls that are refused, which leave the ranks able to go on."""
    messages = []
    with group.join(30) as communicator:
        array = tcuda.xp.ones((3, 4))
        for call in (
            lambda: communicator.all_reduce(array, "mean"),
            lambda: communicator.all_reduce(array.T),
            lambda: communicator.all_reduce([1.0]),
            lambda: communicator.broadcast(array, 2),
            lambda: communicator.reduce_scatter(array),
        ):
            try:
                call()
            except (TypeError, ValueError) as error:
                messages.append(str(error))
        communicator.barrier()
    try:
        communicator.barrier()
    except RuntimeError as error:
        messages.append(str(error))
    return messages


def make_different_calls(group: Group) -> None:
    """Let the ranks make different calls."""
    with group.join(30) as communicator:
        communicator.all_reduce(tcuda.xp.ones(3 + communicator.rank))


def join_alone(group: Group, timeout: float) -> None:
    """Join a group, of which no other rank joins."""
    group.join(timeout)


def array_on_a_side_stream(size: int) -> Any:
    """Return an array of ones that a stream of its own has made, without a wait for the stream."""
    with tcuda.stream(tcuda.Stream()):
        tcuda._sleep(1_000_000)
        return tcuda.xp.ones(size)


def total_and_device(array: Any) -> tuple[float, str]:
    """Return the sum of the elements, and the UUID of the device of the array."""
    device = array.data.device_id
    with tcuda.device(device):
        return float(array.sum()), str(tcuda.get_device_properties(device).uuid)


def choose_nccl(chosen: bool) -> None:
    """Let the groups of this worker use NCCL or its emulated counterpart, or let them choose again."""
    from tcuda.dask import _group, _nccl_collectives

    _group.new_unique_id = tcuda.nccl.unique_id if chosen else _nccl_collectives.new_unique_id
