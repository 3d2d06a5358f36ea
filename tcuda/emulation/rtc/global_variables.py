"""The global variables of a source, which are memory of a device, from the symbols of the compiled library."""

from __future__ import annotations

import re
from typing import NamedTuple

from tcuda._base import symbols
from tcuda.emulation.rtc.shared_declarations import declarations

_OWN = re.compile(
    rb"_ZNK?5tcuda.*|_ZL20tcuda_registration.*|_ZL8warpSize|_ZT.*|tcuda_.*|threadIdx|blockIdx|blockDim|gridDim"
)
"""The variables of the headers."""

_OF_THE_COMPILER = re.compile(rb"_ZT.*|_DYNAMIC|__dso_handle|completed\.\d+|_ZGV.*|.*\.\.\d+|_ZSt.*|_ZL.*ioinit")
_LOCAL = b"_ZZ"
"""The beginning of the names of the static variables of functions, such as arrays in shared memory."""

_ORIGIN = b"tcuda_module"


class Variable(NamedTuple):
    """A global variable.

    Attributes:
        name: The name in the source, with the namespaces.
        place: The distance of the variable from the variable ``tcuda_module`` of the library, in bytes.
        size: The bytes of the variable.
    """

    name: str
    place: int
    size: int


def variables(library: bytes, source: str) -> list[Variable]:
    """Return the global variables that kernels can write, in the order of their addresses.

    Args:
        library: The compiled library.
        source: The source.
    """
    shared = {declared.name for declared in declarations(source)}
    found = []
    origin = 0
    for name, place, size, writable in symbols.variables(library):
        if name == _ORIGIN:
            origin = place
        if not writable or not size or name.startswith(_LOCAL) or _OWN.fullmatch(name):
            continue
        if _OF_THE_COMPILER.fullmatch(name):
            continue
        shown = readable(name.decode(errors="replace"))
        if shown.rpartition("::")[2] not in shared:
            found.append((place, size, shown))
    return [Variable(shown, place - origin, size) for place, size, shown in sorted(set(found))]


def readable(name: str) -> str:
    """Return the name in the source of the variable with the mangled name ``name``."""
    if not name.startswith("_Z"):
        return name
    rest = name[2:].lstrip("NL")
    parts = []
    while (match := re.match(r"L?(\d+)", rest)) is not None:
        end = match.end() + int(match[1])
        parts.append(rest[match.end() : end])
        rest = rest[end:]
    return "::".join("(anonymous)" if part == "_GLOBAL__N_1" else part for part in parts) or name
