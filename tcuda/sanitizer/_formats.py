"""Findings in the formats of CI systems: annotations of GitHub, SARIF 2.1.0, and JUnit.

Each cause of findings is one entry, at the line where the missing call belongs.
"""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as Xml
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from tcuda._base.version import __version__
from tcuda.sanitizer._causes import KINDS, causes_of, mends_of
from tcuda.sanitizer._words import lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TOOL = "tcuda sanitize"
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_OF_FINDINGS = "tcuda.sanitizer.CUDASanitizerErrors"
"""The beginning of the failure of a program that a finding has ended."""
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that no document of XML may have."""


class _Entry(NamedTuple):
    """A cause of findings.

    Attributes:
        findings: The findings, the first one to mend at the front.
        text: The short text of the first finding, and what its call mends too.
        place: The line where the call belongs, or else the line of the access or of the launch; None if unknown.
        is_possible: Whether the findings are only possible.
    """

    findings: Sequence[Mapping[str, Any]]
    text: str
    place: Mapping[str, Any] | None
    is_possible: bool

    @property
    def title(self) -> str:
        return str(self.findings[0]["words"]["title"])


class _Trouble(NamedTuple):
    """A reason for which a run without findings proves nothing.

    Attributes:
        title: The reason in a few words.
        text: The whole reason.
        place: The line of the program that failed; None if unknown.
        is_news: Whether neither the entries of the report nor the output of the program tell of the same.
    """

    title: str
    text: str
    place: Mapping[str, Any] | None = None
    is_news: bool = False


def runs_on_github() -> bool:
    """Return whether this process runs in a workflow of GitHub, which reads annotations from the output."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def github_lines(report: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Yield a line for each cause that GitHub shows beside the line of the program.

    Args:
        report: The lists of findings of ``Report.as_dict()``, all of them or some.
        folder: The folder from which the names of files count, unless ``GITHUB_WORKSPACE`` names the clone.
    """
    for entry in _entries(report, folder):
        yield github_line(entry.title, entry.text, entry.place, folder, "warning" if entry.is_possible else "error")
    for trouble in _troubles(report):
        if trouble.is_news:
            yield github_line(trouble.title, trouble.text, trouble.place, folder)


def github_line(title: str, text: str, place: Mapping[str, Any] | None, folder: Path, level: str = "error") -> str:
    """Return a line that GitHub shows beside a line of the program.

    Args:
        title: The title.
        text: The text.
        place: The line of the program; None if the line is not known.
        folder: As in :func:`github_lines`.
        level: ``"error"`` or ``"warning"``.
    """
    base = Path(os.environ.get("GITHUB_WORKSPACE") or folder)
    values = {"title": title}
    if place is not None:
        values = {"file": _relative(place["file"], base), "line": str(place["line"]), **values}
    listed = ",".join(f"{name}={_of_command(value, ':,')}" for name, value in values.items())
    return f"::{level} {listed}::{_of_command(text)}"


def sarif(report: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the findings as a log of SARIF 2.1.0; the arguments are as in :func:`github_lines`."""
    results, rules = [], {}
    for entry in _entries(report, folder):
        kind = "use after free" if entry.findings[0].get("use_after_free") else entry.findings[0]["kind"]
        rule = re.sub(r"\W+", "-", kind)
        rules[rule] = {"id": rule, "shortDescription": {"text": kind}}
        sides = [side for finding in entry.findings for side in finding["words"]["sides"]]
        related = [
            {**_location(side["place"], folder), "message": {"text": side["text"]}} for side in sides if side["place"]
        ]
        results.append(
            {
                "ruleId": rule,
                "level": "warning" if entry.is_possible else "error",
                "message": {"text": entry.text},
                "locations": [] if entry.place is None else [_location(entry.place, folder)],
                "relatedLocations": [{"id": number, **one} for number, one in enumerate(related, 1)],
                "occurrenceCount": sum(finding.get("count", 1) for finding in entry.findings),
            }
        )
    driver = {"name": TOOL, "version": __version__, "rules": list(rules.values())}
    run = {"tool": {"driver": driver}, "invocations": [_invocation(report, folder)], "results": results}
    return {"version": "2.1.0", "$schema": _SCHEMA, "runs": [run]}


