"""The races that a check has found."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, overload

from tcuda._base.copying import refusing
from tcuda.sanitizer._doubt import is_possible
from tcuda.sanitizer._html import framed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tcuda.sanitizer._found import FoundRace
    from tcuda.sanitizer._race import Race


class _Tally:
    """The number of times that equal races were found.

    The detector counts each race that is told. After a race was forgotten, the detector tells and counts the race anew.
    """

    def __init__(self, found: FoundRace) -> None:
        self._found = found
        self._earlier = 0

    def add(self, found: FoundRace) -> None:
        self._earlier, self._found = self.count, found

    @property
    def count(self) -> int:
        return self._earlier + self._found.count


class Report:
    """The races that a check has found, in the order in which they were found.

    A report is an iterable of races with a length, so a report without races is false. ``str(report)`` is a text for a
    person. A race that happens several times, with the same stacks and operations, is kept once and counted. A race is
    *possible* if it is not known whether both operations use the same bytes. :attr:`possible` has the possible races,
    which are no part of the length and of the iteration. A notebook shows a report as a page.

    Attributes:
        syncs: The calls that made the host wait, as dicts with ``"call"``, ``"file"``, ``"line"`` and ``"count"``;
            empty if nothing has counted the calls.

    Example:
        >>> side = tcuda.Stream()
        >>> with tcuda.sanitizer.check(mode="collect") as report:
        ...     x = xp.ones(1000)
        ...     with tcuda.stream(side):
        ...         y = x * 2  # side does not wait for the default stream
        >>> len(report), report.count(report.races[0])
        (1, 1)
        >>> report.summary
        '1 race in 2 operations'
    """

    def __init__(self) -> None:
        self.syncs: list[dict[str, Any]] = []
        self._races: dict[Any, tuple[Race, _Tally]] = {}
        self._possible: dict[Any, tuple[Race, _Tally]] = {}
        self._suppressed: dict[Any, _Tally] = {}
        self._operations = 0
        self._running: list[Callable[[], int]] = []
        self._lock = threading.RLock()  # a finalizer may find a race while this thread adds a race

    __reduce__ = refusing("copy or pickle", "a running check may write to the report. as_dict() returns plain data.")

    @property
    def races(self) -> tuple[Race, ...]:
        """The races that are exact."""
        return tuple(race for race, _ in self._entries(self._races))

    @property
    def possible(self) -> tuple[Race, ...]:
        """The races that are only possible. ``race.doubt`` says why."""
        return tuple(race for race, _ in self._entries(self._possible))

    @property
    def operations(self) -> int:
        """The number of operations that the detector looked at."""
        return self._operations + sum(count() for count in list(self._running))

    @property
    def suppressed(self) -> int:
        """The number of races that suppressions have kept out of the report."""
        with self._lock:
            return sum(tally.count for tally in list(self._suppressed.values()))

    def count(self, race: Race) -> int:
        """Return how often a race of this report has happened.

        Args:
            race: The race.

        Raises:
            ValueError: The race is not in this report.

        Example:
            >>> side, x = tcuda.Stream(), xp.ones(1000)
            >>> with tcuda.sanitizer.check(mode="collect") as report:
            ...     for _ in range(3):
            ...         x += 1
            ...         with tcuda.stream(side):
            ...             y = x * 2  # side does not wait for the default stream
            >>> [report.count(race) for race in report.races]
            [3, 2]
        """
        for known, tally in (*self._entries(self._races), *self._entries(self._possible)):
            if known is race:
                return tally.count
        raise ValueError("The race is not in this report.")

    def __iter__(self) -> Iterator[Race]:
        return iter(self.races)

    def __len__(self) -> int:
        return len(self._races)

    @overload
    def __getitem__(self, index: int) -> Race: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Race]: ...
    def __getitem__(self, index: int | slice) -> Race | Sequence[Race]:
        return self.races[index]

    def __repr__(self) -> str:
        return f"<tcuda.sanitizer.Report: {self.summary}>"

    @property
    def summary(self) -> str:
        """A line with the number of races, of possible races, of operations and of suppressed races."""
        possible = f" and {_several(len(self._possible), 'possible race')}" if self._possible else ""
        found = f"{_several(len(self), 'race')}{possible}"
        left_out = f"; {_several(self.suppressed, 'race')} suppressed" if self.suppressed else ""
        return f"{found} in {_several(self.operations, 'operation')}{left_out}"

    def __str__(self) -> str:
        texts = []
        for race, tally in (*self._entries(self._races), *self._entries(self._possible)):
            times = f"\nThis race was found {tally.count} times." if tally.count > 1 else ""
            texts.append(f"{race}{times}\n\n")
        return f"{''.join(texts)}{self.summary}"

    def _repr_html_(self) -> str:
        """Return the page of the report for a notebook."""
        return framed(self.as_dict(), self.summary)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain data, which :mod:`json` can write.

        Returns:
            A dict with ``"version"`` (1), ``"races"`` (a list of dicts, one for each exact race), ``"possible"`` (the
            same for the possible races), ``"operations"``, ``"suppressed"`` and ``"syncs"``.

        Example:
            >>> import json
            >>> with tcuda.sanitizer.check(mode="collect") as report:
            ...     x = xp.ones(1000) * 2
            >>> data = json.loads(json.dumps(report.as_dict()))
            >>> data["races"], data["operations"]
            ([], 2)
        """
        return {
            "version": 1,
            "races": self._as_dicts(self._races),
            "possible": self._as_dicts(self._possible),
            "operations": self.operations,
            "suppressed": self.suppressed,
            "syncs": [dict(sync) for sync in self.syncs],
        }

    def _entries(self, races: dict[Any, tuple[Race, _Tally]]) -> list[tuple[Race, _Tally]]:
        with self._lock:
            return list(races.values())

    def _as_dicts(self, races: dict[Any, tuple[Race, _Tally]]) -> list[dict[str, Any]]:
        return [{**race.as_dict(), "count": tally.count} for race, tally in self._entries(races)]

    def _of_its_confidence(self, found: FoundRace) -> dict[Any, tuple[Race, _Tally]]:
        return self._possible if is_possible(found) else self._races

    def _count(self, key: Any, found: FoundRace) -> Race | None:
        """Count a race again if a race with the same key is known; return the known race."""
        with self._lock:
            entry = self._of_its_confidence(found).get(key)
            if entry is None:
                return None
            race, tally = entry
            tally.add(found)
            return race

    def _add(self, key: Any, race: Race, found: FoundRace) -> None:
        with self._lock:
            if self._count(key, found) is None:  # another thread may have added the race
                self._of_its_confidence(found)[key] = race, _Tally(found)

    def _suppress(self, key: Any, found: FoundRace) -> None:
        with self._lock:
            if key in self._suppressed:
                self._suppressed[key].add(found)
            else:
                self._suppressed[key] = _Tally(found)

    def _begin_counting(self, count: Callable[[], int]) -> None:
        self._running.append(count)

    def _end_counting(self, count: Callable[[], int]) -> None:
        if count in self._running:
            counted = count()
            self._running.remove(count)
            self._operations += counted


def _several(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
