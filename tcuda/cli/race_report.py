"""The report of ``tcuda sanitize``: a summary for a person, JSON for programs, and a page."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tcuda._race_viz import render, site
from tcuda.cli.messages import printable
from tcuda.cli.terminal import print_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console

STDOUT = "-"
"""The name that stands for stdout in place of a file."""

_MOST_SHOWN = 10
"""The most races and the most lines with synchronisations that the summary shows."""


@dataclass(frozen=True)
class Output:
    """The places to which a report goes.

    Attributes:
        screen: The console of the summary.
        stdout: The file for JSON without a name.
        json: The file for JSON, or ``STDOUT``; None for no JSON.
        html: The page; None for no page.
        syncs: Whether the summary shows the synchronisations.
    """

    screen: Console
    stdout: TextIO
    json: str | None
    html: Path | None
    syncs: bool

    def write(self, report: Mapping[str, Any]) -> None:
        """Write the report to all places.

        Raises:
            OSError: A file cannot be written.
        """
        written = []
        if self.json == STDOUT:
            print(_json(report), file=self.stdout, flush=True)
        elif self.json is not None:
            Path(self.json).write_text(_json(report) + "\n", encoding="utf-8")
            written.append(self.json)
        if self.html is not None:
            title = " ".join(report["program"]["arguments"])
            self.html.write_text(render(report, title), encoding="utf-8")
            written.append(str(self.html))
        _show(self.screen, report, syncs=self.syncs)
        for path in written:
            self.screen.print(f"wrote {printable(path)}")


def _json(report: Mapping[str, Any]) -> str:
    return json.dumps(report, indent=2)


def _show(screen: Console, report: Mapping[str, Any], *, syncs: bool) -> None:
    failure = report["program"]["failure"]
    if failure is not None:
        screen.print(f"The program failed: {printable(failure)}")
    for number, race in enumerate(report["races"][:_MOST_SHOWN], 1):
        screen.print()
        for line in _race(number, race):
            screen.print(line)
    more = len(report["races"]) - _MOST_SHOWN
    if more > 0:
        screen.print(f"\nand {_count(more, 'more race')}; --json and --html show all")
    if report["races"]:
        screen.print()
    if syncs:
        _show_syncs(screen, report["syncs"])
    screen.print(_total(report))


def _race(number: int, race: Mapping[str, Any]) -> Iterator[str]:
    kind = "use after free" if race["use_after_free"] else race["kind"]
    times = "" if race["count"] == 1 else f", {race['count']:,} times"
    yield f"{number}. {kind}{times}"
    for access in (race["previous"], race["current"]):
        yield f"   {_place(access)}  {printable(_access(access))}"
    touched = _touched(race)
    if touched is not None:
        yield f"   both touch {touched}"
    if race["missing"]:
        yield f"   missing: {printable(race['missing'])}{_before(race['before'])}"
    else:
        yield f"   {printable(race['advice'])}"


def _access(access: Mapping[str, Any]) -> str:
    verbs = {"read": "reads", "write": "writes", "read and write": "reads and writes"}
    what = f" {access['argument']}" if access["argument"] else " memory"
    doubt = " (possibly)" if access["confidence"] == "possible" else ""
    return f"{access['operation']} {verbs[access['kind']]}{what}{doubt} on {_stream(access)}"


def _stream(access: Mapping[str, Any]) -> str:
    """Return the name of the stream of an access."""
    if access["device"] < 0:
        return "the host"
    name = access["stream_name"] or ("the default stream" if not access["stream"] else f"stream {access['stream']:#x}")
    return f"{name} of device {access['device']}"


def _place(access: Mapping[str, Any]) -> str:
    """Return the line of the program that caused an access: in a graph, the line of the launch."""
    frame = site(access["launch_stack"] or access["stack"])
    return "unknown line" if frame is None else _line(frame["filename"], frame["line"])


def _touched(race: Mapping[str, Any]) -> str | None:
    """Return the elements that both accesses touch, in words, as the access with the larger elements counts them."""
    counted = [access for access in (race["current"], race["previous"]) if access["element_range"] is not None]
    if not counted:
        return None
    access = max(counted, key=lambda access: int(access["itemsize"]))
    first, last = access["element_range"]
    noun = "byte" if access["itemsize"] == 1 and len(access["shape"]) == 1 else "element"
    where = f" of {printable(access['argument'])}" if access["argument"] else ""
    return f"{noun} {first:,}{where}" if first == last else f"{noun}s {first:,} to {last:,}{where}"


def _before(before: Mapping[str, Any] | None) -> str:
    return f" before {_line(before['file'], before['line'])}" if before else ""


def _line(file: str, line: int) -> str:
    return f"{printable(_shorter(file))}:{line}"


def _shorter(file: str) -> str:
    """Return the path of ``file`` from the current folder, if ``file`` is in that folder."""
    try:
        here = os.path.join(os.getcwd(), "")  # noqa: PTH109, PTH118
    except OSError:  # the program has removed the folder
        return file
    return file.removeprefix(here)


def _show_syncs(screen: Console, syncs: list[Mapping[str, Any]]) -> None:
    if not syncs:
        screen.print("No call made the host wait.")
        return
    most = sorted(syncs, key=lambda sync: -sync["count"])
    print_table(
        screen,
        ("host waited", "call", "line"),
        [
            (f"{sync['count']:,}", printable(sync["call"]), _line(sync["file"], sync["line"]))
            for sync in most[:_MOST_SHOWN]
        ],
    )
    if len(syncs) > _MOST_SHOWN:
        screen.print(f"and {_count(len(syncs) - _MOST_SHOWN, 'more line')}; --json and --html show all")
    screen.print()


def _total(report: Mapping[str, Any]) -> str:
    races = report["races"]
    operations = _count(report["operations"], "operation")
    suppressed = f"; {_count(report['suppressed'], 'race')} suppressed" if report["suppressed"] else ""
    if not races:
        return f"No race in {operations}{suppressed}."
    times = sum(race["count"] for race in races)
    return f"{_count(len(races), 'race')}, seen {_count(times, 'time')}, in {operations}{suppressed}."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


__all__ = ["STDOUT", "Output"]
