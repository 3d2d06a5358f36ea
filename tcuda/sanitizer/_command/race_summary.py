"""The summary of ``tcuda sanitize``: the first races, in a few lines each."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tcuda._base.console import print_table
from tcuda._base.messages import printable
from tcuda.sanitizer._causes import causes_of, mends_of
from tcuda.sanitizer._words import lines_of, place_text, several, total_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
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
            number += self._show_races(report[kind], number, more)
        if number > 1:
            self._screen.print()
        if syncs:
            self._show_syncs(report["syncs"])
        self._screen.print(total_of(report))
        unfinished = report["children"]["unfinished"]
        if unfinished:
            self._screen.print(
                f"{several(unfinished, 'child process', 'child processes')} did not finish, so that later races there "
                "are missing here."
            )
        if not report["operations"]:
            self._screen.print(_NOTHING)
        if report["possible"] and not report["races"] and not report["unwritten_reads"] and not possible:
            self._screen.print(_ONLY_POSSIBLE)

    def _show_races(self, races: Sequence[Mapping[str, Any]], start: int, noun: tuple[str, str]) -> int:
        """Show the first finding of each cause, and return the number of causes."""
        causes = causes_of(races)
        for number, cause in enumerate(causes[:_MOST_SHOWN], start):
            title, *lines = lines_of(races[cause[0]], self._folder)
            self._screen.print(f"\n{number}. {printable(title)}")
            for line in lines:
                self._screen.print(f"   {'  '.join(map(printable, line.strip().split('  ')))}")
            mends = mends_of(races, cause, self._folder)
            if mends:
                self._screen.print(f"   {printable(mends)}")
        more = sum(map(len, causes[_MOST_SHOWN:]))
        if more:
            self._screen.print(f"\nand {several(more, *noun)}; --json and --html show all")
        return len(causes)

    def _show_syncs(self, syncs: list[Mapping[str, Any]]) -> None:
        if not syncs:
            self._screen.print("No call made the host wait.")
            return
        most = sorted(syncs, key=lambda sync: -sync["count"])[:_MOST_SHOWN]
        rows = [
            (f"{sync['count']:,}", printable(sync["call"]), printable(place_text(sync, self._folder))) for sync in most
        ]
        print_table(self._screen, ("host waited", "call", "line"), rows)
        if len(syncs) > _MOST_SHOWN:
            self._screen.print(f"and {several(len(syncs) - _MOST_SHOWN, 'more line')}; --json and --html show all")
        self._screen.print()


__all__ = ["Summary"]
