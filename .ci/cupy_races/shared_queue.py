"""The order in which several processes take tests, each test once."""

from __future__ import annotations

import fcntl
import random
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

T = TypeVar("T")
_SEED = 0


class SharedQueue:
    """The numbers 0, 1, 2 and so on, each of which one of several processes takes, until the time is over.

    Args:
        path: A file that the processes share.
        deadline: The time of ``time.monotonic()`` from which on no place is handed out. All processes of a machine have
            the same clock.
    """

    def __init__(self, path: Path, deadline: float) -> None:
        self._path = path
        self._deadline = deadline

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self._deadline

    def take(self) -> int | None:
        """Return the next place, or None if the time is over."""
        if self.is_over:
            return None
        with self._path.open("a+", encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # ends with the file, also if the process is killed
            file.seek(0)
            place = int(file.read() or 0)
            file.truncate(0)
            file.write(str(place + 1))
        return place


def in_shuffled_order(values: Iterable[T], key: Callable[[T], str]) -> list[T]:
    """Return the values in an order that looks random and depends only on their keys."""
    ordered = sorted(values, key=key)
    random.Random(_SEED).shuffle(ordered)
    return ordered
