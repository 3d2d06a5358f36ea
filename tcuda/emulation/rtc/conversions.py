"""The implicit conversions of floating-point numbers to integers, which only the compiler can find.

The compiler warns of each. gcc underlines the expression, and clang writes where the expression begins and ends. The
new source calls a function of ``tcuda/operators.h`` around the expression. The function gives the integers of a GPU.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FLAG = "-Wfloat-conversion"
"""The flag for the warnings."""
PLACES_OF_GCC = ("-ftabstop=1",)
"""The flag with which the place under an underlined character is the place of the character."""
PLACES_OF_CLANG = ("-fdiagnostics-print-source-range-info", "-fno-caret-diagnostics")
"""The flags with which each message of clang has the ranges of its expressions, and no lines of the source."""

_PLACE = r"^(?P<file>.+):(?P<line>\d+):(?P<column>\d+):(?:\{(?P<range>[^{}\n]*)\}(?:\{[^{}\n]*\})*:)? "
_WARNING = re.compile(
    rf"{_PLACE}warning: (?:conversion from .* \[-Wfloat-conversion\]"
    # Each number other than 0 is true as a bool.
    r"|(?P<clang>implicit conversion) (?!.* to 'bool' ).* \[-W(?:float(?:-overflow|-zero)?|literal)-conversion\])$",
    re.MULTILINE,
)
_MACRO = re.compile(rf"{_PLACE}note: expanded from macro ")
_NEXT = re.compile(r"In file included from |.+:\d+:\d+: (?!note: )|\d+ warnings? generated\.")
_COUNT = re.compile(r"\d+ warnings? generated\.")
_FLOATING = r"[\u2018'](?:long )?(?:float|double)[\u2019']"
_NOT_TO_INTEGER = re.compile(rf" to {_FLOATING} |aka {_FLOATING}}}(?: may| changes)")
_QUOTED = re.compile(r"^ *(?P<line>\d*) \| ?(?P<text>.*)$")
_LINE_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(?:line\b|\d).*$", re.MULTILINE)
_ASSIGNMENT = re.compile(r"[-+*/]?=")


def are_in(messages: str, own: Sequence[str]) -> bool:
    """Return whether the compiler warns of conversions to integers in other files than those in the folders ``own``."""
    return any(not warning["file"].startswith(tuple(own)) for warning in _warnings(messages))


def without_warnings(messages: str) -> str:
    """Return ``messages`` without the warnings."""
    if FLAG not in messages:
        return messages
    kept: list[str] = []
    dropped = clang = False
    for line in messages.splitlines(keepends=True):
        warning = _WARNING.match(line.rstrip("\n"))
        if warning is not None:
            dropped, clang = True, warning["clang"] is not None
        else:
            # clang quotes lines of the source without a mark, and counts the warnings at the end.
            dropped = dropped and (_NEXT.match(line) is None if clang else _QUOTED.match(line) is not None)
            dropped = dropped or (clang and _COUNT.match(line) is not None)
        if not dropped:
            kept.append(line)
    return "".join(kept)


def without_names(source: str) -> str:
    """Return ``source`` with empty lines in the places of directives that name other files and lines."""
    return _LINE_DIRECTIVE.sub("", source)


def rewritten(source: str, messages: str, file: str) -> str:
    """Return ``source`` with calls of the function around the expressions.

    Args:
        source: The source.
        messages: The warnings about :func:`without_names` of the source, with tabs as wide as other characters.
        file: The name of the source in the messages.
    """
    lines = source.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    insertions: set[tuple[int, int, str]] = set()
    for warning in _warnings(messages):
        following = messages[warning.end() + 1 :]
        told = _in_macro(warning, following) if warning["clang"] else warning
        if told["file"] != file:
            continue
        caret = starts[int(told["line"]) - 1] + int(told["column"]) - 1
        if told["range"]:
            caret = _of_bytes(lines, starts, f"{told['line']}:{told['column']}")
        operator = _ASSIGNMENT.match(source, caret)
        if operator is not None:
            name = "converted" if operator[0] == "=" else "operand"
            insertions.add((operator.end(), 0, f" ::tcuda::{name} ="))
            continue
        if told["range"]:
            begin, end = (_of_bytes(lines, starts, place) for place in told["range"].split("-"))
            places = [begin, end - 1]
        else:
            places = [starts[line - 1] + column for line, column in _underlined(following)]
        if places:
            # If expressions begin or end at the same place, any of them may be the outer one.
            insertions.add((places[0], 1, "::tcuda::implicit("))
            insertions.add((places[-1] + 1, -1, ")"))
    parts, last = [], 0
    for place, _, text in sorted(insertions):
        parts += [source[last:place], text]
        last = place
    return "".join([*parts, source[last:]])


def _warnings(messages: str) -> Iterator[re.Match[str]]:
    return (found for found in _WARNING.finditer(messages) if _NOT_TO_INTEGER.search(found[0]) is None)


def _in_macro(warning: re.Match[str], following: str) -> re.Match[str]:
    """Return the place of the expression in the definition of the innermost macro, or ``warning`` without a macro."""
    place = warning
    for text in following.split("\n"):
        found = _MACRO.match(text)
        if found is None:
            break
        place = found
    return place


def _of_bytes(lines: Sequence[str], starts: Sequence[int], place: str) -> int:
    """Return the place in the source of a line and a column, such as ``"3:8"``, which clang counts from 1 in bytes."""
    line, column = (int(number) - 1 for number in place.split(":"))
    before = lines[line].encode("utf-8", "surrogatepass")[:column]
    return starts[line] + len(before.decode("utf-8", "surrogatepass"))


def _underlined(following: str) -> list[tuple[int, int]]:
    """Return the line and the column, from 0, of each underlined character in the lines after a warning."""
    found: list[tuple[int, int]] = []
    number = 0
    for text in following.split("\n"):
        quoted = _QUOTED.match(text)
        if quoted is None:
            break
        if quoted["line"]:
            number = int(quoted["line"])
        else:
            found += [(number, column) for column, mark in enumerate(quoted["text"]) if mark in "~^"]
    return found
