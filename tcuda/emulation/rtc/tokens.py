"""The tokens of C++ source, in the detail that the search for kernels and unsupported constructs needs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BRACKETS = {"(": ")", "[": "]", "{": "}", "[[": "]]"}
"""The brackets that open, and those that close them."""

_PATTERN = re.compile(
    r"""
    (?P<space>\s+|\\\r?\n)
  | (?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
  | (?P<string>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?(?:\)(?P=mark)"|\Z)
      |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"?)
  | (?P<character>(?:u8|[uUL])?'(?:\\.|[^'\\\n])*'?)
  | (?P<number>\.?\d(?:'?[\w.]|[eEpP][+-])*)
  | (?P<name>[^\W\d]\w*)
  | (?P<sign><<<|>>>|::|\#\#|->|\[\[|\]\]|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(r"[ \t]*\#(?:\\\r?\n|/\*.*?\*/|//[^\n]*|[^\n])*", re.DOTALL)


@dataclass(frozen=True)
class Token:
    """A token.

    Attributes:
        kind: ``"name"``, ``"number"``, ``"string"``, ``"character"``, ``"sign"``, or ``"directive"`` for a whole line
            of the preprocessor.
        text: The text.
        start: The place of the first character in the source.
    """

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """The place after the last character."""
        return self.start + len(self.text)


def tokens(source: str) -> Iterator[Token]:
    """Yield the tokens of ``source`` without spaces and comments."""
    place, at_line_start = 0, True
    while place < len(source):
        if at_line_start:
            directive = _DIRECTIVE.match(source, place)
            if directive is not None:
                yield Token("directive", directive[0], place)
                place, at_line_start = directive.end(), False
                continue
        match = _PATTERN.match(source, place)
        assert match is not None  # The last alternative matches any character.
        kind, text = str(match.lastgroup), match[0]
        if kind == "mark":
            kind = "string"
        place = match.end()
        if kind == "space":
            at_line_start = at_line_start or ("\n" in text and not text.startswith("\\"))
            # Spaces before a "#" belong to the directive.
            if at_line_start and (newline := text.rfind("\n")) >= 0:
                place = match.start() + newline + 1
        elif kind != "comment":
            at_line_start = False
            yield Token(kind, text, match.start())


def closing(found: Sequence[Token], place: int) -> int:
    """Return the place of the bracket that closes the bracket at ``place``; the last place if no bracket does.

    The result is ``place`` if no bracket is there.
    """
    opening, depth = found[place].text, 0
    for index in range(place, len(found)):
        depth += (found[index].text == opening) - (found[index].text == BRACKETS.get(opening, opening))
        if depth == 0:
            return index
    return len(found) - 1


def line_of(source: str, place: int) -> int:
    """Return the number of the line at ``place``, from 1."""
    return source.count("\n", 0, place) + 1
