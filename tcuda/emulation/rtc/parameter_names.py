"""The names of the parameters of kernels, as a source has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda.emulation.rtc.source import WITH_ARGUMENTS
from tcuda.emulation.rtc.tokens import closing, tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda.emulation.rtc.tokens import Token

_KERNEL = "__global__"
_OPEN, _CLOSE = frozenset("([{<"), frozenset(")]}>")


def parameter_names(source: str, kernel: str) -> list[str]:
    """Return the names of the parameters of ``kernel``; ``""`` for a parameter without a name.

    The list is empty if the source has no definition of the kernel, because a macro makes the definition.

    Args:
        source: The source.
        kernel: The name of the kernel, perhaps with namespaces and with the arguments of a template.
    """
    short = kernel.partition("<")[0].strip().rpartition("::")[2]
    found = [token for token in tokens(source) if token.kind != "directive"]
    for place, token in enumerate(found):
        if token.text == _KERNEL and token.kind == "name":
            names = _names_of(found, place + 1, short)
            if names is not None:
                return names
    return []


def _names_of(found: Sequence[Token], place: int, kernel: str) -> list[str] | None:
    """Return the names of the parameters, if the declaration at ``place`` is of ``kernel``."""
    while place + 1 < len(found) and found[place].text not in (";", "{"):
        if found[place].text in WITH_ARGUMENTS and found[place + 1].text == "(":
            place = closing(found, place + 1)
        elif found[place + 1].text == "(":
            return _parameters(found[place + 2 : closing(found, place + 1)]) if found[place].text == kernel else None
        place += 1
    return None


def _parameters(found: Sequence[Token]) -> list[str]:
    names: list[str] = []
    name, depth, default = "", 0, False
    for token in found:
        if token.text == "," and depth == 0:
            names.append(name)
            name, default = "", False
        elif token.text == "=" and depth == 0:
            default = True
        elif token.text in _OPEN:
            depth += 1
        elif token.text in _CLOSE:
            depth -= 1
        elif token.kind == "name" and depth == 0 and not default:
            name = token.text
    return [*names, name] if found else []
