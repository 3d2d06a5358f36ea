"""The lines of the preprocessor: their names and bodies, and the parts of a source that conditions may leave out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcuda.emulation.rtc.tokens import Token

_PARTS = re.compile(r"\s*#\s*(\w*)\s*(.*)", re.DOTALL)
_INCLUDE = re.compile(r'[<"]([^>"]*)[>"]')
_FALSE = frozenset(["0", "false"])


def parts(token: Token) -> tuple[str, str]:
    """Return the name and the rest of the line ``token``, such as ``("define", "N 3")``."""
    match = _PARTS.fullmatch(token.text)
    return (match[1], match[2]) if match is not None else ("", "")


def included(token: Token) -> str | None:
    """Return the file that the line ``token`` includes; None if the line includes none."""
    name, rest = parts(token)
    match = _INCLUDE.match(rest) if name in ("include", "include_next", "import") else None
    return match[1] if match is not None else None


@dataclass
class Conditions:
    """The conditions around the tokens of a source, which are given in order.

    Attributes:
        open: For each condition around the next token, whether the condition is surely false.
    """

    open: list[bool]

    def pass_over(self, token: Token) -> None:
        """Update the conditions after the line ``token``."""
        name, rest = parts(token)
        if name in ("if", "ifdef", "ifndef"):
            self.open.append(name == "if" and rest.split("//")[0].split("/*")[0].strip() in _FALSE)
        elif name in ("else", "elif", "elifdef", "elifndef") and self.open:
            self.open[-1] = False
        elif name == "endif" and self.open:
            self.open.pop()

    @property
    def false(self) -> bool:
        """Whether the next token is surely left out."""
        return any(self.open)

    @property
    def unknown(self) -> bool:
        """Whether only the preprocessor can tell if the next token is left out."""
        return bool(self.open)
