"""The words of a finding, from its plain data. All reports print these words, and have no words of their own."""

from __future__ import annotations

import contextlib
import math
import os
from typing import TYPE_CHECKING, Any

from tcuda._base.cells import line_in
from tcuda._base.user_code import is_user_code
from tcuda.sanitizer import _elements
from tcuda.sanitizer._elements import Elements, Region

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TOUCHES = "read by the host", "write by the host"
"""Accesses of the program itself, of which only the first byte is known."""

INDENT = "\n   "
"""The start of a line below the title of a finding."""

_VERBS = {"read": "reads", "write": "writes", "read and write": "reads and writes"}


def words_of(finding: Mapping[str, Any], *, says_more: bool = True) -> dict[str, Any]:
    """Return the words of a finding as plain data.

    Args:
        finding: The finding as plain data.
        says_more: Whether the advice says more than the missing call and its line.
    """
    accesses = [finding[name] for name in ("previous", "current") if name in finding]
    return {
        "title": _title(finding),
        "sentence": _sentence(finding),
        "sides": [side_of(access) for access in accesses],
        "shared": _shared(finding),
        "doubt": finding.get("doubt"),
        "places": _places(finding),
        "missing": {
            "call": finding.get("missing"),
            "place": finding.get("before"),
            "sentence": finding["advice"],
            "says_more": says_more,
        },
    }


def lines_of(finding: Mapping[str, Any], folder: str | None = None) -> Iterator[str]:
    """Yield the lines of the short text of a finding: the title, both sides, the memory, and the missing call.

    Args:
        finding: The finding as plain data, with its words and its count.
        folder: The folder from which the names of files count, which ends with a separator; None for the current one.
    """
    words, start = finding["words"], _current_folder() if folder is None else folder
    count = finding.get("count", 1)
    yield f"{words['title']}{'' if count == 1 else f', {count:,} times'}"
    for side in words["sides"]:
        source = f": {side['source']}" if side["source"] else ""
        launch = f", in the graph launched at {place_text(side['launch'], start)}" if side["launch"] else ""
        yield f"   {place_text(side['place'], start)}  {side['text']}{source}{launch}"
    places = {place["what"]: place_text(place, start) for place in words["places"]}
    allocated = f", allocated at {places.pop('allocated at')}" if "allocated at" in places else ""
    if words["shared"] is not None:
        yield f"   {words['shared']}{allocated}"
    for what, place in places.items():
        yield f"   {what} {place}"
    if finding.get("processes"):
        yield f"   in {_children(finding['processes'])}"
    if words["doubt"]:
        yield f"   possible: {words['doubt']}"
    yield f"   {mend_of(finding, start)}"


def mend_of(finding: Mapping[str, Any], folder: str | None = None) -> str:
    """Return the missing call and its line in a few words, or else the sentence of the advice."""
    missing = finding["words"]["missing"]
    if missing["call"] and missing["place"] and "kernel" not in finding:
        instead = f", or {finding['instead']}" if finding.get("instead") else ""
        return f"missing: {missing['call']} before {place_text(missing['place'], folder)}{instead}"
    return f"{'missing: ' if missing['call'] else ''}{missing['sentence']}"


def place_text(place: Mapping[str, Any] | None, folder: str | None = None) -> str:
    """Return a line of a file, such as ``step.py:12``; ``folder`` is as in :func:`lines_of`."""
    if place is None:
        return "unknown line"
    start = _current_folder() if folder is None else folder
    return line_in(place["file"], place["line"]) or f"{place['file'].removeprefix(start)}:{place['line']}"


def total(*, races: Sequence[int], reads: Sequence[int], possible: int, operations: int, suppressed: int) -> str:
    """Return the numbers of a report in a line.

    Args:
        races: How often each race was seen.
        reads: How often each read of unwritten memory was seen.
        possible: The number of possible races.
        operations: The number of operations.
        suppressed: The number of findings that were suppressed.
    """
    if not races and not reads and not operations:
        return "No operation was watched"
    found = f"{several(len(races), 'race')}, seen {several(sum(races), 'time')}," if races else "No race"
    if reads:
        unwritten = several(len(reads), "read of unwritten memory", "reads of unwritten memory")
        found += f"{',' if not races else ''} and {unwritten}, seen {several(sum(reads), 'time')},"
    perhaps = f"; {several(possible, 'possible race')}" if possible else ""
    left_out = f"; {suppressed:,} suppressed" if suppressed else ""
    return f"{found} in {several(operations, 'operation')}{perhaps}{left_out}"


