"""The static shared memory of kernels, from the symbols of a shared library."""

from __future__ import annotations

import re

from tcuda.emulation.rtc import symbols

_LOCAL = re.compile(rb"_ZZ(\d+)(\w+)")


def sizes(library: bytes) -> dict[str, int]:
    """Return the bytes of the static variables of each function with C linkage, by the name of the function.

    The arrays of functions that a kernel calls, and the arrays of templates, are not counted.
    """
    found: dict[str, int] = {}
    for name, _, size, _ in symbols.variables(library):
        # The name of a static variable is "_ZZ", the length and the name of the function, "E", and the variable.
        match = _LOCAL.fullmatch(name)
        if match is None:
            continue
        length = int(match[1])
        function, rest = match[2][:length], match[2][length:]
        if rest.startswith(b"E"):
            found[function.decode()] = found.get(function.decode(), 0) + size
    return found
