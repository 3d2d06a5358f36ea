"""Arrays in shared memory whose size the launch gives, such as ``extern __shared__ float rows[];``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda.emulation.rtc.tokens import Token, closing, tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SHARED = "__shared__"
_ALIGNMENTS = frozenset(["__align__", "alignas", "__attribute__"])
_SYMBOL = "tcuda_dynamic_shared"


def rewritten(source: str, found: Sequence[Token], outside: Mapping[int, bool]) -> str:
    """Return ``source`` with plain C++ declarations in the places of the arrays.

    Args:
        source: The source.
        found: The tokens of the source.
        outside: For the index of each token ``extern``, whether the token is outside of functions.
    """
    edits = []
    for index, token in enumerate(found):
        if token.kind == "directive":
            if _SHARED in token.text and "extern" in token.text:
                edits.append((token.start, token.end, _in_macro(token.text)))
        elif token.text == "extern" and token.kind == "name":
            edit = _edit(source, found, index, outside.get(index, False))
            if edit is not None:
                edits.append(edit)
    for start, end, text in reversed(edits):
        # The new text has as many lines as the old text, so that the lines of messages stay right.
        source = source[:start] + text + "\n" * (source.count("\n", start, end) - text.count("\n")) + source[end:]
    return source


def _in_macro(line: str) -> str:
    """Return the line of a macro with its arrays rewritten, as in a function."""
    place = line.find("extern")
    body = line[place:]
    found = list(tokens(body.replace("\\\n", " \n")))
    for index, token in enumerate(found):
        if token.text == "extern":
            ending = len(found)
            stop = next((at for at in range(index, ending) if found[at].text == ";"), ending)
            declaration = _declaration(body, [part for part in found[index:stop] if part.text != "\\"], False)
            if declaration is not None:
                end = found[stop].start if stop < ending else len(body)
                return line[: place + token.start] + declaration + line[place + end :]
    return line


def _edit(source: str, found: Sequence[Token], index: int, outside: bool) -> tuple[int, int, str] | None:
    stop = next((at for at in range(index, len(found)) if found[at].text == ";"), None)
    if stop is None or all(token.text != _SHARED for token in found[index:stop]):
        return None
    declaration = _declaration(source, found[index:stop], outside)
    return None if declaration is None else (found[index].start, found[stop].start, declaration)


def _declaration(source: str, found: Sequence[Token], outside: bool) -> str | None:
    """Return the declaration of the tokens ``found``, which begin with ``extern``; None if they declare no array."""
    kept: list[Token] = []
    place = 1
    while place < len(found):
        token = found[place]
        if token.text in ("[[", "{", "}", "=", "("):
            return None
        if token.text in _ALIGNMENTS and place + 1 < len(found) and found[place + 1].text == "(":
            place = closing(found, place + 1) + 1
            continue
        if token.text != _SHARED:
            kept.append(token)
        place += 1
    first = next((at for at, token in enumerate(kept) if token.text == "["), len(kept))
    if first < 2 or kept[first - 1].kind != "name":
        return None
    name = kept[first - 1].text
    kind = " ".join(token.text for token in kept[: first - 1])
    rest = "".join(token.text for token in kept[closing(kept, first) + 1 :]) if first < len(kept) else ""
    if outside:
        return f'extern {kind} {name}[]{rest} __asm__("{_SYMBOL}")'
    if first == len(kept):  # one element, and no array
        return f"{kind}& {name} = *static_cast<{kind}*>(tcuda::dynamic_shared())"
    if rest:
        return f"{kind} (*const {name}){rest} = reinterpret_cast<{kind} (*){rest}>(tcuda::dynamic_shared())"
    return f"{kind}* const {name} = static_cast<{kind}*>(tcuda::dynamic_shared())"
