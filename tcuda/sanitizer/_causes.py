"""The causes of findings: all findings that one call mends have one cause."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from tcuda.sanitizer._words import place_text, several

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KINDS = ("races", "unwritten_reads", "possible")
"""The lists of findings of a report, in the order of their causes."""

_MOST_PLACES = 3
_BARRIERS = frozenset(["__syncthreads()", "__syncwarp()"])
_WAIT = re.compile(r"\.(wait_stream|wait_event|synchronize)\(")


def causes_of(findings: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Return the places of the findings in ``findings``, a list for each cause, with the finding to mend first.

    Args:
        findings: The findings as plain data with their words, in the order in which they were found.
    """
    causes: list[list[int]] = []
    for place, finding in enumerate(findings):
        cause = next((cause for cause in causes if _has_cause([findings[one] for one in cause], finding)), None)
        if cause is None:
            causes.append([place])
        else:
            cause.append(place)
    return causes


def add_causes(report: dict[str, Any]) -> dict[str, Any]:
    """Add the causes to a report in plain data, and the number of its cause to each finding; return the report."""
    report["causes"] = []
    for kind in KINDS:
        found = report[kind]
        for cause in causes_of(found):
            missing = found[cause[0]]["words"]["missing"]
            told = {"kind": kind, "findings": len(cause), "call": missing["call"], "place": missing["place"]}
            report["causes"].append({**told, "sentence": missing["sentence"], "mends": mends_of(found, cause)})
            for place in cause:
                found[place]["cause"] = len(report["causes"])
    return report


def mends_of(findings: Sequence[Mapping[str, Any]], cause: Sequence[int], folder: str | None = None) -> str | None:
    """Return a line that says which findings the call of the first one mends too; None for a cause of one finding.

    Args:
        findings: The findings.
        cause: The places of those with one cause.
        folder: The folder from which the names of files count; None for the current one.
    """
    if len(cause) == 1:
        return None
    told = {place_text(side["place"], folder) for side in findings[cause[0]]["words"]["sides"]}
    others = (place_text(findings[place]["words"]["sides"][-1]["place"], folder) for place in cause[1:])
    places = [place for place in dict.fromkeys(others) if place not in told]
    more = len(places) - _MOST_PLACES
    listed = ", ".join(places[:_MOST_PLACES]) + (f" and {several(more, 'more line')}" if more > 0 else "")
    gap = _common_gap([_gap(findings[place]) for place in cause])
    call = "call"
    if gap is not None and not gap.next_round:
        call = f"barrier between line {gap.begin} and line {gap.end}"
    return f"one {call} mends these {len(cause):,}{f': also {listed}' if listed else ''}"


class _Gap(NamedTuple):
    """The lines of a kernel between which a barrier orders two accesses.

    Attributes:
        kernel: The kernel, the file, and the barrier that is missing.
        begin: The line behind which the barrier may stand.
        end: The line before which the barrier may stand.
        next_round: Whether the barrier orders one round of a loop and the next. The barrier then stands outside of the
            lines, at the end or at the beginning of the loop.
    """

    kernel: tuple[object, ...]
    begin: int
    end: int
    next_round: bool


def _gap(finding: Mapping[str, Any]) -> _Gap | None:
    """Return where a barrier orders the accesses; None if no barrier between two lines does."""
    missing = finding["words"]["missing"]
    if missing["call"] not in _BARRIERS or "previous" not in finding:
        return None
    places = [finding[name].get("line") for name in ("previous", "current")]
    if None in places or places[0]["file"] != places[1]["file"] or missing["place"] is None:
        return None
    begin, end = sorted(place["line"] for place in places)
    kernel = finding.get("kernel"), places[0]["file"], missing["call"], tuple(finding.get("processes", ()))
    return None if begin == end else _Gap(kernel, begin, end, missing["place"]["line"] == begin)


def _common_gap(gaps: Sequence[_Gap | None]) -> _Gap | None:
    """Return the lines between which one barrier stands for all of ``gaps``; None if no such lines exist."""
    known = [gap for gap in gaps if gap is not None]
    if len(known) < len(gaps) or len({(gap.kernel, gap.next_round) for gap in known}) != 1:
        return None
    begin, end = max(gap.begin for gap in known), min(gap.end for gap in known)
    # Rounds of one loop have lines in common. A barrier around all of these lines orders all of them.
    return known[0]._replace(begin=begin, end=end) if begin < end else None


def _has_cause(cause: Sequence[Mapping[str, Any]], finding: Mapping[str, Any]) -> bool:
    """Return whether the call that mends all findings of ``cause`` mends ``finding`` too."""
    return _is_mended_with(cause[0], finding) or _common_gap([*map(_gap, cause), _gap(finding)]) is not None


def _is_mended_with(first: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether the call that mends ``first`` mends ``other`` too."""
    calls = [finding["words"]["missing"]["call"] for finding in (first, other)]
    if None in calls or sorted(set(first.get("processes", ()))) != sorted(set(other.get("processes", ()))):
        return False
    return _mend(first) == _mend(other) or _is_ordered_by_the_wait_of(first, other)


def _mend(finding: Mapping[str, Any]) -> Any:
    missing = finding["words"]["missing"]
    is_of_access = finding["use_after_free"] or missing["place"] is None  # the words may name no line
    access = finding["words"]["sides"][0]["place"] if is_of_access else None
    return finding.get("kernel"), missing["sentence"], missing["place"], access


def _is_ordered_by_the_wait_of(first: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether a wait that ``first`` lacks comes after the earlier access of ``other``, and before the later one.

    The wait orders all earlier work of the stream that is waited for before all later work of the stream that waits.
    """
    if _streams(first) != _streams(other) or len(set(_streams(first))) < len(_streams(first)):
        return False
    waits = [_WAIT.search(finding["words"]["missing"]["call"]) for finding in (first, other)]
    if any(wait is None for wait in waits) or len({wait[1] for wait in waits if wait}) > 1:
        return False
    at = first["current"]["number"]
    return bool(first["previous"]["number"] < at and other["previous"]["number"] < at <= other["current"]["number"])


def _streams(finding: Mapping[str, Any]) -> list[tuple[int, int]]:
    return [(finding[name]["device"], finding[name]["stream"]) for name in ("current", "previous") if name in finding]


__all__ = ["KINDS", "add_causes", "causes_of", "mends_of"]
