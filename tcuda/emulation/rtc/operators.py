"""The operators whose results depend on the processor: shifts, and casts of floating-point numbers to integers.

``tcuda/operators.h`` has the operators of a GPU. The new source uses them where the old source has the operators of
the language, and keeps the lines. ``a << b`` becomes ``a << ::tcuda::left << b``: both have the same precedence, and
the new expression calls functions of the header. ``(int)x`` becomes ``(int)(::tcuda::Cast<int>)x``.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from tcuda.emulation.rtc.tokens import Token, closing, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Insertion = tuple[int, str]

_NAMES = {"<": "left", ">": "right"}
_DEPTHS = {"(": 1, "[": 1, "{": 1, "[[": 2, ")": -1, "]": -1, "}": -1, "]]": -2}
"""The brackets that a sign opens, less the brackets that the sign closes."""
_PARTS = frozenset(["unsigned", "signed", "int", "char", "short", "long"])
"""The words of the types of integers of the language."""
_QUALIFIERS = frozenset(["const", "volatile", "typename"])
_INTEGERS = frozenset(
    [f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    + ["size_t", "ptrdiff_t", "intptr_t", "uintptr_t", "ssize_t", "uchar", "ushort", "uint", "ulong"]
)
_OTHERS = frozenset(["void", "bool", "float", "double", "half", "__half", "float16", "bfloat16"])
"""Types for which a cast has nothing to change."""
_BEFORE_OPERAND = frozenset("([{;,=+-*/%&|^~!?:<>")
_STATEMENTS = frozenset(["return", "case", "else", "do", "and", "or", "xor", "not", "bitand", "bitor", "compl"])
_NO_OPERAND = frozenset(
    [
        *("and", "or", "xor", "bitand", "bitor", "not_eq", "const", "volatile", "noexcept", "override", "final"),
        *("mutable", "throw", "requires", "try", "__attribute__", "__restrict__", "__device__", "__host__"),
    ]
)
"""Names that follow a list of parameters or an operand in brackets."""
_AFTER_COUNT = frozenset(")]};,&|^?:<>=!")
_LITERAL = re.compile(r"(?:0[xX][0-9a-fA-F']+|[1-9][0-9']*|0)(?=[uUlLzZ]*$)")
_DEFINITION = re.compile(r"[ \t]*#[ \t]*define[ \t]+\w+(?:\([^)]*\))?")
_LEAST_WIDTH = 32


def rewritten(source: str) -> str:
    """Return ``source`` with the operators of a GPU."""
    found = list(tokens(source))
    types = _types(found)
    insertions = list(_insertions(source, [token for token in found if token.kind != "directive"], types))
    for token in found:
        definition = _DEFINITION.match(token.text) if token.kind == "directive" else None
        if definition is not None:
            body = token.text[definition.end() :]
            start = token.start + definition.end()
            insertions += [(start + place, text) for place, text in _insertions(body, list(tokens(body)), types)]
    parts, last = [], 0
    for place, text in sorted(insertions, key=lambda insertion: insertion[0]):
        parts += [source[last:place], text]
        last = place
    return "".join([*parts, source[last:]])


def _insertions(source: str, found: Sequence[Token], types: frozenset[str]) -> Iterator[Insertion]:
    yield from _shifts(found)
    for index, token in enumerate(found):
        if token.text == "(" and token.kind == "sign":
            yield from _cast(source, found, index, types)
        elif token.text == "static_cast" and token.kind == "name":
            yield from _static_cast(source, found, index)
        elif token.kind == "name" and (token.text in types or token.text in _PARTS or token.text in _INTEGERS):
            yield from _call(found, index, types)


def _types(found: Sequence[Token]) -> frozenset[str]:
    """Return the names of types that the source defines, or that are parameters of its templates."""
    names: set[str] = set()
    for index, token in enumerate(found):
        after = found[index + 1].text if index + 1 < len(found) else ""
        if token.kind == "directive":
            words = token.text.replace("#", " ", 1).split()
            if len(words) > 2 and words[0] == "define" and _is_integer(words[2:]):
                names.add(words[1])
        elif token.text in ("typename", "class"):
            if index and found[index - 1].text in ("<", ","):
                names.add(after)
        elif token.text == "using":
            if _is(found, index + 2, "="):
                names.add(after)
        elif token.text == "typedef":
            end = next((at for at in range(index, len(found)) if found[at].text == ";"), index)
            if found[end - 1].kind == "name" and all(part.text not in "*&([" for part in found[index:end]):
                names.add(found[end - 1].text)
    return frozenset(name for name in names if name.isidentifier())


def _shifts(found: Sequence[Token]) -> Iterator[Insertion]:
    """Yield the insertions for shifts. The brackets before ``>>`` tell whether the two signs close templates."""
    levels = [0]  # for each bracket around the token, the number of signs "<" that may begin arguments of a template
    skipped = -1
    for index, token in enumerate(found):
        text = token.text
        if token.kind != "sign" or index <= skipped:
            continue
        depth = _DEPTHS.get(text, 0)
        if depth:
            levels = [*levels, *[0] * depth] if depth > 0 else levels[:depth] or [0]
        elif text == ";" or (text in "&|" and _follows(found, index, text) and not _ends_type(found, index + 2)):
            levels[-1] = 0
        elif text in _NAMES and _follows(found, index, text):
            skipped = index + 1
            if text == ">" and levels[-1] > 1 and not _begins_operand(found, index + 2):
                levels[-1] -= 2
            elif not _is_declared_or_folded(found, index):
                yield from _shift(found, index)
        elif text == "<" and index and found[index - 1].kind == "name":
            levels[-1] += 1
        elif text == ">" and levels[-1]:
            levels[-1] -= 1


def _shift(found: Sequence[Token], index: int) -> Iterator[Insertion]:
    assigned = _is(found, index + 2, "=") and found[index + 2].start == found[index + 1].end
    last = index + (2 if assigned else 1)
    if not _has_small_count(found, last + 1):
        name = _NAMES[found[index].text]
        yield found[last].end, " ::tcuda::count =" if assigned else f" ::tcuda::{name} {found[index].text * 2}"


def _has_small_count(found: Sequence[Token], index: int) -> bool:
    """Return whether the operand at ``index`` is a literal below every width, which needs no other operator."""
    if index >= len(found) or found[index].kind != "number":
        return False
    literal = _LITERAL.match(found[index].text)
    if literal is None or (index + 1 < len(found) and found[index + 1].text not in _AFTER_COUNT):
        return False
    return int(literal[0].replace("'", ""), 0) < _LEAST_WIDTH


def _is_declared_or_folded(found: Sequence[Token], index: int) -> bool:
    before = found[index - 1].text if index else ""
    return before in ("operator", ".", "") or _is(found, index + 2, ".")


def _begins_operand(found: Sequence[Token], index: int) -> bool:
    """Return whether an operand and no declaration can follow at ``index``."""
    return index < len(found) and (found[index].kind in ("number", "character") or found[index].text in ("-", "~", "!"))


def _ends_type(found: Sequence[Token], index: int) -> bool:
    return index < len(found) and found[index].text in (",", ">", ")", ".")


def _cast(source: str, found: Sequence[Token], index: int, types: frozenset[str]) -> Iterator[Insertion]:
    """Yield the insertion if the bracket at ``index`` begins a cast such as ``(int)x``."""
    end = index + 1
    while end < len(found) and (found[end].kind == "name" or found[end].text == "::"):
        end += 1
    words = [token.text for token in found[index + 1 : end]]
    if not words or not _is(found, end, ")") or end + 1 >= len(found):
        return
    before = found[index - 1] if index else None
    known = _is_integer(words) or words[-1] in types
    if not (
        before is None or before.text in _STATEMENTS or before.text in _BEFORE_OPERAND or (before.text == ")" and known)
    ):
        return
    after = found[end + 1]
    if after.kind == "name":
        is_cast = after.text not in _NO_OPERAND
    elif after.kind == "sign":
        is_cast = known and (after.text in "(~!" or (after.text in "-+*&::" and not (before and before.text == ")")))
    else:
        is_cast = known or after.kind == "number"
    if is_cast and _may_be_integer(words):
        yield found[end].end, f"(::tcuda::Cast< {source[found[index + 1].start : found[end].start]}>)"


def _static_cast(source: str, found: Sequence[Token], index: int) -> Iterator[Insertion]:
    if not _is(found, index + 1, "<"):
        return
    depth, end = 0, index + 1
    while end < len(found):
        text = found[end].text
        depth += (text in ("<", "(")) - (text in (">", ")")) - 3 * (text == ">>>")
        if depth <= 0:
            break
        end += 1
    words = [token.text for token in found[index + 2 : end]]
    if not _is(found, end + 1, "(") or not {"*", "&"}.isdisjoint(words) or not _may_be_integer(words):
        return
    last = closing(found, end + 1)
    kind = source[found[index + 2].start : found[end].start]
    yield found[end + 1].end, f"(::tcuda::Cast< {kind}>)("
    yield found[last].start, ")"


def _call(found: Sequence[Token], index: int, types: frozenset[str]) -> Iterator[Insertion]:
    """Yield the insertions if the name of a type at ``index`` begins a cast such as ``int(x)``."""
    if not _is(found, index + 1, "(") or index == 0:
        return
    before = found[index - 1].text
    if before in ";{}" or (before not in _BEFORE_OPERAND and before not in ("return", "case")):
        return
    last = closing(found, index + 1)
    inside = found[index + 2 : last]
    depth = 0
    for token, following in itertools.pairwise([*inside, found[last]]):
        depth += _DEPTHS.get(token.text, 0)
        if (token.text == "," and depth == 0) or token.text == following.text == ".":
            return  # several arguments, or a pack
    declares = all(token.text in _PARTS | _OTHERS | _INTEGERS | types | _QUALIFIERS for token in inside)
    if declares or inside[0].text in _PARTS | _OTHERS | _QUALIFIERS or _is(found, last + 1, "("):
        return
    yield found[index + 1].end, f"(::tcuda::Cast< {found[index].text}>)("
    yield found[last].start, ")"


def _is_integer(words: Sequence[str]) -> bool:
    kept = [word for word in words if word not in _QUALIFIERS]
    return bool(kept) and (_PARTS.issuperset(kept) or kept[-1] in _INTEGERS)


def _may_be_integer(words: Sequence[str]) -> bool:
    return bool(words) and words[-1] not in _OTHERS and words[0] not in ("struct", "class", "union", "enum")


def _is(found: Sequence[Token], index: int, text: str) -> bool:
    return index < len(found) and found[index].text == text and found[index].kind == "sign"


def _follows(found: Sequence[Token], index: int, text: str) -> bool:
    """Return whether the sign ``text`` follows the token at ``index`` without a space."""
    return _is(found, index + 1, text) and found[index + 1].start == found[index].end
