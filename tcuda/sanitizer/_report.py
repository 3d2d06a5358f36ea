"""What a check has found: races, and reads of unwritten memory."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, overload

from tcuda._base.copying import refusing
from tcuda.sanitizer import _words
from tcuda.sanitizer._causes import add_causes, causes_of, mends_of
from tcuda.sanitizer._doubt import is_possible
from tcuda.sanitizer._html import framed
from tcuda.sanitizer._race import Race
from tcuda.sanitizer._unwritten_read import UnwrittenRead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tcuda.sanitizer._found import FoundRace
    from tcuda.sanitizer._race import Finding


class _Tally:
    """The number of times that equal findings were made.

    The detector counts each race that it reports. After a race was forgotten, the detector counts the race anew.
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
    """The findings of a check, in the order in which they were found: races, and reads of unwritten memory.

    A report is an iterable of findings with a length, so a report without findings is false. :attr:`races` has the
    races among them, and :attr:`unwritten_reads` the others. ``str(report)`` is a text for a person, which has findings
    that one call mends as one. Findings with the same words are kept once and counted. A race is *possible* if it is
    not known whether both operations use the same bytes. :attr:`possible` has the possible races, which are no part of
    the length and of the iteration. A notebook shows a report as a page.

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
        '1 race, seen 1 time, in 2 operations'
    """

    def __init__(self) -> None:
        self.syncs: list[dict[str, Any]] = []
        self._exact: dict[Any, tuple[Finding, _Tally]] = {}
        self._possible: dict[Any, tuple[Finding, _Tally]] = {}
        self._worded: dict[Any, Finding] = {}
        self._suppressed: dict[Any, _Tally] = {}
        self._operations = 0
        self._running: list[Callable[[], int]] = []
        self._lock = threading.RLock()  # a finalizer may find a race while this thread adds a race

    __reduce__ = refusing("copy or pickle", "a running check may write to the report. as_dict() returns plain data.")

    @property
    def races(self) -> tuple[Race, ...]:
        """The races that are exact."""
        return tuple(found for found in self if isinstance(found, Race))

    @property
    def unwritten_reads(self) -> tuple[UnwrittenRead, ...]:
        """The reads of memory that nothing has written."""
        return tuple(found for found in self if isinstance(found, UnwrittenRead))

    @property
    def possible(self) -> tuple[Race, ...]:
        """The races that are only possible. ``race.doubt`` says why."""
        return tuple(race for race, _ in self._counted(self._possible) if isinstance(race, Race))

    @property
    def operations(self) -> int:
        """The number of operations that the detector looked at."""
        return self._operations + sum(count() for count in list(self._running))

    @property
    def suppressed(self) -> int:
        """How many races and reads suppressions have kept out of the report."""
        with self._lock:
            return sum(tally.count for tally in list(self._suppressed.values()))

    def count(self, finding: Finding) -> int:
        """Return how often a race or a read of this report has happened.

        Args:
            finding: The race or the read.

        Raises:
            ValueError: The finding is not in this report.

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
        for known, count in (*self._counted(self._exact), *self._counted(self._possible)):
            if known is finding:
                return count
        raise ValueError("The finding is not in this report.")

    def __iter__(self) -> Iterator[Finding]:
        return (found for found, _ in self._counted(self._exact))

    def __len__(self) -> int:
        return len(self._counted(self._exact))

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Finding]: ...
    def __getitem__(self, index: int | slice) -> Finding | Sequence[Finding]:
        return tuple(self)[index]

    def __repr__(self) -> str:
        return f"<tcuda.sanitizer.Report: {self.summary}>"

    @property
    def summary(self) -> str:
        """A line with the numbers of races, of reads of unwritten memory, of operations and of suppressed findings."""
        counted = self._counted(self._exact)
        return _words.total(
            races=[count for found, count in counted if isinstance(found, Race)],
            reads=[count for found, count in counted if isinstance(found, UnwrittenRead)],
            possible=len(self._counted(self._possible)),
            operations=self.operations,
            suppressed=self.suppressed,
        )

    def __str__(self) -> str:
        texts = []
        for kind in (self._exact, self._possible):
            counted = self._counted(kind)
            data = [found.as_dict() for found, _ in counted]
            for cause in causes_of(data):
                found, count = counted[cause[0]]
                noun = "race" if isinstance(found, Race) else "read"
                times = f"\nThis {noun} was found {count:,} times." if count > 1 else ""
                mends = mends_of(data, cause)
                texts.append(f"{found}{f'{_words.INDENT}{mends}' if mends else ''}{times}\n\n")
        return f"{''.join(texts)}{self.summary}"

    def _repr_html_(self) -> str:
        """Return the page of the report for a notebook."""
        return framed(self.as_dict(), self.summary)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain data, which :mod:`json` can write.

        Returns:
            A dict with ``"version"`` (1), ``"races"`` (a list of dicts, one for each exact race), ``"unwritten_reads"``
            and ``"possible"`` (the same for the reads and for the possible races), ``"operations"``, ``"suppressed"``
            and ``"syncs"``. ``"causes"`` has a dict for each call that is missing, with the number of findings that
            the call mends; ``"cause"`` of a finding is the number of its cause, from 1.

        Example:
            >>> import json
            >>> with tcuda.sanitizer.check(mode="collect") as report:
            ...     x = xp.ones(1000) * 2
            >>> data = json.loads(json.dumps(report.as_dict()))
            >>> data["races"], data["operations"]
            ([], 2)
        """
        report = {
            "version": 1,
            "races": self._as_dicts(self._exact, Race),
            "unwritten_reads": self._as_dicts(self._exact, UnwrittenRead),
            "possible": self._as_dicts(self._possible, Race),
            "operations": self.operations,
            "suppressed": self.suppressed,
            "syncs": [dict(sync) for sync in self.syncs],
        }
        return add_causes(report)

    def _counted(self, findings: dict[Any, tuple[Finding, _Tally]]) -> list[tuple[Finding, int]]:
        counted: dict[int, tuple[Finding, int]] = {}
        with self._lock:
            for found, tally in findings.values():
                counted[id(found)] = found, counted.get(id(found), (found, 0))[1] + tally.count
        return list(counted.values())

    def _as_dicts(self, findings: dict[Any, tuple[Finding, _Tally]], kind: type[Finding]) -> list[dict[str, Any]]:
        counted = self._counted(findings)
        return [{**found.as_dict(), "count": count} for found, count in counted if isinstance(found, kind)]

    def _of_its_confidence(self, found: FoundRace) -> dict[Any, tuple[Finding, _Tally]]:
        return self._possible if is_possible(found) else self._exact

    def _count(self, key: Any, found: FoundRace) -> Finding | None:
        """Count a finding again if one with the same key is known; return the known finding."""
        with self._lock:
            entry = self._of_its_confidence(found).get(key)
            if entry is None:
                return None
            known, tally = entry
            tally.add(found)
            return known

    def _add(self, key: Any, finding: Finding, found: FoundRace) -> Finding:
        """Add a finding; return the finding, or an earlier one with the same words, which stands for both."""
        with self._lock:
            known = self._count(key, found)
            if known is not None:  # another thread may have added the finding
                return known
            data = finding.as_dict()
            kept = self._worded.setdefault(repr((data["kind"], data["words"])), finding)
            self._of_its_confidence(found)[key] = kept, _Tally(found)
            return kept

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
