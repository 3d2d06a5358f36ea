"""The implicit conversions of floating-point numbers to integers, which only the compiler can find.

The compiler warns of each, and underlines the expression. The new source calls a function of ``tcuda/operators.h``
around the expression. The function gives the integers of a GPU.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FLAG = "-Wfloat-conversion"
"""The flag for the warnings."""
TABS = "-ftabstop=1"
"""The flag with which the place under an underlined character is the place of the character."""

_WARNING = re.compile(
    r"^(?P<file>.+):(?P<line>\d+):(?P<column>\d+): warning: conversion from .* \[-Wfloat-conversion\]$", re.MULTILINE
)
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
    dropped = False
    for line in messages.splitlines(keepends=True):
        dropped = _WARNING.match(line.rstrip("\n")) is not None or (dropped and _QUOTED.match(line) is not None)
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
    starts = [0]
    for line in source.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    insertions: set[tuple[int, int, str]] = set()
    for warning in _warnings(messages):
        if warning["file"] != file:
            continue
        caret = starts[int(warning["line"]) - 1] + int(warning["column"]) - 1
        operator = _ASSIGNMENT.match(source, caret)
        if operator is not None:
            name = "converted" if operator[0] == "=" else "operand"
            insertions.add((operator.end(), 0, f" ::tcuda::{name} ="))
            continue
        places = [starts[line - 1] + column for line, column in _underlined(messages[warning.end() + 1 :])]
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
