"""Memory that a part of a program has allocated and not freed, by the line that allocated it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from tcuda._base.user_code import Place, is_user_code
from tcuda._process.ledger import ledger_if_any, release_stacks, want_stacks

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = -1
"""The device of page-locked memory, as in a snapshot."""


class AliveSite(NamedTuple):
    """A line of a program, and the memory that the line has allocated and that is still allocated.

    ``str()`` gives a line of text about the site.

    Attributes:
        device: The index of the device; -1 for page-locked memory of the host.
        bytes: The size of the allocations, in bytes.
        count: The number of allocations.
        stack: The stack of the allocations, with the innermost frame first. A frame has a ``filename``, a ``line`` and
            the ``name`` of a function. Allocations of other stacks that end at the same line are other sites.

    Example:
        >>> def load():
        ...     return xp.zeros(1000, dtype="float32")
        >>> with tcuda.memory.track(sites=True) as measured:
        ...     weights = load()
        >>> [(site.bytes, site.count) for site in measured.alive]
        [(4096, 1)]
    """

    device: int
    bytes: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which no program needs here
    stack: tuple[Place, ...]

    @property
    def site(self) -> Place | None:
        """The innermost frame in the code of the program; None without a stack."""
        return next((frame for frame in self.stack if is_user_code(frame.filename)), next(iter(self.stack), None))

    def __str__(self) -> str:
        times = "1 allocation" if self.count == 1 else f"{self.count} allocations"
        return f"{self.bytes} bytes in {times} at {self.site or 'a line that was not recorded'}"


class Watch:
    """The memory that is allocated at the start of a part of a program. Stacks are recorded until :meth:`end`."""

    def __init__(self) -> None:
        self._before = set(_blocks())
        self._ended = False
        want_stacks()

    def alive(self) -> list[AliveSite]:
        """Return the sites of the memory that was allocated since the start and is still allocated, largest first."""
        found: dict[tuple[int, tuple[Place, ...]], tuple[int, int]] = {}
        for block in set(_blocks()) - self._before:
            size, count = found.get((block.device, block.stack), (0, 0))
            found[block.device, block.stack] = (size + block.size, count + 1)
        sites = [AliveSite(device, size, count, stack) for (device, stack), (size, count) in found.items()]
        return sorted(sites, key=lambda site: (-site.bytes, site.device, site.stack))

    def end(self) -> None:
        """Record no more stacks for this part of the program; a second call does nothing."""
        if not self._ended:
            self._ended = True
            release_stacks()


class _Block(NamedTuple):
    """An allocation. An allocation that was freed, and a new one at the same address from the same line, are equal."""

    device: int
    address: int
    size: int
    stack: tuple[Place, ...]


def _blocks() -> Iterator[_Block]:
    ledger = ledger_if_any()
    if ledger is None:
        return
    segments, _ = ledger.snapshot(None, False)
    for segment in (*segments, *ledger.host_snapshot()[0]):
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                yield _Block(segment["device"], block["address"], block["size"], _stack(block["frames"]))


def _stack(frames: list[dict[str, Any]]) -> tuple[Place, ...]:
    return tuple(_frame(frame["filename"], frame["line"], frame["name"]) for frame in frames)


@functools.lru_cache(maxsize=4096)
def _frame(filename: str, line: int, name: str) -> Place:
    return Place(filename, line, name)
