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


def runs_on_github() -> bool:
    """Return whether this process runs in a workflow of GitHub, which reads annotations from the output."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def github_lines(report: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Yield a line for each cause that GitHub shows beside the line of the program.

    Args:
        report: The lists of findings of ``Report.as_dict()``, all of them or some.
        folder: The folder from which the names of files count, unless ``GITHUB_WORKSPACE`` names the clone.
    """
    base = Path(os.environ.get("GITHUB_WORKSPACE") or folder)
    for entry in _entries(report, folder):
        values = {"title": entry.title}
        if entry.place is not None:
            values = {"file": _relative(entry.place["file"], base), "line": str(entry.place["line"]), **values}
        listed = ",".join(f"{name}={_of_command(value, ':,')}" for name, value in values.items())
        yield f"::{'warning' if entry.is_possible else 'error'} {listed}::{_of_command(entry.text)}"


def sarif(report: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the findings as a log of SARIF 2.1.0; the arguments are as in :func:`github_lines`."""
    results, rules = [], {}
    for entry in _entries(report, folder):
        kind = entry.findings[0]["kind"]
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
    return {"version": "2.1.0", "$schema": _SCHEMA, "runs": [{"tool": {"driver": driver}, "results": results}]}


def junit(report: Mapping[str, Any], folder: Path, name: str, *, possible: bool = False) -> str:
    """Return the findings as a file of JUnit, in which each cause is a test that fails; without findings, one passes.

    Args:
        report: As in :func:`github_lines`.
        folder: As in :func:`github_lines`.
        name: The name of the program.
        possible: Whether possible races are failures.
    """
    failed = [entry for entry in _entries(report, folder) if possible or not entry.is_possible]
    counts = {"tests": str(len(failed) or 1), "failures": str(len(failed)), "errors": "0"}
    suites = Xml.Element("testsuites", {"name": TOOL, **counts})
    suite = Xml.SubElement(suites, "testsuite", {"name": _of_xml(name), **counts})
    for number, entry in enumerate(failed, 1):
        title, place = _of_xml(entry.title), {}
        if entry.place is not None:
            place = {"file": _of_xml(_relative(entry.place["file"], folder)), "line": str(entry.place["line"])}
        case = Xml.SubElement(suite, "testcase", {"classname": TOOL, "name": f"{number}. {title}", **place})
        Xml.SubElement(case, "failure", {"message": title}).text = _of_xml(entry.text)
    if not failed:
        Xml.SubElement(suite, "testcase", {"classname": TOOL, "name": "no race"})
    return f'<?xml version="1.0" encoding="utf-8"?>\n{Xml.tostring(suites, "unicode")}\n'


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


__all__ = ["TOOL", "github_lines", "junit", "runs_on_github", "sarif"]
