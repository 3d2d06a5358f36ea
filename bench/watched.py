"""A long program that the race detector watches: operations on two of 1,000 arrays, on 32 streams."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, NamedTuple

from tcuda._core import RaceDetector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda._core import Race, RaceUse

STREAMS, ARRAYS = 32, 1000
_BEGIN, _SIZE, _READ, _WRITE = 1 << 32, 4096, 1, 2


class Watched(NamedTuple):
    """The detector, and the operations of a program without races, which never end.

    Attributes:
        detector: The detector.
        operations: The arguments of ``detector.work()``, again and again.
    """

    detector: RaceDetector
    operations: Iterator[tuple[int, int, str, tuple[RaceUse, RaceUse]]]


def _array(place: int, kind: int, label: str) -> RaceUse:
    return _BEGIN + place * 2 * _SIZE, 4, (32, 32), (128, 4), kind, label


def _refuse(race: Race) -> None:
    raise AssertionError(f"a program without races has one: {race.current.operation}")


def watched(*, beside_default: bool) -> Watched:
    """Return a program in which each stream has arrays of its own.

    Args:
        beside_default: Whether the streams are blocking, and the legacy default stream uses the arrays of all of them
            in every 33rd operation.
    """
    choose = random.Random(7)
    detector = RaceDetector(_refuse)
    streams = [0x1000 + 16 * place for place in range(STREAMS)]
    for stream in streams:
        detector.stream_created(0, stream, beside_default)
    for place in range(ARRAYS):
        detector.memory_allocated(_BEGIN + place * 2 * _SIZE, _SIZE, 0, streams[place % STREAMS])
    operations = []
    for number in range(4 * ARRAYS):
        owner = choose.randrange(STREAMS)
        source, target = choose.sample(range(owner, ARRAYS, STREAMS), 2)
        stream = 0 if beside_default and number % (STREAMS + 1) == 0 else streams[owner]
        operations.append((0, stream, "add", (_array(source, _READ, "x"), _array(target, _WRITE, "out"))))
    for operation in operations:
        detector.work(*operation)
    return Watched(detector, itertools.cycle(operations))
