"""The symbols of a shared library: the names of its variables."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_ELF64 = b"\x7fELF\x02\x01"
_SYMBOLS, _OBJECT = 2, 1
_WRITABLE = 1


class Symbol(NamedTuple):
    """A variable of a library.

    Attributes:
        name: The name in the table of symbols.
        place: The distance of the variable from the beginning of the library, in bytes.
        size: The bytes of the variable.
        writable: Whether the variable is in memory that can be written.
    """

    name: bytes
    place: int
    size: int
    writable: bool


def variables(library: bytes) -> Iterator[Symbol]:
    """Yield the variables in the table of symbols of the ELF file ``library``."""
    if not library.startswith(_ELF64):
        return
    (sections,) = struct.unpack_from("<Q", library, 0x28)
    size, count = struct.unpack_from("<HH", library, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", library, sections + place * size) for place in range(count)]
    for header in headers:
        if header[1] != _SYMBOLS:
            continue
        names = headers[header[6]][4]
        for place in range(header[4], header[4] + header[5], header[9]):
            name, info, _, section, value, bytes_ = struct.unpack_from("<IBBHQQ", library, place)
            if info & 0xF == _OBJECT:
                writable = section < count and bool(headers[section][2] & _WRITABLE)
                text = library[names + name : library.index(b"\0", names + name)]
                yield Symbol(text, value, bytes_, writable)
