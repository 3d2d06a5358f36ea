"""The places to which the report of ``tcuda sanitize`` goes: the terminal, GitHub, and files of four formats."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from tcuda._base.files import write_file
from tcuda._base.messages import printable, send_to_nowhere
from tcuda._base.outputs import PAGE, Kind, require_free
from tcuda._base.terminal import working
from tcuda.sanitizer._command.defaults import STDOUT
from tcuda.sanitizer._command.race_summary import Summary
from tcuda.sanitizer._formats import TOOL, github_lines, junit, runs_on_github, sarif
from tcuda.sanitizer._page import render

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from rich.console import Console

_GENERATOR = "generator"

REPORT = Kind("report", b"{", f'"{_GENERATOR}": "{TOOL}"'.encode())
"""The files of JSON, which name the command first."""

SARIF = Kind("SARIF file", b"{", f'"name": "{TOOL}"'.encode())
JUNIT = Kind("JUnit file", b"<?xml", f'<testsuites name="{TOOL}"'.encode())


@dataclass(frozen=True)
class Output:
    """The places to which a report goes.

    Attributes:
        screen: The console of the summary.
        stdout: The file for JSON without a name.
        json: The file for JSON, or ``STDOUT``; None for no JSON.
        html: The page; None for no page.
        sarif: The file for SARIF; None for no such file.
        junit: The file for JUnit; None for no such file.
        syncs: Whether the summary shows the synchronisations.
        possible: Whether possible races count for the exit status.
        folder: The folder from which the names of files count. The program may change the current folder.
    """

    screen: Console
    stdout: TextIO
    json: str | None
    html: Path | None
    sarif: Path | None
    junit: Path | None
    syncs: bool
    possible: bool
    folder: Path

    def write(self, report: Mapping[str, Any]) -> None:
        """Write the report to all places, the files first. A reader of stdout or stderr that is gone is no error.

        Raises:
            OSError: A file cannot be written.
            ValueError: The program has made a file of its own with the name of a file of the report.
        """
        written, failures = [], []
        for name, kind, content in self._files(report):
            try:
                with working(f"writing {printable(name)}"):
                    require_free(self.folder / name, kind)  # the program may have made the file itself
                    write_file(self.folder / name, content())
                written.append(name)
            except (OSError, ValueError) as error:  # the other file and the summary are written, too
                failures.append(error)
        if self.json == STDOUT:
            try:
                print(_json(report), file=self.stdout, flush=True)
            except BrokenPipeError:
                send_to_nowhere(self.stdout.fileno())
        if not self.screen.file.closed:  # the program may have closed stderr
            Summary(self.screen, self.folder).show(report, syncs=self.syncs, possible=self.possible)
            for name in written:
                self.screen.print(f"wrote {printable(name)}")
            if runs_on_github():
                for line in github_lines(report, self.folder):
                    print(line, file=self.screen.file)  # without the console, which breaks long lines
        if failures:
            raise failures[0]

    def _files(self, report: Mapping[str, Any]) -> Iterator[tuple[str, Kind, Callable[[], bytes]]]:
        """Yield the name, the kind and the function of the content of each file."""
        program = " ".join(report["program"]["arguments"])
        if self.json is not None and self.json != STDOUT:
            yield self.json, REPORT, lambda: f"{_json(report)}\n".encode()
        if self.html is not None:
            yield str(self.html), PAGE, lambda: render(report, program).encode()
        if self.sarif is not None:
            yield str(self.sarif), SARIF, lambda: f"{json.dumps(sarif(report, self.folder), indent=2)}\n".encode()
        if self.junit is not None:
            yield str(self.junit), JUNIT, lambda: junit(report, self.folder, program, possible=self.possible).encode()


def _json(report: Mapping[str, Any]) -> str:
    return json.dumps({_GENERATOR: TOOL, **report}, indent=2)


__all__ = ["JUNIT", "REPORT", "SARIF", "Output"]
