"""The use of an array by a kernel, as the places of the array's name in the body of the kernel tell."""

from __future__ import annotations

import functools
import re

NONE, READ, WRITE, BOTH = range(4)
UNCERTAIN = -1
"""The source does not tell what the kernel does."""

_DEFINITION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+\w+(?:\([^)\n]*\))?((?:[^\n\\]|\\\n|\\.)*)", re.MULTILINE)
_REFERENCE = re.compile(r"(\bconst\s+)?[\w:<>]+\s*&{1,2}\s*(\w+)\s*=\s*$")
_VALUE = re.compile(r"[\w>]\s+\w+\s*(?:=|\()\s*(?:\([\w:<> ]+\)\s*)?$")
_STATEMENT = re.compile(r"(?:^|[;{}(),]|\belse|\bdo)\s*$")
_COMPOUND = re.compile(r"(?:[-+*/%&|^]|<<|>>)=(?!=)|\+\+|--")
_MEMBER = re.compile(r"\s*\.\s*(?:size|shape|strides|ndim|get_shape|get_strides)\b")
_BEFORE_READ = re.compile(r"(?:[-+*/%<>?:|^!=]|&&|\breturn)\s*$")
_AFTER_READ = re.compile(r"\s*(?:[-+*/%<>?:;|^)]|&&|!=|==)")
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_OPERATOR = re.compile(r"\s*(?:[-+*/%?|^]|<(?!<)|>(?!>)|&&|!=|==)")
_BRACKET = re.compile(r"[\[\](){}]")
_SUBSCRIPT = re.compile(r"\s*\[")
_INDEXER = re.compile(r"\w+\.get\(\)")
_REDUCTION = re.compile(r"\w+\s*\(\s*(\w+)\s*,\s*(\w+)\s*,\s*\w+\s*,\s*\w+\s*,\s*block_stride_\w+\s*\)")


class Body:
    """The body of a kernel, and the macros of its source.

    Args:
        text: The source without comments.
        begin: The end of the parameters.
    """

    def __init__(self, text: str, begin: int) -> None:
        self._source = text
        self._begin = begin

    @functools.cached_property
    def _text(self) -> str:
        own = self._source[self._begin : _block_end(self._source, self._begin)]
        macros = [found[1].replace("\\\n", " ") for found in _DEFINITION.finditer(self._source)]
        return "\n;".join((own, *macros))

    @functools.cached_property
    def _places(self) -> dict[str, list[int]]:
        """The places of each name that is not the name of a member."""
        places: dict[str, list[int]] = {}
        for found in _WORD.finditer(self._text):
            places.setdefault(found[0], []).append(found.start())
        return places

    def use(self, name: str) -> int:
        """Return how the kernel uses the ``CArray`` with the name ``name``: a kind, or ``UNCERTAIN``."""
        return self._use(name, is_array=True)

    def const_use(self, name: str) -> int:
        """Return ``READ``, or ``UNCERTAIN`` if the kernel casts the const of the array ``name`` away."""
        for known in (name, name.removeprefix("_raw_")):
            for place in self._places.get(known, ()):
                before = self._text[max(0, place - 200) : place]
                cast = re.search(r"\(([^()]*\*)\s*\)\s*\(?\s*&?\s*\(?\s*$", before)
                if cast is not None and not re.search(r"\bconst\b", cast[1]):
                    return UNCERTAIN
                if re.search(
                    r"\bconst_cast\s*<[^;]*$|\breinterpret_cast\s*<\s*(?!const\b)[^;<>]*\*\s*>\s*\([^;]*$", before
                ):
                    return UNCERTAIN
        return READ

    def is_whole(self, name: str, *, by_element: bool) -> bool:
        """Return whether the kernel uses all elements of an array, and not only the elements at computed indices.

        Args:
            name: The name of the array.
            by_element: Whether ``i`` is the number of an element, as in elementwise kernels.
        """
        if name.startswith("_raw_"):
            return True
        for place in self._places.get(name, ()):
            opening = _SUBSCRIPT.match(self._text, place + len(name))
            if opening is None:
                continue
            closing = _closing(self._text, opening.end() - 1)
            index = self._text[opening.end() : closing].strip()
            if closing is None or not (_INDEXER.fullmatch(index) or (by_element and index == "i")):
                return False
        return True

    def _use(self, name: str, *, is_array: bool) -> int:
        kind = NONE
        for place in self._places.get(name, ()):
            found = self._use_at(place, place + len(name), is_array=is_array)
            if found == UNCERTAIN:
                return UNCERTAIN
            kind |= found
        return kind

    def _use_at(self, begin: int, end: int, *, is_array: bool) -> int:
        text = self._text
        if re.search(r"\b(?:decltype|sizeof)\s*\(\s*$", text[max(0, begin - 40) : begin]):
            return NONE
        if is_array:
            if _MEMBER.match(text, end):
                return NONE
            rest = _SUBSCRIPT.match(text, end)
            if rest is None:
                return self._use_in_call(begin, end)
            closing = _closing(text, rest.end() - 1)
            if closing is None:
                return UNCERTAIN
            end = closing + 1
        before, after = text[max(0, begin - 200) : begin], text[end : end + 40]
        reference = _REFERENCE.search(before)
        if reference is not None:
            return READ if reference[1] else self._use(reference[2], is_array=False)
        if not is_array and re.search(r"&\s*$", before) and re.match(r"\s*=(?!=)", after):
            return NONE  # the declaration of the reference
        if _COMPOUND.match(after.lstrip()) or re.search(r"(?:\+\+|--)\s*$", before):
            return BOTH
        if re.match(r"\s*=(?!=)", after):
            return WRITE if _STATEMENT.search(before) else BOTH
        if _VALUE.search(before) and re.match(r"\s*\)?\s*;", after):
            return READ
        if _BEFORE_READ.search(before) and _AFTER_READ.match(after):
            return READ
        if re.search(r"[(,]\s*$", before) and _OPERATOR.match(after):
            return READ
        return UNCERTAIN

    def _use_in_call(self, begin: int, end: int) -> int:
        """Return the use by a reduction of a fused kernel, which takes whole arrays."""
        for call in _REDUCTION.finditer(self._text, max(0, begin - 400), end + 400):
            if call.start(1) == begin:
                return READ
            if call.start(2) == begin:
                return WRITE
        return UNCERTAIN


def _closing(text: str, begin: int) -> int | None:
    """Return the place of the bracket that closes the bracket at ``begin``."""
    depth = 0
    for found in _BRACKET.finditer(text, begin):
        depth += 1 if found[0] in "([{" else -1
        if depth == 0:
            return found.start()
    return None


def _block_end(text: str, begin: int) -> int:
    """Return the end of the block of statements that begins at or after ``begin``."""
    opening = text.find("{", begin)
    closing = _closing(text, opening) if opening >= 0 else None
    return len(text) if closing is None else closing + 1
