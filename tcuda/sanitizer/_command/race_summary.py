"""The summary of ``tcuda sanitize``: the first races, in a few lines each."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tcuda._base.console import print_table
from tcuda._base.messages import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

_MOST_SHOWN = 10
"""The most races and the most lines with synchronisations that a summary shows."""

_NOTHING = (
    "Warning: the program made no operation on a device that the detector could see, so that nothing is known about "
    "its races."
)

_KINDS = {
    "races": ("more race", "more races"),
    "unwritten_reads": ("more read of unwritten memory", "more reads of unwritten memory"),
    "possible": ("more possible race", "more possible races"),
}
"""The kinds of findings in their order, each with the nouns for those that are not shown."""

_ONLY_POSSIBLE = "Only possible races were found, which leave the exit status alone. With --possible they count."


class Summary:
    """The summary of a report.

    Args:
        screen: The console on which the summary is shown.
        folder: The folder from which the names of files count.
    """

    def __init__(self, screen: Console, folder: Path) -> None:
        self._screen = screen
        self._folder = os.path.join(folder, "")  # noqa: PTH118  # ends with a separator

    def show(self, report: Mapping[str, Any], *, syncs: bool, possible: bool = False) -> None:
        """Show a report.

        Args:
            report: The report.
            syncs: Whether the lines that made the host wait are shown, too.
            possible: Whether possible races count for the exit status.
        """
        failure = report["program"]["failure"]
        if failure is not None:
            self._screen.print(f"The program failed: {printable(failure)}")
        number = 1
        for kind, more in _KINDS.items():
            self._show_races(report[kind], number, more)
            number += len(report[kind])
        if number > 1:
            self._screen.print()
        if syncs:
            self._show_syncs(report["syncs"])
        self._screen.print(_total(report))
        unfinished = report["children"]["unfinished"]
        if unfinished:
            self._screen.print(
                f"{_several(unfinished, 'child process', 'child processes')} did not finish, so that later races there "
                "are missing here."
            )
        if not report["operations"]:
            self._screen.print(_NOTHING)
        if report["possible"] and not report["races"] and not report["unwritten_reads"] and not possible:
            self._screen.print(_ONLY_POSSIBLE)

    def _show_races(self, races: Sequence[Mapping[str, Any]], start: int, noun: tuple[str, str]) -> None:
        for number, race in enumerate(races[:_MOST_SHOWN], start):
            self._screen.print()
            for line in self._race(number, race):
                self._screen.print(line)
        more = len(races) - _MOST_SHOWN
        if more > 0:
            self._screen.print(f"\nand {_several(more, *noun)}; --json and --html show all")

    def _race(self, number: int, race: Mapping[str, Any]) -> Iterator[str]:
        words = race["words"]
        times = "" if race["count"] == 1 else f", {race['count']:,} times"
        yield f"{number}. {printable(words['title'])}{times}"
        for side in words["sides"]:
            source = f": {side['source']}" if side["source"] else ""
            launch = f", in the graph launched at {self._place(side['launch'])}" if side["launch"] else ""
            yield f"   {self._place(side['place'])}  {printable(side['text'] + source)}{launch}"
        places = {place["what"]: self._place(place) for place in words["places"]}
        allocated = f", allocated at {places.pop('allocated at')}" if "allocated at" in places else ""
        if words["shared"] is not None:
            yield f"   {printable(words['shared'])}{allocated}"
        for what, place in places.items():
            yield f"   {what} {place}"
        if race["processes"]:
            yield f"   in {_children(race['processes'])}"
        if words["doubt"]:
            yield f"   possible: {printable(words['doubt'])}"
        missing = words["missing"]
        if missing["call"] and missing["place"] and "kernel" not in race:
            yield f"   missing: {printable(missing['call'])} before {self._place(missing['place'])}"
        else:
            yield f"   {'missing: ' if missing['call'] else ''}{printable(missing['sentence'])}"

    def _place(self, place: Mapping[str, Any] | None) -> str:
        return "unknown line" if place is None else self._line(place["file"], place["line"])

    def _line(self, file: str, line: int) -> str:
        return f"{printable(file.removeprefix(self._folder))}:{line}"

    def _show_syncs(self, syncs: list[Mapping[str, Any]]) -> None:
        if not syncs:
            self._screen.print("No call made the host wait.")
            return
        most = sorted(syncs, key=lambda sync: -sync["count"])[:_MOST_SHOWN]
        rows = [
            (f"{sync['count']:,}", printable(sync["call"]), self._line(sync["file"], sync["line"])) for sync in most
        ]
        print_table(self._screen, ("host waited", "call", "line"), rows)
        if len(syncs) > _MOST_SHOWN:
            self._screen.print(f"and {_several(len(syncs) - _MOST_SHOWN, 'more line')}; --json and --html show all")
        self._screen.print()


def _total(report: Mapping[str, Any]) -> str:
    races, reads = report["races"], report["unwritten_reads"]
    operations = _several(report["operations"], "operation")
    suppressed = f"; {report['suppressed']:,} suppressed" if report["suppressed"] else ""
    possible = f"; {_several(len(report['possible']), 'possible race')}" if report["possible"] else ""
    if not races and not reads and not report["operations"]:
        return "No operation was watched."
    found = f"{_several(len(races), 'race')}, seen {_times(races)}," if races else "No race"
    if reads:
        unwritten = _several(len(reads), "read of unwritten memory", "reads of unwritten memory")
        found += f"{',' if not races else ''} and {unwritten}, seen {_times(reads)},"
    return f"{found} in {operations}{possible}{suppressed}."


def _times(findings: Sequence[Mapping[str, Any]]) -> str:
    return _several(sum(found["count"] for found in findings), "time")


def _children(processes: Sequence[int]) -> str:
    distinct = sorted(set(processes))
    return f"child process {distinct[0]}" if len(distinct) == 1 else f"{len(distinct):,} child processes"


def _several(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


__all__ = ["Summary"]
