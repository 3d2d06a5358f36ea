"""The static shared memory of kernels, from the symbols of a shared library."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ELF64 = b"\x7fELF\x02\x01"
_SYMBOLS, _OBJECT = 2, 1
_LOCAL = re.compile(rb"_ZZ(\d+)(\w+)")


def sizes(library: bytes) -> dict[str, int]:
    """Return the bytes of the static variables of each function with C linkage, by the name of the function.

    The arrays of functions that a kernel calls, and the arrays of templates, are not counted.
    """
    found: dict[str, int] = {}
    for name, size in _objects(library):
        # The name of a static variable is "_ZZ", the length and the name of the function, "E", and the variable.
        match = _LOCAL.fullmatch(name)
        if match is None:
            continue
        length = int(match[1])
        function, rest = match[2][:length], match[2][length:]
        if rest.startswith(b"E"):
            found[function.decode()] = found.get(function.decode(), 0) + size
    return found


def _objects(library: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield the name and the size of each variable in the table of symbols."""
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
            name, info, _, _, _, bytes_ = struct.unpack_from("<IBBHQQ", library, place)
            if info & 0xF == _OBJECT:
                yield library[names + name : library.index(b"\0", names + name)], bytes_
