"""Variables in shared memory that a source also declares ``static``: ``static __shared__ float rows[32];``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda.emulation.rtc.tokens import Token, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SHARED = "__shared__"
_STATIC = "static"


def without_static(source: str, found: Sequence[Token]) -> str:
    """Return ``source`` with spaces in the place of each ``static`` beside ``__shared__``.

    The headers define ``__shared__`` as ``static``, which C++ does not allow twice in a declaration.
    """
    if _SHARED not in source or _STATIC not in source:
        return source
    for start in _places(found):
        source = source[:start] + " " * len(_STATIC) + source[start + len(_STATIC) :]
    return source


def _places(found: Sequence[Token]) -> Iterator[int]:
    for index, token in enumerate(found):
        if token.kind == "directive" and _SHARED in token.text:
            # Without the "#", the tokens of the line are read one by one.
            line = token.text.replace("#", " ", 1)
            yield from (token.start + start for start in _places(list(tokens(line))))
        elif token.text == _SHARED:
            yield from (part.start for part in _specifiers(found, index) if part.text == _STATIC)


def _specifiers(found: Sequence[Token], index: int) -> Iterator[Token]:
    """Yield the names directly before and after the token ``index``."""
    for step in (-1, 1):
        place = index + step
        while 0 <= place < len(found) and found[place].kind == "name":
            yield found[place]
            place += step
