"""The value of the bytes of memory that nobody has written, from the environment: ``TCUDA_POISON_FREED``."""

from __future__ import annotations

import functools
import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_VARIABLE = "TCUDA_POISON_FREED"
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,2}|[0-9]{1,3}")
_MOST = 0xFF


def chosen(environ: Mapping[str, str] = os.environ) -> int | None:
    """Return the byte in the variable ``TCUDA_POISON_FREED``; None if the variable is not set or is empty.

    Raises:
        ValueError: The variable is no number from 0 to 255.
    """
    text = environ.get(_VARIABLE, "").strip()
    if not text:
        return None
    value = int(text, 16 if text[1:2] in ("x", "X") else 10) if _NUMBER.fullmatch(text) else -1
    if not 0 <= value <= _MOST:
        raise ValueError(
            f"{_VARIABLE} is {text!r}; write the value of one byte, as a hexadecimal number such as 0xCB or as a "
            "decimal number from 0 to 255, or remove the variable."
        )
    return value


@functools.cache
def in_use() -> int | None:
    """Return the byte that the variable had at the initialisation, which calls this function first.

    Raises:
        ValueError: The variable is no number from 0 to 255.
    """
    return chosen()
