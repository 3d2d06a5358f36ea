"""Columns of numbers as compressed text: a history of a million events stays small, and a browser reads it at once."""

from __future__ import annotations

import base64
import zlib
from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_WIDTH = 8  # bytes
_ABSENT = (1 << 64) - 1


def column(numbers: Iterable[int | None]) -> tuple[int, str]:
    """Return numbers from 0 to 2**64 - 2, or None, as their count and a text.

    The text is base64, in the alphabet for addresses, of the deflated bytes. The first bytes of all numbers come first,
    then the second bytes of all numbers, and so on. The high bytes are nearly always equal, and take no room when they
    are together.
    """
    values = array("Q", [_ABSENT if number is None else number for number in numbers])
    if values.itemsize != _WIDTH:
        raise RuntimeError(f"Numbers of this machine have {values.itemsize} bytes, not {_WIDTH}.")
    packed = values.tobytes()
    planes = b"".join(packed[place::_WIDTH] for place in _PLACES)
    deflated = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return len(values), base64.urlsafe_b64encode(deflated.compress(planes) + deflated.flush()).decode()


# The place of the lowest byte depends on the machine.
_PLACES = range(_WIDTH) if array("Q", [1]).tobytes()[0] == 1 else range(_WIDTH - 1, -1, -1)


__all__ = ["column"]
