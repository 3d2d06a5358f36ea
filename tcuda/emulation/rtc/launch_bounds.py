"""The largest number of threads of a block, which ``__launch_bounds__`` of a kernel gives."""

from __future__ import annotations

import ast
import operator
import re
from typing import TYPE_CHECKING

from tcuda.emulation.rtc import directives
from tcuda.emulation.rtc.tokens import tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tcuda.emulation.rtc.tokens import Token

SYMBOL = "tcuda_launch_bounds"
"""The variable of a library that has the largest number of threads of a block for each kernel."""

_QUALIFIER = "__launch_bounds__"
_MOST_EXPANSIONS = 16
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}


def macros(found: Iterable[Token]) -> dict[str, str]:
    """Return the macros without parameters that the source defines, by name."""
    known: dict[str, str] = {}
    for token in found:
        if token.kind == "directive" and directives.parts(token)[0] == "define":
            match = re.fullmatch(r"(\w+)\s+(.+)", directives.parts(token)[1], re.DOTALL)
            if match is not None:
                known[match[1]] = match[2]
    return known


def threads(declaration: Sequence[Token], macros: Mapping[str, str]) -> int | None:
    """Return the first number of ``__launch_bounds__`` in ``declaration``; None if only the compiler can tell."""
    texts = [token.text for token in declaration]
    if _QUALIFIER not in texts:
        return None
    depth, argument = 0, []
    for text in texts[texts.index(_QUALIFIER) + 1 :]:
        depth += (text == "(") - (text == ")")
        if depth == 0 or (depth == 1 and text == ","):
            break
        argument.append(text)
    return _value(_expanded(argument[1:], macros))


def definition(kernels: Iterable[tuple[str, str, int | None]], names: Iterable[str]) -> str:
    """Return the line of C++ that defines the variable for :func:`parsed`; an empty text if no kernel has a bound.

    Args:
        kernels: The qualified name of each kernel, the name in the list of the module, and the bound.
        names: The name expressions of the caller.
    """
    bounded = [(name, shown, most) for name, shown, most in kernels if most is not None]
    bounds = {name: most for name, _, most in bounded}
    listed = {shown: most for _, shown, most in bounded}
    for name in names:
        template = re.sub(r"<.*", "", name, flags=re.DOTALL)
        known = bounds.get(template.strip().removeprefix("&").removeprefix("::").strip())
        if known is not None:
            listed[name] = known
    if not listed:
        return ""
    text = "".join(f"{number}\\t{escaped(name)}\\n" for name, number in listed.items())
    return f'extern "C" {{ extern const char {SYMBOL}[]; const char {SYMBOL}[] = "{text}"; }}\n'


def parsed(text: str) -> dict[str, int]:
    """Return the bounds of kernels by name, from the variable of a library."""
    lines = [line.partition("\t") for line in text.splitlines()]
    return {name: int(number) for number, _, name in lines}


def escaped(text: str) -> str:
    """Return ``text`` as it stands between the quotes of a string literal of C++."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def _expanded(texts: Sequence[str], macros: Mapping[str, str]) -> list[str]:
    for _ in range(_MOST_EXPANSIONS):
        if not any(text in macros for text in texts):
            break
        texts = [
            part for text in texts for part in ([t.text for t in tokens(macros[text])] if text in macros else [text])
        ]
    return list(texts)


def _value(texts: Sequence[str]) -> int | None:
    """Return the value of an expression of integers; None for another expression."""
    plain = ["//" if text == "/" else re.sub(r"(?<=\d)[uUlL]+$", "", text) for text in texts]
    try:
        return _evaluated(ast.parse("".join(plain), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError):
        return None


def _evaluated(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluated(node.left), _evaluated(node.right))
    raise ValueError("not a number")
