"""Programs on several streams at once, for the measurement of the memory that allocators hold.

A program calls a player, which allocates memory and uses streams by the calls of one library. So every library runs the
same program. The programs are the same in every run.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Protocol

import numpy as np
from workloads import FREED

if TYPE_CHECKING:
    from collections.abc import Callable

    from workloads import Events

LOADER, COMPUTE, COMMUNICATION = range(3)
"""The numbers of the streams of a program."""

STREAMS = 3

_SEED = 0
_MIB = 1 << 20


class Player(Protocol):
    """The calls of a library. Streams are numbers, and so are memory and marks."""

    def take(self, stream: int, size: int) -> int:
        """Allocate memory on a stream, and return the number of the memory."""

    def use(self, memory: int, stream: int) -> None:
        """Note that another stream works on memory until the memory is freed."""

    def free(self, *memory: int) -> None:
        """Free memory."""

    def work(self, stream: int) -> None:
        """Give a stream work that takes longer than the calls of the host until the next work."""

    def wait(self, stream: int, other: int) -> None:
        """Let a stream wait for the work that another stream has by now."""

    def mark(self, stream: int) -> int:
        """Mark the work that a stream has by now, and return the number of the mark."""

    def synchronize(self, mark: int) -> None:
        """Wait until the marked work is complete."""


def train_sharded(player: Player, layers: int = 12, width: int = 1024, steps: int = 8, shards: int = 8) -> None:
    """Train a transformer whose weights are spread over ``shards`` devices, on batches whose size changes.

    One stream loads the next batch. One stream computes. One stream gathers the weights of a layer before the layer
    needs them, and reduces the gradients behind the layer. The host runs at most two layers ahead of the device.
    """
    random = np.random.default_rng(_SEED)
    take, use, free, work, wait = player.take, player.use, player.free, player.work, player.wait
    weights = 4 * 12 * width * width
    for _ in range(layers):
        for _ in range(3):  # the weights and two moments
            take(COMPUTE, weights // shards)
    marks: list[int] = []

    def load() -> tuple[int, int]:
        length = int(random.integers(96, 512))
        work(LOADER)
        text = take(LOADER, 8 * 16 * length)
        pixels = take(LOADER, 24 * length * width)
        batch = take(LOADER, 4 * 24 * length * width)
        free(text, pixels)
        return batch, length

    def gathered(places: list[int]) -> int:
        if len(marks) >= 2:
            player.synchronize(marks[-2])
        work(COMMUNICATION)
        parts = [take(COMMUNICATION, weights * share // 12) for share in places]
        whole = take(COMMUNICATION, weights)
        free(*parts)
        wait(COMPUTE, COMMUNICATION)
        use(whole, COMPUTE)
        work(COMPUTE)
        return whole

    batch, length = load()
    for _ in range(steps):
        used, used_length = batch, length
        wait(COMPUTE, LOADER)
        use(used, COMPUTE)
        batch, length = load()
        hidden, scores = 4 * 8 * used_length * width, 4 * 8 * 16 * used_length * used_length // 4
        saved = []
        for _ in range(layers):
            whole = gathered([1, 2])
            kept = [take(COMPUTE, size) for size in (hidden, 3 * hidden, scores)]
            temporary = [take(COMPUTE, scores), take(COMPUTE, scores)]
            kept += [take(COMPUTE, hidden), take(COMPUTE, 4 * hidden)]
            free(*temporary)
            workspace = take(COMPUTE, 8 * _MIB)
            kept.append(take(COMPUTE, hidden // 4))
            free(workspace, whole)
            saved.append(kept)
            marks.append(player.mark(COMPUTE))
        reduced = []
        flowing = take(COMPUTE, hidden)
        while saved:
            whole = gathered([2])
            kept = saved.pop()
            gradients = take(COMPUTE, weights)
            temporary = [take(COMPUTE, 4 * hidden), take(COMPUTE, scores)]
            free(*kept[3:])
            before, flowing = flowing, take(COMPUTE, hidden)
            free(*temporary, *kept[:3], before, whole)
            wait(COMMUNICATION, COMPUTE)
            use(gradients, COMMUNICATION)
            work(COMMUNICATION)
            shard = take(COMMUNICATION, weights // shards)
            reduced.append(shard)
            free(gradients)
            marks.append(player.mark(COMMUNICATION))
        free(flowing)
        wait(COMPUTE, COMMUNICATION)
        for shard in reduced:
            use(shard, COMPUTE)
            free(take(COMPUTE, weights // shards), take(COMPUTE, weights // shards))
            free(shard)
        free(used)
        player.synchronize(player.mark(COMPUTE))
    free(batch)


class Recorder:
    """A player that records the events of a program, as if all memory were on one stream."""

    def __init__(self) -> None:
        self.events: Events = []
        self._made = itertools.count()

    def take(self, stream: int, size: int) -> int:
        number = next(self._made)
        self.events.append((number, size))
        return number

    def free(self, *memory: int) -> None:
        self.events += ((number, FREED) for number in memory)

    def use(self, memory: int, stream: int) -> None: ...

    def work(self, stream: int) -> None: ...

    def wait(self, stream: int, other: int) -> None: ...

    def mark(self, stream: int) -> int:
        return 0

    def synchronize(self, mark: int) -> None: ...


def recorded(program: Callable[[Player], None]) -> Events:
    """Return the allocations and the frees of a program."""
    recorder = Recorder()
    program(recorder)
    return recorder.events


PROGRAMS: dict[str, Callable[[Player], None]] = {"train_sharded": train_sharded}
"""The programs by name."""
