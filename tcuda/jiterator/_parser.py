"""The search for the kernel in the code of a user."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_SKIPPED = re.compile(
    r"""
      //(?:[^\n\\]|\\.|\\\n)*                 # a comment up to the end of the line
    | /\*.*?\*/                               # a comment
    | ^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*          # a line of the preprocessor
    | (?:u8|[uUL])?R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"
    | "(?:[^"\\\n]|\\.)*"
    | (?<!\w)'(?:[^'\\\n]|\\.)+'
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_TOKEN = re.compile(r"[A-Za-z_]\w*|[()\[\]{}<>;=:,]|\S")
_OPENING = {"(": ")", "[": "]", "{": "}"}
_NO_NAMES = frozenset(
    [
        *("__attribute__", "__declspec", "__launch_bounds__", "alignas", "catch", "decltype", "for", "if", "noexcept"),
        *("requires", "sizeof", "switch", "while"),
    ]
)
"""Words that may stand before a bracket and are not the name of a function."""

_SPECIFIERS = frozenset(
    [
        *("char", "class", "const", "consteval", "constexpr", "double", "enum", "extern", "float", "inline", "int"),
        *("long", "short", "signed", "static", "struct", "typename", "unsigned", "volatile"),
    ]
)
"""Words that stand beside the name of a type, or that make up one type together."""

_EXAMPLE = "template <typename T> T my_kernel(T x, T y) { return x * y; }"


class _Token(NamedTuple):
    text: str
    position: int


class Function(NamedTuple):
    """A function that the code defines.

    Attributes:
        name: The name of the function.
        is_template: Whether ``template <...>`` stands before the function.
        line: The line of the name; the first line of the code is line 1.
    """

    name: str
    is_template: bool
    line: int


def kernel_of(code: str) -> Function:
    """Return the kernel of ``code``: the last function that the code defines.

    Raises:
        TypeError: ``code`` is not a string.
        ValueError: The code has unbalanced brackets or no function, or its last function is not a template.
    """
    if not isinstance(code, str):
        raise TypeError(f"the code of a kernel is a string, not {type(code).__name__}")
    found = list(_functions(code))
    if not found:
        raise ValueError(f"Couldn't parse code: it defines no function. Write a template, such as {_EXAMPLE!r}\n{code}")
    last = found[-1]
    if not last.is_template:
        raise ValueError(
            f"Couldn't parse code: line {last.line} defines {last.name!r}, the last function and so the kernel, "
            f"without 'template <...>' before it. Write a template, such as {_EXAMPLE!r}\n{code}"
        )
    return last


def _functions(code: str) -> Iterator[Function]:
    """Yield the functions that are defined outside of functions and classes."""
    declaration: list[_Token] = []  # the tokens since the end of the last declaration
    tokens = list(_tokens(code))
    partner = _partners(code, tokens)
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if token.text == "{":
            name = _declared(declaration)
            if name is not None:
                texts = [part.text for part in declaration]
                yield Function(name.text, "template" in texts, _line(code, name.position))
            if declaration and declaration[0].text == "namespace":
                declaration = []
            else:
                place = partner[place]
                # The brackets of an initializer and of a class stand within a declaration, which ends at the semicolon.
                declaration = [] if name is not None else [*declaration, token, tokens[place]]
        elif token.text in (";", "}"):
            declaration = []
        else:
            declaration.append(token)
        place += 1


def _declared(declaration: list[_Token]) -> _Token | None:
    """Return the name in the head of a function; None if ``declaration`` is no head of a function."""
    head = _without_template(declaration)
    depth = angles = 0
    for place, token in enumerate(head):
        if token.text in _OPENING:
            if token.text == "(" and depth == angles == 0 and place and _is_name(head[place - 1].text):
                return head[place - 1] if _is_type(head[: place - 1]) else None
            depth += 1
        elif token.text in _OPENING.values():
            depth -= 1
        elif depth == 0 and token.text == "<":
            angles += 1
        elif depth == 0 and token.text == ">":
            angles -= 1
        elif depth == angles == 0 and token.text == "=":
            return None
    return None


def _without_template(declaration: list[_Token]) -> list[_Token]:
    """Return ``declaration`` without a leading ``template <...>``."""
    while [token.text for token in declaration[:2]] == ["template", "<"]:
        depth = angles = end = 0
        while end < len(declaration) and (end < 2 or angles):
            text = declaration[end].text
            if text in _OPENING:
                depth += 1
            elif text in _OPENING.values():
                depth -= 1
            elif depth == 0 and text in ("<", ">"):
                angles += 1 if text == "<" else -1
            end += 1
        declaration = declaration[end:]
    return declaration


def _is_name(text: str) -> bool:
    return _is_word(text) and text not in _NO_NAMES


def _is_word(text: str) -> bool:
    return text[0].isalpha() or text[0] == "_"


def _is_type(tokens: list[_Token]) -> bool:
    """Return whether ``tokens``, which stand before the name of a function, end with a type."""
    if not tokens or not (_is_word(tokens[-1].text) or tokens[-1].text in (">", "*", "&", ")", "]")):
        return False
    names = 0
    for token in reversed(tokens):
        if not _is_word(token.text):
            break
        names += token.text not in _SPECIFIERS and not token.text.startswith("__")
    return names <= 1  # ``T my kernel(T x)`` has two names before the name of the function, so the code is wrong.


def _partners(code: str, tokens: list[_Token]) -> dict[int, int]:
    """Return the place of the closing bracket for each opening bracket."""
    partner: dict[int, int] = {}
    open_places: list[int] = []
    for place, token in enumerate(tokens):
        if token.text in _OPENING:
            open_places.append(place)
        elif token.text in _OPENING.values():
            if not open_places:
                raise _unbalanced(code, token, "closes no bracket")
            opening = open_places.pop()
            if _OPENING[tokens[opening].text] != token.text:
                line = _line(code, tokens[opening].position)
                raise _unbalanced(code, token, f"closes the {tokens[opening].text!r} of line {line}")
            partner[opening] = place
    if open_places:
        raise _unbalanced(code, tokens[open_places[-1]], "is never closed")
    return partner


def _unbalanced(code: str, token: _Token, problem: str) -> ValueError:
    return ValueError(
        f"Couldn't parse code: the {token.text!r} in line {_line(code, token.position)} {problem}\n{code}"
    )


def _tokens(code: str) -> Iterator[_Token]:
    """Yield the tokens of ``code`` without comments, literals and lines of the preprocessor."""
    blank = _SKIPPED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), code)
    for found in _TOKEN.finditer(blank):
        yield _Token(found[0], found.start())


def _line(code: str, position: int) -> int:
    return code.count("\n", 0, position) + 1
