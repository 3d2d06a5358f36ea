"""The symbols of a shared library: the names of its variables, and of the functions that it exports."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_ELF64 = b"\x7fELF\x02\x01"
_SYMBOLS, _EXPORTED = 2, 11
_OBJECT, _FUNCTION = 1, 2
_WRITABLE = 1
_IN_MEMORY = 2


class Symbol(NamedTuple):
    """A variable or a function of a library.

    Attributes:
        name: The name in the table of symbols.
        place: Its distance from the beginning of the library, in bytes.
        size: The bytes of the variable.
        writable: Whether it is in memory that can be written.
    """

    name: bytes
    place: int
    size: int
    writable: bool


def variables(library: bytes) -> Iterator[Symbol]:
    """Yield the variables in the table of symbols of the ELF file ``library``."""
    return _symbols(library, _SYMBOLS, _OBJECT)


def exported_functions(library: bytes) -> list[str]:
    """Return the names of the functions that the ELF file ``library`` has for others."""
    return [symbol.name.decode(errors="replace") for symbol in _symbols(library, _EXPORTED, _FUNCTION)]


class Section(NamedTuple):
    """A piece of a library that lies in memory.

    Attributes:
        name: The name.
        place: Its distance from the beginning of the library, in bytes.
        size: Its bytes.
        writable: Whether the memory can be written.
    """

    name: bytes
    place: int
    size: int
    writable: bool


def sections(library: bytes) -> list[Section]:
    """Return the sections of the ELF file ``library`` that lie in memory."""
    if not library.startswith(_ELF64):
        return []
    headers = _headers(library)
    (names,) = struct.unpack_from("<H", library, 0x3E)
    start = headers[names][4]
    return [
        Section(
            library[start + name : library.index(b"\0", start + name)], place, size, writable=bool(flags & _WRITABLE)
        )
        for name, _, flags, place, _, size, *_ in headers
        if flags & _IN_MEMORY
    ]


def _headers(library: bytes) -> list[tuple[int, ...]]:
    (sections,) = struct.unpack_from("<Q", library, 0x28)
    size, count = struct.unpack_from("<HH", library, 0x3A)
    return [struct.unpack_from("<IIQQQQIIQQ", library, sections + place * size) for place in range(count)]


def _symbols(library: bytes, table: int, kind: int) -> Iterator[Symbol]:
    if not library.startswith(_ELF64):
        return
    headers = _headers(library)
    count = len(headers)
    for header in headers:
        if header[1] != table:
            continue
        names = headers[header[6]][4]
        for place in range(header[4], header[4] + header[5], header[9]):
            name, info, _, section, value, bytes_ = struct.unpack_from("<IBBHQQ", library, place)
            if info & 0xF == kind and section:  # a symbol of another library has no section
                writable = section < count and bool(headers[section][2] & _WRITABLE)
                text = library[names + name : library.index(b"\0", names + name)]
                yield Symbol(text, value, bytes_, writable)
