"""Groups of workers, and the collectives of the tasks that run on them."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from distributed import Client, Future, Worker, get_worker
from distributed.utils import sync

import tcuda
from tcuda.dask._host_collectives import HostCollectives
from tcuda.dask._lost_tasks import TASK
from tcuda.dask._mailbox import Mailbox, mailboxes_of
from tcuda.dask._meetings import JOIN, LEAVE
from tcuda.dask._nccl_collectives import EndedError, NcclCollectives, new_unique_id

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Self

OPS = ("sum", "prod", "max", "min")
"""The operations of a reduction."""


class Group(NamedTuple):
    """Workers that work together, each with a rank.

    The client makes a group by :func:`group`, and passes it to the tasks, which call :meth:`join`.

    Attributes:
        name: The name, which no other group has.
        addresses: The addresses of the workers, by rank.

    Example:
        >>> def rank_of(group):
        ...     with group.join() as ranks:
        ...         return ranks.rank, ranks.size
        >>> workers = tcuda.dask.group(client)
        >>> client.gather(workers.submit(client, rank_of))
        [(0, 2), (1, 2)]
    """

    name: str
    addresses: tuple[str, ...]

    def submit(self, client: Client, function: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Future[Any]]:
        """Start ``function(group, *args, **kwargs)`` on each worker of the group.

        If a worker dies, the future of its task has a :class:`GroupError`.

        Args:
            client: The client.
            function: A function that joins the group.
            args: More arguments of the function.
            kwargs: Keyword arguments of the function.

        Returns:
            The futures of the results, by rank.

        Example:
            >>> def times(group, factor):
            ...     with group.join() as ranks:
            ...         return ranks.rank * factor
            >>> futures = tcuda.dask.group(client).submit(client, times, 10)
            >>> client.gather(futures)
            [0, 10]
        """
        return [
            client.submit(
                function,
                self,
                *args,
                **kwargs,
                workers=[address],
                allow_other_workers=False,
                pure=False,
                key=f"{TASK}{self.name}-{rank}-{uuid.uuid4().hex}",
            )
            for rank, address in enumerate(self.addresses)
        ]

    def join(self, timeout: float = 60.0) -> Communicator:
        """Wait until the tasks on all workers of the group have joined, and return this task's communicator.

        The tasks of a group run at the same time, one on each worker. The communicator is a context manager, which
        leaves the group at the end of its block.

        Args:
            timeout: The seconds after which the tasks that wait for others get an error.

        Raises:
            ValueError: The task does not run on a worker of the group.
            RuntimeError: A worker of the group has gone, the worker has no device, or NCCL cannot make a clique.
            GroupError: A rank has gone while the clique of NCCL was made.
            TimeoutError: Not all tasks have joined in time.

        Example:
            >>> def size_of(group):
            ...     with group.join(timeout=30) as ranks:
            ...         return ranks.size
            >>> client.gather(tcuda.dask.group(client).submit(client, size_of))
            [2, 2]
        """
        worker = get_worker()
        address = worker.contact_address or worker.address
        if address not in self.addresses:
            raise ValueError(
                f"The task runs on the worker {address}, which is not in the group {self.name} of "
                f"{', '.join(self.addresses)}. Start the tasks by group.submit(client, function)."
            )
        made: Communicator = sync(worker.loop, _join, worker, self, self.addresses.index(address), _facts(), timeout)
        try:
            made._connect()
        except BaseException as error:
            made.abandon(f"its task could not join the clique of NCCL: {error}")
            raise
        return made


class Communicator:
    """The rank of a task in a group of workers, and its collectives.

    A task gets a communicator by :meth:`Group.join`, and not by a call of the class.

    All ranks call the same collectives in the same order. On GPUs, NCCL does the work on the current stream, and the
    host does not wait. Where NCCL cannot be used, which includes emulated devices, and workers that share a device, the
    data goes through Dask's connections between the workers, and the call waits for the result.

    If a worker of the group dies, or a task fails or leaves the group early, the collectives that need its rank raise
    :class:`GroupError`. A collective of NCCL that has begun is ended; its result is not valid, and the next collective
    or the end of the ``with`` block raises the error.

    Attributes:
        rank: The number of this task in the group.
        size: The number of tasks in the group.

    Example:
        >>> def total(group):
        ...     with group.join() as ranks:
        ...         x = tcuda.xp.asarray([ranks.rank + 1.0])
        ...         return ranks.all_reduce(x).item()
        >>> workers = tcuda.dask.group(client)
        >>> client.gather(workers.submit(client, total))
        [3.0, 3.0]
    """

    def __init__(self, worker: Worker, group: Group, rank: int, meeting: str, facts: Sequence[dict[str, Any]]) -> None:
        self.rank = rank
        self.size = len(group.addresses)
        self._worker = worker
        self._is_open = True
        # Before any message arrives: the news of a rank that has gone reaches a communicator that is being made, too.
        uid = facts[0]["unique_id"]
        devices = {fact["device"] for fact in facts}
        by_nccl = len(devices) == self.size and all(fact["unique_id"] for fact in facts)
        self._nccl = NcclCollectives(self.size, uid, rank) if by_nccl else None
        self._mailbox = Mailbox(worker, meeting, rank, group.addresses, self._lose_rank)
        self._host = HostCollectives(self._mailbox, rank, self.size)

    def _connect(self) -> None:
        if self._nccl is not None:
            self._by_nccl(self._nccl.connect)

    def all_reduce(self, array: Any, op: Literal["sum", "prod", "max", "min"] = "sum") -> Any:
        """Reduce the arrays of all ranks, in place, and return ``array``.

        Args:
            array: An array on the device, contiguous, of the same shape and dtype on all ranks.
            op: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``.

        Raises:
            ValueError: ``op`` is not an operation, or ``array`` is not contiguous.
            GroupError: A rank has gone.

        Example:
            >>> def largest(group):
            ...     with group.join() as ranks:
            ...         x = tcuda.xp.asarray([ranks.rank, -ranks.rank])
            ...         return ranks.all_reduce(x, "max").tolist()
            >>> client.gather(tcuda.dask.group(client).submit(client, largest))
            [[1, 0], [1, 0]]
        """
        self._check(array, op)
        if self._nccl is not None:
            self._by_nccl(self._nccl.all_reduce, array, array, op)
        else:
            _fill(array, self._host.all_reduce(_on_host(array), op))
        return array

    def broadcast(self, array: Any, root: int = 0) -> Any:
        """Copy the array of the rank ``root`` into the arrays of the others, and return ``array``.

        Args:
            array: An array on the device, contiguous, of the same shape and dtype on all ranks.
            root: The rank whose array is copied.

        Raises:
            ValueError: There is no rank ``root``, or ``array`` is not contiguous.
            GroupError: A rank has gone.

        Example:
            >>> def shared(group):
            ...     with group.join() as ranks:
            ...         x = tcuda.xp.asarray([ranks.rank + 1.0])
            ...         return ranks.broadcast(x, root=1).item()
            >>> client.gather(tcuda.dask.group(client).submit(client, shared))
            [2.0, 2.0]
        """
        self._check(array)
        if not 0 <= root < self.size:
            raise ValueError(f"root is {root}; it can be 0 to {self.size - 1}.")
        if self._nccl is not None:
            self._by_nccl(self._nccl.broadcast, array, root)
        else:
            is_root = root == self.rank
            received = self._host.broadcast(_on_host(array) if is_root else np.empty(array.size, array.dtype), root)
            if not is_root:
                _fill(array, received)
        return array

    def all_gather(self, array: Any) -> Any:
        """Return the arrays of all ranks in one new array, whose first axis is the rank.

        Args:
            array: An array on the device, contiguous, of the same shape and dtype on all ranks.

        Raises:
            ValueError: ``array`` is not contiguous.
            GroupError: A rank has gone.

        Example:
            >>> def gathered(group):
            ...     with group.join() as ranks:
            ...         x = tcuda.xp.asarray([ranks.rank, 7])
            ...         return ranks.all_gather(x).tolist()
            >>> client.gather(tcuda.dask.group(client).submit(client, gathered))
            [[[0, 7], [1, 7]], [[0, 7], [1, 7]]]
        """
        self._check(array)
        out = tcuda.xp.empty((self.size, *array.shape), array.dtype)
        if self._nccl is not None:
            self._by_nccl(self._nccl.all_gather, array, out)
        else:
            for part, received in zip(out, self._host.all_gather(_on_host(array)), strict=True):
                _fill(part, received)
        return out

    def reduce_scatter(self, array: Any, op: Literal["sum", "prod", "max", "min"] = "sum") -> Any:
        """Reduce the arrays of all ranks, and return this rank's part of the result, along the first axis.

        Args:
            array: An array on the device, contiguous, of the same shape and dtype on all ranks. The length of the first
                axis is a multiple of the number of ranks.
            op: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``.

        Raises:
            ValueError: ``op`` is not an operation, ``array`` is not contiguous, or the ranks cannot share its first
                axis equally.
            GroupError: A rank has gone.

        Example:
            >>> def part(group):
            ...     with group.join() as ranks:
            ...         return ranks.reduce_scatter(tcuda.xp.arange(4)).tolist()
            >>> client.gather(tcuda.dask.group(client).submit(client, part))
            [[0, 2], [4, 6]]
        """
        self._check(array, op)
        if not array.shape or array.shape[0] % self.size:
            raise ValueError(
                f"{self.size} ranks cannot share the first axis of an array of shape {array.shape} equally; make its "
                f"length a multiple of {self.size}."
            )
        out = tcuda.xp.empty((array.shape[0] // self.size, *array.shape[1:]), array.dtype)
        if self._nccl is not None:
            self._by_nccl(self._nccl.reduce_scatter, array, out, op)
        else:
            _fill(out, self._host.reduce_scatter(_on_host(array), op))
        return out

    def barrier(self) -> None:
        """Wait until all ranks have called the method.

        The ranks exchange messages through Dask. The call does not wait for the work of a device.

        Raises:
            GroupError: A rank has gone.

        Example:
            >>> def meet(group):
            ...     with group.join() as ranks:
            ...         ranks.barrier()  # both tasks have begun
            ...         return "met"
            >>> client.gather(tcuda.dask.group(client).submit(client, meet))
            ['met', 'met']
        """
        self._require_open()
        self._host.barrier()

    def close(self) -> None:
        """Wait for the current stream, and leave the group; a second call does nothing.

        Raises:
            GroupError: A rank has gone, and a collective of this rank may not be complete.

        Example:
            >>> def leave_early(group):
            ...     ranks = group.join()
            ...     ranks.barrier()
            ...     ranks.close()  # without a with block
            ...     return "left"
            >>> client.gather(tcuda.dask.group(client).submit(client, leave_early))
            ['left', 'left']
        """
        if not self._is_open:
            return
        if self._nccl is None:
            self._leave_now("its task has left the group", None)
            return
        try:
            tcuda.current_stream().synchronize()
        except BaseException:
            self.abandon("its task has failed")
            raise
        error = self._mailbox.error() if self._nccl.aborted else None
        self._leave_now("its task has left the group", self._nccl.calls)
        if error is not None:
            raise error

    def abandon(self, reason: str) -> None:
        """Leave the group at once, and let the collectives of all ranks fail that wait for this rank.

        Any thread may call the method. A second call does nothing.

        Args:
            reason: What the other ranks are told.

        Example:
            >>> def stop(group):
            ...     ranks = group.join()
            ...     if ranks.rank == 0:
            ...         ranks.abandon("there are no data")
            ...         return "stopped"
            ...     try:
            ...         ranks.barrier()
            ...     except tcuda.dask.GroupError:
            ...         ranks.abandon("the other rank has gone")
            ...         return "alone"
            >>> client.gather(tcuda.dask.group(client).submit(client, stop))
            ['stopped', 'alone']
        """
        if self._is_open:
            self._lose_rank(None)
            self._leave_now(reason, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
        else:
            self.abandon(f"its task has failed with {type(error).__name__}: {error}")

    def _check(self, array: Any, op: str = "sum") -> None:
        self._require_open()
        if op not in OPS:
            raise ValueError(f"op is {op!r}; it can be {', '.join(map(repr, OPS))}.")
        if not isinstance(array, tcuda.xp.ndarray):
            raise TypeError(f"The collectives take an array of tcuda.xp; got {type(array).__name__}.")
        if not array.flags.c_contiguous:
            raise ValueError("The array is not contiguous; pass tcuda.xp.ascontiguousarray(array).")

    def _require_open(self) -> None:
        if not self._is_open:
            raise RuntimeError("The communicator is closed; call join() again.")

    def _by_nccl(self, function: Callable[..., None], *args: Any) -> None:
        try:
            function(*args)
        except EndedError:
            raise self._mailbox.error() from None

    def _lose_rank(self, calls: int | None) -> None:
        if self._nccl is not None:
            self._nccl.lose_rank(calls)

    def _leave_now(self, reason: str, calls: int | None) -> None:
        self._is_open = False
        self._mailbox.close(reason)
        sync(self._worker.loop, self._leave, reason, calls)

    async def _leave(self, reason: str, calls: int | None) -> None:
        await mailboxes_of(self._worker).close(self._mailbox)
        leave = getattr(self._worker.scheduler, LEAVE)
        await leave(meeting=self._mailbox.meeting, rank=self.rank, reason=reason, calls=calls)


def group(client: Client, workers: Sequence[str] | None = None) -> Group:
    """Return a group of workers, whose tasks can use collectives.

    Args:
        client: The client.
        workers: The addresses of the workers, by rank; None for all workers, in the order of their names.

    Raises:
        ValueError: ``workers`` is empty, or names a worker that the scheduler does not have, or a worker twice.

    Example:
        >>> workers = tcuda.dask.group(client)
        >>> len(workers.addresses)
        2
    """
    known = client.run_on_scheduler(_names)
    chosen = sorted(known, key=lambda address: _order(known[address])) if workers is None else list(workers)
    unknown = [address for address in chosen if address not in known]
    if not chosen or unknown or len(set(chosen)) < len(chosen):
        raise ValueError(
            f"workers is {chosen}; it must name at least one worker, and each worker once. The scheduler has the "
            f"workers {', '.join(known) or 'none'}."
        )
    return Group(f"tcuda-group-{uuid.uuid4().hex}", tuple(chosen))


def _names(dask_scheduler: Any) -> dict[str, Any]:
    return {address: state.name for address, state in dask_scheduler.workers.items()}


def _order(name: object) -> tuple[bool, int, str]:
    """Return a key that sorts numbers before texts."""
    return (False, name, "") if isinstance(name, int) else (True, 0, str(name))


def _facts() -> dict[str, Any]:
    """Return what the other ranks must know about this rank."""
    device = str(tcuda.get_device_properties(tcuda.current_device()).uuid)
    return {"device": device, "unique_id": new_unique_id()}


async def _join(worker: Worker, group: Group, rank: int, facts: dict[str, Any], timeout: float) -> Communicator:
    """Join on the thread of the event loop, which also takes the messages."""
    mailboxes = mailboxes_of(worker)
    await mailboxes.begin(group.name)
    made: Communicator | None = None
    try:
        reply = await getattr(worker.scheduler, JOIN)(
            group=group.name, rank=rank, addresses=list(group.addresses), facts=facts, timeout=timeout
        )
        made = Communicator(worker, group, rank, reply["meeting"], reply["facts"])
    finally:
        await mailboxes.open(group.name, made._mailbox if made is not None else None)
    return made


def _on_host(array: Any) -> Any:
    """Return the elements as a vector on the host; waits for the current stream."""
    return array.get().ravel()


def _fill(array: Any, flat: Any) -> None:
    array.set(flat.reshape(array.shape))