def total_of(report: Mapping[str, Any]) -> str:
    """Return the numbers of a report in plain data, as a sentence."""
    races, reads = ([found["count"] for found in report[kind]] for kind in ("races", "unwritten_reads"))
    numbers = {"possible": len(report["possible"]), **{name: report[name] for name in ("operations", "suppressed")}}
    return f"{total(races=races, reads=reads, **numbers)}."


def several(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def _current_folder() -> str:
    with contextlib.suppress(OSError):  # the folder may be gone
        return os.path.join(os.getcwd(), "")  # noqa: PTH109, PTH118  # ends with a separator
    return ""


def _children(processes: Sequence[int]) -> str:
    distinct = sorted(set(processes))
    return f"child process {distinct[0]}" if len(distinct) == 1 else f"{len(distinct):,} child processes"


def _title(finding: Mapping[str, Any]) -> str:
    if "kernel" in finding:
        order = f" whose threads run {finding['order']}" if finding.get("order") else ""
        return str(finding["kind"].replace("a kernel", f"the kernel `{finding['kernel']}`{order}"))
    kind = "use after free" if finding["use_after_free"] else finding["kind"]
    return f"{'possible ' if finding['doubt'] else ''}{kind}"


def _sentence(finding: Mapping[str, Any]) -> str:
    """Return what is wrong in one sentence."""
    if "previous" not in finding:
        return "nothing has written what the kernel reads."
    if "kernel" in finding:
        same = ", and write the same value" if finding["benign"] else ""
        return f"two threads use the same memory, and nothing orders them{same}."
    first, second = (
        f"{finding[name]['operation']} on {finding[name]['stream_name']}" for name in ("previous", "current")
    )
    return f"No order leads from {first} to {second}."


def side_of(access: Mapping[str, Any]) -> dict[str, Any]:
    """Return the words of one access of a finding."""
    if "thread" in access:
        return {
            "text": access["words"],
            "does": access["words"],
            "memory": None,
            "place": access["line"],
            "source": access["source"],
            "launch": None,
        }
    # The name is that of the operation, which the reader may take for a variable of the program.
    what = f"its argument {access['argument']}" if access["argument"] else "memory"
    does = f"{_VERBS[access['kind']]} {what}"
    doubt = " (possibly)" if access["confidence"] == "possible" else ""
    stream = access["stream_name"] if access["device"] < 0 else f"{access['stream_name']} of device {access['device']}"
    return {
        "text": f"{access['operation']} {does}{doubt} on {stream}",
        "does": does,
        "memory": memory_of(access),
        "place": _place(access["stack"]),
        "source": "",
        "launch": _place(access["launch_stack"] or ()),
    }


def memory_of(access: Mapping[str, Any]) -> str:
    """Return the elements that an access uses, with the argument."""
    argument = f" of the argument `{access['argument']}`" if access["argument"] else ""
    region = Region(access["address"], access["itemsize"], tuple(access["shape"]), tuple(access["strides"]))
    found = access["element_range"]
    return f"{_elements.text(region, None if found is None else Elements(*found))}{argument}"


def _shared(finding: Mapping[str, Any]) -> str | None:
    """Return the memory of the finding; for two accesses, as the access with the larger elements counts."""
    if "kernel" in finding:
        return f"{'both touch ' if 'previous' in finding else ''}{finding['memory']['text']}"
    current = finding["current"]
    if current["host"] and current["operation"] in TOUCHES and current["element_range"] is not None:
        first, size = current["element_range"][0], math.prod(current["shape"])
        return f"the host touches byte {first:,} of {size:,} first, and perhaps other bytes later"
    counted = [access for access in (current, finding["previous"]) if access["element_range"] is not None]
    if not counted:
        return None
    access = max(counted, key=lambda access: int(access["itemsize"]))
    first, last = access["element_range"]
    noun = "byte" if access["itemsize"] == 1 and len(access["shape"]) == 1 else "element"
    is_same = all(other["element_range"] == access["element_range"] for other in counted)
    where = "" if is_same or not access["argument"] else f" of {access['argument']}"
    touched = f"{noun} {first:,}" if first == last else f"{noun}s {first:,} to {last:,}"
    return f"both touch {touched}{where}"


def _places(finding: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return where the memory of a kernel was allocated, and where the kernel was launched."""
    if "kernel" not in finding:
        return []
    allocation, current = finding["allocation"], finding["current"]
    stacks = {
        "allocated at": allocation["stack"] if allocation else (),
        "launched at": current["launch_stack"] or current["stack"],
    }
    found = [(what, stack[0]) for what, stack in stacks.items() if stack]
    return [{"what": what, "file": frame["filename"], "line": frame["line"]} for what, frame in found]


def _place(stack: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the line of the program to which a stack belongs."""
    users = [frame for frame in stack if is_user_code(frame["filename"])] or stack
    return {"file": users[0]["filename"], "line": users[0]["line"]} if users else None
