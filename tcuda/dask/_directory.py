"""The scheduler's record of the device of each worker.

Workers start at the same time, so only the scheduler can choose a device for each of them. The scheduler forgets a
worker that has gone, and the next worker may have its device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from distributed.comm.addressing import get_address_host
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.protocol.pickle import dumps

from tcuda.dask._lost_tasks import LostTasks
from tcuda.dask._meetings import JOIN, LEAVE, Meetings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distributed import Scheduler, Worker

_NAME = "tcuda-directory"
_MEETINGS = "tcuda-meetings"
_LOST_TASKS = "tcuda-lost-tasks"
_OP = "tcuda_place"


class _Place(NamedTuple):
    """The device of a worker.

    Attributes:
        name: The name of the worker.
        host: The machine.
        uuid: The UUID of the device.
    """

    name: object
    host: str
    uuid: str


class Directory(SchedulerPlugin):
    """The devices of all workers, by the address of the worker."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}

    def remove_worker(self, scheduler: Scheduler, worker: str, **kwargs: Any) -> None:
        """Forget the device of ``worker``."""
        self._places.pop(worker, None)

    def place(self, address: str, name: Any, uuids: Sequence[str], per_device: int | None) -> str:
        """Choose a device for a worker: of the devices with the fewest workers, the next one.

        A worker whose name is the number ``n`` gets the device ``n``, counted in a circle, if no other device has fewer
        workers. So each worker of a local cluster has the same device in every run.

        Args:
            address: The address of the worker.
            name: The name of the worker.
            uuids: The UUIDs of the devices that the worker may have.
            per_device: The largest number of workers on one device; None for any number.

        Returns:
            The UUID of the device.

        Raises:
            RuntimeError: All devices have as many workers as they may have.
        """
        host = get_address_host(address)
        others = [
            place
            for other, place in self._places.items()
            if place.host == host and other != address and place.name != name
        ]
        workers = [sum(place.uuid == uuid for place in others) for uuid in uuids]
        first = name % len(uuids) if isinstance(name, int) else 0
        chosen = min(range(len(uuids)), key=lambda index: (workers[index], (index - first) % len(uuids)))
        if per_device is not None and workers[chosen] >= per_device:
            raise RuntimeError(
                f"The worker {name!r} finds no free device on {host}: each of the {len(uuids)} devices has "
                f"{per_device} worker(s) already. Start fewer workers, or let more workers share a device by "
                f"workers_per_device={per_device + 1}."
            )
        for stale in [other for other, place in self._places.items() if place.host == host and place.name == name]:
            del self._places[stale]  # the worker was started again, and the scheduler has not missed the old one yet
        self._places[address] = _Place(name, host, uuids[chosen])
        return uuids[chosen]


def install(dask_scheduler: Scheduler) -> None:
    """Give the scheduler the directory of devices and its part in the groups, unless it has them.

    Args:
        dask_scheduler: The scheduler, under the name by which Dask passes it.
    """
    if _NAME in dask_scheduler.plugins:
        return
    directory = Directory()
    dask_scheduler.add_plugin(directory, name=_NAME)
    dask_scheduler.handlers[_OP] = directory.place
    meetings = Meetings(dask_scheduler.worker_send, dask_scheduler.workers.__contains__)
    dask_scheduler.add_plugin(meetings, name=_MEETINGS)
    dask_scheduler.add_plugin(LostTasks(dask_scheduler), name=_LOST_TASKS)
    dask_scheduler.handlers[JOIN] = meetings.join
    dask_scheduler.handlers[LEAVE] = meetings.leave


async def ask_for_place(worker: Worker, uuids: Sequence[str], per_device: int | None) -> str:
    """Return the UUID of the device that the scheduler chooses for ``worker``.

    Args:
        worker: The worker.
        uuids: The UUIDs of the devices that the worker may have.
        per_device: The largest number of workers on one device; None for any number.

    Raises:
        RuntimeError: All devices have as many workers as they may have, or the scheduler runs no functions of clients.
    """
    await _install_from(worker)
    chosen: str | None = await getattr(worker.scheduler, _OP)(
        address=worker.contact_address or worker.address, name=worker.name, uuids=list(uuids), per_device=per_device
    )
    if chosen is None:  # Dask's answer to a call that the scheduler does not know
        raise RuntimeError(
            "The scheduler has no directory of tcuda's devices, and does not run functions of clients. Start it with "
            "`dask scheduler --preload tcuda.dask`."
        )
    return chosen


async def _install_from(worker: Worker) -> None:
    """Let the scheduler install the directory, unless the scheduler refuses to run functions."""
    try:
        response = await worker.scheduler.run_function(
            function=dumps(install), args=dumps(()), kwargs=dumps({}), wait=True
        )
    except ValueError:  # `distributed.scheduler.pickle` is off; a preload may have installed the directory
        return
    if response["status"] != "OK":
        raise RuntimeError(
            "The scheduler cannot keep the directory of tcuda's devices. tcuda must be installed where the scheduler "
            f"runs. The scheduler reports: {response.get('exception_text')}"
        )
