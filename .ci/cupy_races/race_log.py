"""The logs of processes that run tests under the race detector, and what several logs tell together.

A log has a line of JSON for each event, which is written at once. If the process is killed, the log has the results up
to then, and the test in which the process was.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_MOST_GROUPS = 30
_KINDS = {"races": "race", "possible": "possible race"}


class RaceLog:
    """A log to write to.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", buffering=1)

    def add(self, **event: object) -> None:
        """Add an event: ``collected`` tests, the begin of a test (``begun``), or the result of a ``test``."""
        self._file.write(json.dumps(event) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@dataclass
class Results:
    """The results of the logs of several processes, together.

    Attributes:
        collected: The numbers of tests that the processes have collected; one number if all have the same tests.
        orders: Hashes of the names of the tests in their order; one hash if all processes have the same order.
        begins: The times of ``time.monotonic()`` at which the processes began their first tests.
        tests: The number of tests that were checked.
        operations: The number of operations of these tests.
        suppressed: The number of races that suppressions have kept out.
        ran: The tests that have ended, and the seconds that each took.
        failed: The tests that failed.
        unfinished: The tests that have begun and not ended, by the log of the process.
        found: A dict for each test with races: the test, the exact races, and the possible races.
    """

    collected: set[int] = field(default_factory=set)
    orders: set[str] = field(default_factory=set)
    begins: list[float] = field(default_factory=list)
    tests: int = 0
    operations: int = 0
    suppressed: int = 0
    ran: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    unfinished: dict[Path, str] = field(default_factory=dict)
    found: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, logs: Iterable[Path]) -> Results:
        """Read the logs. A process that has not collected its tests yet has no log."""
        made = cls()
        for path in logs:
            if path.exists():
                made._read(path)
        return made

    def _read(self, path: Path) -> None:
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            if not line.endswith("\n"):  # the process was killed while it wrote the line
                return
            event = json.loads(line)
            if "collected" in event:
                self.collected.add(event["collected"])
                self.orders.add(event["order"])
                self.begins.append(event["time"])
            elif "begun" in event:
                self.unfinished[path] = event["begun"]
            else:
                self.unfinished.pop(path, None)
                self._add(event)

    def _add(self, event: dict[str, Any]) -> None:
        self.ran[event["test"]] = event["seconds"]
        if event["failed"]:
            self.failed.append(event["test"])
        if event["checked"]:
            self.tests += 1
            self.operations += event["operations"]
            self.suppressed += event["suppressed"]
        if any(event[kind] for kind in _KINDS):
            self.found.append({name: event[name] for name in ("test", *_KINDS)})

    def as_dict(self) -> dict[str, Any]:
        """Return the results as plain data."""
        return {
            "collected": max(self.collected, default=0),
            "tests": self.tests,
            "operations": self.operations,
            "suppressed": self.suppressed,
            "ran": self.ran,
            "failed": self.failed,
            "unfinished": sorted(self.unfinished.values()),
            "found": self.found,
        }

    def lines(self) -> Iterator[str]:
        """Yield the lines of a summary: equal races of several tests share a line."""
        tests = f"{self.tests:,} of {several(max(self.collected, default=0), 'test')}"
        left_out = f"; {several(self.suppressed, 'race')} suppressed" if self.suppressed else ""
        yield f"The race detector checked {tests} with {several(self.operations, 'operation')}{left_out}."
        for kind, noun in _KINDS.items():
            groups: Counter[tuple[str, ...]] = Counter()
            examples: dict[tuple[str, ...], str] = {}
            racy = set()
            for found in self.found:
                for race in found[kind]:
                    group = race["kind"], race["previous"]["operation"], race["current"]["operation"]
                    groups[group] += 1
                    examples.setdefault(group, found["test"])
                    racy.add(found["test"])
            yield f"{several(sum(groups.values()), noun)} in {several(len(racy), 'test')}"
            for group, count in groups.most_common(_MOST_GROUPS):
                name, previous, current = group
                yield f"  {count:,} x {name}: {previous}, then {current}; first in {examples[group]}"


def several(count: int, noun: str) -> str:
    """Return the count with the noun, in the plural unless the count is 1."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
