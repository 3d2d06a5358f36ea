"""The declarations of variables in shared memory: ``__shared__ float tile[32][33];``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from tcuda.emulation.rtc.tokens import tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcuda.emulation.rtc.tokens import Token

_SHARED = "__shared__"
_QUALIFIERS = frozenset(["extern", "static", "volatile", "const", "__align__", "alignas", "__attribute__", "aligned"])
_NUMBER = re.compile(r"(\d+)[uUlL]*")
_MACRO = re.compile(r"\s*#\s*define\s+(\w+)\s+(\d+)[uUlL]*\s*$")


class Declaration(NamedTuple):
    """A declaration of a variable in shared memory.

    Attributes:
        name: The name of the variable.
        type: The type of the elements as the source writes it.
        lengths: The length of each axis; None for a length that is no plain number.
        dynamic: Whether the launch gives the size.
    """

    name: str
    type: str
    lengths: tuple[int | None, ...]
    dynamic: bool


def declarations(source: str, qualifier: str = _SHARED) -> list[Declaration]:
    """Return the declarations of variables in shared memory or with another qualifier, in the order of the source."""
    if qualifier not in source:
        return []
    found = list(tokens(source))
    numbers = _numbers(found)
    declared: list[Declaration] = []
    code = [token for token in found if token.kind != "directive"]
    for place, token in enumerate(code):
        if token.text == qualifier:
            end = next((at for at in range(place, len(code)) if code[at].text == ";"), len(code))
            before = code[place - 1].text if place else ""
            declared += _declared(code[place + 1 : end], before == "extern", numbers)
    return declared


def _numbers(found: Sequence[Token]) -> dict[str, int]:
    """Return the numbers that macros and constants of the source name."""
    numbers: dict[str, int] = {}
    for place, token in enumerate(found):
        macro = _MACRO.match(token.text) if token.kind == "directive" else None
        if macro is not None:
            numbers[macro[1]] = int(macro[2])
        elif token.text in ("const", "constexpr"):
            words = [part.text for part in found[place : place + 6]]
            if "=" in words[2:5]:
                sign = words.index("=")
                value = _NUMBER.fullmatch(words[sign + 1]) if sign + 1 < len(words) else None
                if value is not None:
                    numbers[words[sign - 1]] = int(value[1])
    return numbers


def _declared(found: Sequence[Token], dynamic: bool, numbers: dict[str, int]) -> Iterator[Declaration]:
    kind: list[str] = []
    place, depth = 0, 0
    # The type comes first: all names up to the one before "[", "," or the end.
    while place < len(found):
        token = found[place]
        following = found[place + 1].text if place + 1 < len(found) else ";"
        dynamic = dynamic or token.text == "extern"
        depth += (token.text in "(<") - (token.text in ")>")
        if token.kind == "name" and not depth and following in ("[", ",", ";", "="):
            yield from _variables(found[place:], " ".join(kind).replace(" :: ", "::"), dynamic, numbers)
            return
        if token.text not in _QUALIFIERS and not (token.text in "()" or (depth and not kind)):
            kind.append(token.text)
        place += 1


def _variables(found: Sequence[Token], kind: str, dynamic: bool, numbers: dict[str, int]) -> Iterator[Declaration]:
    """Yield the variables of one declaration, which begins with the name of the first one."""
    name = found[0].text
    lengths: list[int | None] = []
    inside: list[str] | None = None
    for token in found[1:]:
        if token.text == "[" and inside is None:
            inside = []
        elif token.text == "]" and inside is not None:
            lengths.append(_length(inside, numbers))
            inside = None
        elif inside is not None:
            inside.append(token.text)
        elif token.text == ",":
            yield Declaration(name, kind, tuple(lengths), dynamic)
            name, lengths = "", []
        elif token.kind == "name" and not name:
            name = token.text
    yield Declaration(name, kind, tuple(lengths), dynamic)


def _length(words: Sequence[str], numbers: dict[str, int]) -> int | None:
    if len(words) != 1:
        return None
    number = _NUMBER.fullmatch(words[0])
    return int(number[1]) if number is not None else numbers.get(words[0])
