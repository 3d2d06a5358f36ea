"""Races that a test makes by telling the detector of work, without work on a device."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import tcuda

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda import _core

READ, WRITE = 1, 2
BYTES = 64
ADDRESS = 1 << 60  # above all memory that the process has
_places = itertools.count(1)


def detector() -> _core.RaceDetector:
    """Return the detector of the process."""
    from tcuda.sanitizer import _detector

    assert _detector._started is not None
    return _detector._started.detector


def access(place: int = 0, kind: int = WRITE, label: str = "x", *, confidence: str = "exact") -> tuple[object, ...]:
    """Return an access to the array with the number ``place``."""
    return ADDRESS + place * 4096, 1, (BYTES,), (1,), kind, label, confidence


def tell(stream: tcuda.Stream, name: str, *accesses: tuple[object, ...]) -> None:
    """Tell the detector of an operation."""
    detector().work(stream.device_index, stream.cuda_stream, name, accesses)


def race(arrays: int = 1, name: str = "add", *, possible: Sequence[int] = ()) -> None:
    """Make a race between two new streams in new arrays; a loop in the caller makes the same race again.

    The second access to an array whose number is in ``possible`` is only possible.
    """
    main, side = tcuda.Stream(), tcuda.Stream()
    places = [next(_places) for _ in range(arrays)]
    confidences = ["possible" if number in possible else "exact" for number in range(arrays)]
    tell(main, "fill", *(access(place, label=f"x{number}") for number, place in enumerate(places)))
    tell(
        side,
        name,
        *(access(place, label=f"x{number}", confidence=confidences[number]) for number, place in enumerate(places)),
    )
