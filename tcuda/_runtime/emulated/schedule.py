"""The late schedule: work that streams have been given and that nobody has waited for yet.

An operation waits for the operations that come before it: the earlier work of its stream, and the work that the events
stood for. Operations that nothing orders may run in any order, as on a GPU.
"""

from __future__ import annotations

import heapq
import itertools
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Sequence

MOST_PENDING = 10_000
"""The most operations that are pending. The oldest operation is done when another one is added."""


class Operation:
    """Work on a device.

    Args:
        number: The place of the operation in the order in which the program gave the streams their work.
        rank: The operation with the smallest rank runs first, if several may run.
        device: The device of the stream.
        work: A function that does the work; None if the operation only joins others.
        before: The operations that must be done before.

    Attributes:
        number: The place in the order of the program.
        pending: Whether the work was not begun.
        done: Whether the work has ended, also with an error.
    """

    __slots__ = ("before", "device", "done", "number", "pending", "rank", "work")

    def __init__(
        self,
        number: int,
        rank: float,
        device: int,
        work: Callable[[], object] | None,
        before: tuple[Operation, ...],
    ) -> None:
        self.number = number
        self.rank = rank
        self.device = device
        self.work = work
        self.before = before
        self.pending = True
        self.done = False


class Schedule:
    """The pending operations of all devices.

    Of the operations that the host waits for and that may run now, the one that was added last runs first. So of two
    operations that nothing orders, the later one often runs before the earlier one: a reader that should have waited
    for a writer reads old contents. A seed other than 0 chooses a random order instead, the same in every run.

    Args:
        lock: The lock of the runtime, which is held while an operation runs. The lock is reentrant.
        seed: 0 for the order above; another number chooses a random order.
        most: The most pending operations.
    """

    def __init__(self, lock: threading.RLock, seed: int = 0, most: int = MOST_PENDING) -> None:
        self._lock = lock
        self._most = most
        self._random = random.Random(seed) if seed else None
        self._numbers = itertools.count(1)
        self._pending: dict[int, Operation] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, device: int, work: Callable[[], object] | None, before: Iterable[Operation | None] = ()) -> Operation:
        """Add and return an operation; the caller holds the lock.

        Args:
            device: The device of the stream.
            work: A function that does the work; None if the operation only joins others.
            before: The operations that must be done before. None stands for no operation.
        """
        number = next(self._numbers)
        rank = -number if self._random is None else self._random.random()
        unfinished = tuple({other: None for other in before if other is not None and not other.done})
        operation = Operation(number, rank, device, work, unfinished)
        self._pending[number] = operation
        return operation

    def joined(self, device: int, operations: Iterable[Operation | None]) -> Operation | None:
        """Return an operation that is done when ``operations`` are done; None if all are done.

        The caller holds the lock.
        """
        unfinished = [*{other: None for other in operations if other is not None and not other.done}]
        if len(unfinished) < 2:
            return unfinished[0] if unfinished else None
        return self.add(device, None, unfinished)

    def shorten(self) -> None:
        """Do the oldest operations if there are more than the limit."""
        while len(self._pending) > self._most:
            with self._lock:
                self.do([next(iter(self._pending.values()))])

    def of_device(self, device: int) -> list[Operation]:
        """Return the pending operations of ``device``; the caller holds the lock."""
        return [operation for operation in list(self._pending.values()) if operation.device == device]

    def order(self, dependencies: Sequence[Iterable[int]]) -> list[int]:
        """Return an order of operations that are done together.

        Args:
            dependencies: For each operation, the places of the operations that must be done before it.
        """
        random = self._random
        ranks = [-place if random is None else random.random() for place in range(len(dependencies))]
        missing: list[int] = []
        followers: list[list[int]] = [[] for _ in dependencies]
        for place, before in enumerate(dependencies):
            earlier = set(before)
            missing.append(len(earlier))
            for other in earlier:
                followers[other].append(place)
        ready = [(ranks[place], place) for place, count in enumerate(missing) if not count]
        heapq.heapify(ready)
        ordered = []
        while ready:
            _, place = heapq.heappop(ready)
            ordered.append(place)
            for follower in followers[place]:
                missing[follower] -= 1
                if not missing[follower]:
                    heapq.heappush(ready, (ranks[follower], follower))
        return ordered

    def pending(self) -> list[Operation]:
        """Return all pending operations; the caller holds the lock."""
        return [*self._pending.values()]

    def do(self, operations: Iterable[Operation | None]) -> bool:
        """Do ``operations``, and first the operations for which these wait; do nothing else.

        An operation counts as done when its work begins, so no work is done twice. If the work raises an error, the
        call raises the error, and the operations that follow stay pending.

        Returns:
            Whether all ``operations`` are done. A finalizer may ask for the operation during which the finalizer runs,
            and this operation cannot be done before the finalizer returns.
        """
        wanted = [operation for operation in operations if operation is not None and not operation.done]
        if not wanted:
            return True
        with self._lock:
            self._do_with_ancestors(wanted)
        return all(operation.done for operation in wanted)

    def _do_with_ancestors(self, wanted: list[Operation]) -> None:
        missing = wanted[:]
        waiting: dict[Operation, int] = {}
        followers: dict[Operation, list[Operation]] = {}
        ready: list[tuple[float, int, Operation]] = []
        while missing:
            operation = missing.pop()
            if operation in waiting:
                continue
            count = 0
            for other in operation.before:
                if not other.done:
                    count += 1
                    followers.setdefault(other, []).append(operation)
                    missing.append(other)
            waiting[operation] = count
            if not count:
                ready.append((operation.rank, operation.number, operation))
        heapq.heapify(ready)
        while ready:
            operation = heapq.heappop(ready)[2]
            if operation.pending:
                self._run(operation)
            if not operation.done:  # the operation runs now, and this call is made by a finalizer during its work
                continue
            for follower in followers.get(operation, ()):
                waiting[follower] -= 1
                if not waiting[follower]:
                    heapq.heappush(ready, (follower.rank, follower.number, follower))

    def _run(self, operation: Operation) -> None:
        work = operation.work
        operation.pending = False
        try:
            if work is not None:
                work()
        finally:
            operation.done = True
            operation.work, operation.before = None, ()
            self._pending.pop(operation.number, None)
