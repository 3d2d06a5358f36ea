"""The places to which the report of ``tcuda sanitize`` goes: the terminal, a file of JSON, and a page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from tcuda._base.files import write_file
from tcuda._base.messages import printable
from tcuda._base.terminal import working
from tcuda.sanitizer._command.defaults import STDOUT
from tcuda.sanitizer._command.race_summary import Summary
from tcuda.sanitizer._page import render

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rich.console import Console


@dataclass(frozen=True)
class Output:
    """The places to which a report goes.

    Attributes:
        screen: The console of the summary.
        stdout: The file for JSON without a name.
        json: The file for JSON, or ``STDOUT``; None for no JSON.
        html: The page; None for no page.
        syncs: Whether the summary shows the synchronisations.
        possible: Whether possible races count for the exit status.
        folder: The folder from which the names of files count. The program may change the current folder.
    """

    screen: Console
    stdout: TextIO
    json: str | None
    html: Path | None
    syncs: bool
    possible: bool
    folder: Path

    def write(self, report: Mapping[str, Any]) -> None:
        """Write the report to all places.

        Raises:
            OSError: A file cannot be written.
        """
        is_open = not self.screen.file.closed  # the program may have closed stderr
        if is_open:
            Summary(self.screen, self.folder).show(report, syncs=self.syncs, possible=self.possible)
        written = []
        if self.json == STDOUT:
            print(_json(report), file=self.stdout, flush=True)
        elif self.json is not None:
            write_file(self.folder / self.json, (_json(report) + "\n").encode())
            written.append(self.json)
        if self.html is not None:
            title = " ".join(report["program"]["arguments"])
            with working(f"writing {printable(str(self.html))}"):
                write_file(self.folder / self.html, render(report, title).encode())
            written.append(str(self.html))
        if is_open:
            for path in written:
                self.screen.print(f"wrote {printable(path)}")


def _json(report: Mapping[str, Any]) -> str:
    return json.dumps(report, indent=2)


__all__ = ["Output"]