def _invocation(report: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    told = [
        {
            "level": "error",
            "message": {"text": trouble.text},
            **({} if trouble.place is None else {"locations": [_location(trouble.place, folder)]}),
        }
        for trouble in _troubles(report)
    ]
    return {"executionSuccessful": not told, "toolExecutionNotifications": told}


def junit(report: Mapping[str, Any], folder: Path, name: str, *, possible: bool = False) -> str:
    """Return the findings as a file of JUnit, in which each cause is a test that fails; without findings, one passes.

    A program that failed, and a run in which no operation was watched, are tests with an error.

    Args:
        report: As in :func:`github_lines`.
        folder: As in :func:`github_lines`.
        name: The name of the program.
        possible: Whether possible races are failures.
    """
    failed = [entry for entry in _entries(report, folder) if possible or not entry.is_possible]
    troubles = _troubles(report)
    tests = len(failed) + len(troubles) or 1
    counts = {"tests": str(tests), "failures": str(len(failed)), "errors": str(len(troubles))}
    suites = Xml.Element("testsuites", {"name": TOOL, **counts})
    suite = Xml.SubElement(suites, "testsuite", {"name": _of_xml(name), **counts})
    for number, entry in enumerate(failed, 1):
        title = _of_xml(entry.title)
        case = _case(suite, f"{number}. {title}", entry.place, folder)
        Xml.SubElement(case, "failure", {"message": title}).text = _of_xml(entry.text)
    for trouble in troubles:
        case = _case(suite, trouble.title, trouble.place, folder)
        message = _of_xml(trouble.text)
        Xml.SubElement(case, "error", {"message": message.partition("\n")[0]}).text = message
    if not failed and not troubles:
        Xml.SubElement(suite, "testcase", {"classname": TOOL, "name": "no race"})
    return f'<?xml version="1.0" encoding="utf-8"?>\n{Xml.tostring(suites, "unicode")}\n'


def _case(suite: Xml.Element, name: str, place: Mapping[str, Any] | None, folder: Path) -> Xml.Element:
    where = {}
    if place is not None:
        where = {"file": _of_xml(_relative(place["file"], folder)), "line": str(place["line"])}
    return Xml.SubElement(suite, "testcase", {"classname": TOOL, "name": name, **where})


def _troubles(report: Mapping[str, Any]) -> list[_Trouble]:
    """Return why the run of a program proves nothing where nothing was found; reports of tests have no program."""
    program = report.get("program")
    if program is None:
        return []
    if program["failure"] is not None:
        failure = str(program["failure"])
        return [_Trouble("the program failed", failure, program.get("place"), not failure.startswith(_OF_FINDINGS))]
    if program["status"]:
        text = f"The program ended with the exit status {program['status']}."
        return [_Trouble("the program failed", text)]
    if not report["operations"]:
        return [_Trouble("nothing watched", "No operation on a device was watched, so nothing is known about races.")]
    return []


def _entries(report: Mapping[str, Any], folder: Path) -> Iterator[_Entry]:
    start = os.path.join(folder, "")  # noqa: PTH118  # ends with a separator
    for kind in KINDS:
        findings = report.get(kind, ())
        for cause in causes_of(findings):
            first = findings[cause[0]]
            lines = [*lines_of(first, start), *filter(None, [mends_of(findings, cause, start)])]
            text = "\n".join(line.strip() for line in lines)
            yield _Entry([findings[place] for place in cause], text, _place(first), kind == "possible")


def _place(finding: Mapping[str, Any]) -> Mapping[str, Any] | None:
    words = finding["words"]
    if "kernel" in finding:  # the source of a kernel may be no file
        return next((place for place in words["places"] if place["what"] == "launched at"), None)
    sides = (words["sides"][-1], words["sides"][0])
    found = (words["missing"]["place"], *(side["launch"] or side["place"] for side in sides))
    return next((place for place in found if place is not None), None)


def _location(place: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    name = _relative(place["file"], folder)
    uri = ("file://" if Path(name).is_absolute() else "") + quote(Path(name).as_posix(), errors="replace")
    region = {"region": {"startLine": place["line"]}} if place["line"] else {}
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, **region}}


def _relative(file: str, folder: Path) -> str:
    path = Path(file)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else file


def _of_command(text: str, more: str = "") -> str:
    """Return a text of a command of a workflow, in which some characters have a meaning."""
    known = text.encode(errors="replace").decode()  # a name of a file may have what no output takes
    return "".join(f"%{ord(each):02X}" if each in f"%\r\n{more}" else each for each in known)


def _of_xml(text: str) -> str:
    return _NO_XML.sub("?", text)


__all__ = ["TOOL", "github_line", "github_lines", "junit", "runs_on_github", "sarif"]
