"""A race detector with its races in a list, and accesses in a short form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

READ, WRITE, BOTH = 1, 2, 3
X, Y = 0x10000, 0x20000
SIZE = 1024


def access(
    kind: int, address: int = X, size: int = SIZE, *, label: str = "", confidence: str = "exact"
) -> _core.RaceUse:
    """Return an access of ``size`` bytes."""
    return (address, 1, (size,), (1,), kind, label, confidence)


def strided(
    kind: int, address: int, itemsize: int, shape: Sequence[int], strides: Sequence[int], *, label: str = ""
) -> _core.RaceUse:
    """Return an access of the items of an array."""
    return (address, itemsize, tuple(shape), tuple(strides), kind, label)


def read(address: int = X, size: int = SIZE, *, label: str = "") -> _core.RaceUse:
    """Return a read of ``size`` bytes."""
    return access(READ, address, size, label=label)


def write(address: int = X, size: int = SIZE, *, label: str = "") -> _core.RaceUse:
    """Return a write of ``size`` bytes."""
    return access(WRITE, address, size, label=label)


class Watch:
    """A detector with two devices.

    Attributes:
        detector: The detector.
        races: The races that it has reported.
    """

    def __init__(self) -> None:
        self.races: list[_core.Race] = []
        self.detector = _core.RaceDetector(self.races.append)

    def streams(self, count: int, *, device: int = 0, blocking: bool = False) -> list[int]:
        """Announce ``count`` streams, and return their handles."""
        handles = [0x100 * (device + 1) + 2 * place for place in range(count)]
        for handle in handles:
            self.detector.stream_created(device, handle, blocking)
        return handles

    def taken(self) -> list[_core.Race]:
        """Return the races since the last call."""
        races = self.races[:]
        self.races.clear()
        return races

    def kinds(self) -> list[str]:
        """Return the kinds of the races since the last call."""
        return [race.kind for race in self.taken()]
