"""The ``__constant__`` variables of a source: their place in the library, and assignments that no compiler takes."""

from __future__ import annotations

import mmap
import re
from typing import TYPE_CHECKING, NamedTuple

from tcuda._base import symbols
from tcuda.emulation.rtc.shared_declarations import declarations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcuda.emulation.rtc.tokens import Token

QUALIFIER = "__constant__"

_SECTION = b"tcuda_constant_"
"""The beginning of the names of the sections, of which each has the variables of a declaration."""

_ASSIGNED = re.compile(r"\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)")
_STEPPED = re.compile(r"\s*(?:\+\+|--)")
_STEPPED_BEFORE = re.compile(r"(?:\+\+|--)\s*$")
_BEFORE_STATEMENT = frozenset([";", "{", "}", ")", ":", "else", "do"])
_MEMBERS = frozenset([".", "->", "::"])


class Pages(NamedTuple):
    """The pages with the ``__constant__`` variables of a library.

    Attributes:
        place: The distance of the first page from the beginning of the library, in bytes.
        size: The bytes of all pages.
    """

    place: int
    size: int


def pages(library: bytes) -> Pages | None:
    """Return the pages with the ``__constant__`` variables; None if there are none, or if others lie there too."""
    found = [each for each in symbols.sections(library) if each.writable]
    of_constants = [each for each in found if each.name.startswith(_SECTION)]
    if not of_constants:
        return None
    begin = min(each.place for each in of_constants)
    end = max(each.place + each.size for each in of_constants)
    end += -end % mmap.PAGESIZE
    others = [each for each in found if each not in of_constants]
    if begin % mmap.PAGESIZE or any(each.place < end and begin < each.place + each.size for each in others):
        return None
    return Pages(begin, end - begin)


def assignments(source: str, found: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """Yield the index and the name of each assignment to a ``__constant__`` variable that is no array.

    A name that the source may also declare elsewhere is left out.

    Args:
        source: The source.
        found: The tokens of the source.
    """
    names = {declared.name for declared in declarations(source, QUALIFIER) if not declared.lengths}
    for index, token in enumerate(found):
        if token.kind == "name" and token.text in names and _is_declared_at(found, index):
            names.discard(token.text)
    for index, token in enumerate(found):
        if token.kind != "name" or token.text not in names:
            continue
        before = found[index - 1].text if index else ""
        assigned = before in _BEFORE_STATEMENT and _ASSIGNED.match(source, token.end)
        stepped = before not in _MEMBERS and _STEPPED.match(source, token.end)
        if assigned or stepped or _STEPPED_BEFORE.search(source, token.start - 8, token.start):
            yield index, token.text


def _is_declared_at(found: Sequence[Token], index: int) -> bool:
    """Return whether the name at ``index`` may be declared there, other than as a ``__constant__`` variable."""
    before = found[index - 1] if index else None
    if before is None or before.text in ("return", "else", "do", "case"):
        return False
    if before.kind != "name" and not (before.text in ("*", "&") and index > 1 and found[index - 2].kind == "name"):
        return False
    start = index - 1
    while start >= 0 and found[start].text not in (";", "{", "}", "(", ")"):
        if found[start].text == QUALIFIER:
            return False
        start -= 1
    return True
