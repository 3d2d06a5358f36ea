"""The late schedule: work that streams have been given and that nobody has waited for yet.

An operation waits for the operations that come before it: the earlier work of its stream, and the work that the events
stood for. Operations that nothing orders may run in any order, as on a GPU.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import OrderedDict
from typing import TYPE_CHECKING

from tcuda._base.parts import current_part

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Sequence

MOST_PENDING = 10_000
"""The most operations that are pending. The oldest operation is done when another one is added."""

_EARLY = 0.4
"""In a random order, an operation with a smaller rank is done when it is added."""

_SAME = 0.75
"""In a random order, the part of the operations that have the rank of the operation before them."""

SAME_IN_GRAPHS = 0.25
"""The same for the nodes of graphs, which are few, so that graphs are mixed more often."""


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
        has_heir: Whether another operation has taken the rank.
    """

    __slots__ = ("before", "device", "done", "has_heir", "number", "pending", "rank", "work")

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
        self.has_heir = False


class Schedule:
    """The pending operations of all devices.

    Of the operations that the host waits for and that may run now, the one that was added last runs first. So of two
    operations that nothing orders, the later one often runs before the earlier one: a reader that should have waited
    for a writer reads old contents.

    A seed other than 0 chooses a random order instead, the same in every run. There an operation often has the rank of
    the operation before it on its stream or in its branch of a graph, so that whole streams are slow or fast. The work
    of a fast stream is done at once, with the work that must come before, as if the host waited for it.

    Args:
        lock: The lock of the runtime, which is held while an operation runs. The lock is reentrant.
        seed: 0 for the order above; another number chooses a random order.
        most: The most pending operations.
    """

    def __init__(self, lock: threading.RLock, seed: int = 0, most: int = MOST_PENDING) -> None:
        self._lock = lock
        self._most = most
        self._seed = seed
        self._random = random.Random(seed) if seed else None
        self._part = ""
        self._numbers = itertools.count(1)
        self._pending: OrderedDict[int, Operation] = OrderedDict()  # a dict takes long to find its oldest entry
        self._early: list[Operation] = []

    def __len__(self) -> int:
        return len(self._pending)

    def add(
        self,
        device: int,
        work: Callable[[], object] | None,
        before: Iterable[Operation | None] = (),
        same: float = _SAME,
    ) -> Operation:
        """Add and return an operation; the caller holds the lock.

        Args:
            device: The device of the stream.
            work: A function that does the work; None if the operation only joins others.
            before: The operations that must be done before; the first is that of the same stream. None stands for no
                operation.
            same: In a random order, how likely the operation has the rank of the first one before.
        """
        number = next(self._numbers)
        earlier = [other for other in before if other is not None]
        unfinished = tuple({other: None for other in earlier if not other.done})
        rank = -number if self._random is None else self._random_rank(self._numbers_of_part(), earlier, same)
        operation = Operation(number, rank, device, work, unfinished)
        self._pending[number] = operation
        if self._random is not None and work is not None and rank < _EARLY:
            self._early.append(operation)
        return operation

    def _numbers_of_part(self) -> random.Random:
        """Return the random numbers of the part of the program that runs."""
        part = current_part()
        if self._random is None or self._part != part:
            self._part = part
            self._random = random.Random(f"{self._seed} {part}")
        return self._random

    def _random_rank(self, random: random.Random, earlier: Sequence[Operation], same: float) -> float:
        """Return the rank of an operation after the operations ``earlier``. One operation takes the rank of another."""
        rank, keeps = random.random(), random.random() < same
        if not (keeps and earlier) or earlier[0].has_heir:
            return rank
        earlier[0].has_heir = True
        return earlier[0].rank

    def joined(self, device: int, operations: Iterable[Operation | None]) -> Operation | None:
        """Return an operation that is done when ``operations`` are done; None if all are done.

        The caller holds the lock.
        """
        unfinished = [*{other: None for other in operations if other is not None and not other.done}]
        if len(unfinished) < 2:
            return unfinished[0] if unfinished else None
        return self.add(device, None, unfinished)

    def advance(self) -> None:
        """Do the work of fast streams, and the oldest operations if there are more than the limit."""
        if not self._early and len(self._pending) <= self._most:
            return
        with self._lock:
            while self._early:
                self.do([self._early.pop(0)])
            while len(self._pending) > self._most:
                self.do([next(iter(self._pending.values()))])

    def of_device(self, device: int) -> list[Operation]:
        """Return the pending operations of ``device``; the caller holds the lock."""
        return [operation for operation in list(self._pending.values()) if operation.device == device]

    def order(self, dependencies: Sequence[Iterable[int]]) -> list[int]:
        """Return an order of operations that are done together.

        Args:
            dependencies: For each operation, the places of the operations that must be done before it.
        """
        random = None if self._random is None else self._numbers_of_part()
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
