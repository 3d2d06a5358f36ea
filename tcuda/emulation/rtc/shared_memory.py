"""The variables in shared memory of a library, with the names and the shapes that the source gives them."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from tcuda._base import symbols
from tcuda.emulation.rtc.global_variables import readable
from tcuda.emulation.rtc.shared_declarations import Declaration, declarations

_ORIGIN, _DYNAMIC = b"tcuda_module", b"tcuda_dynamic_shared"
_LOCAL = re.compile(r"E(\d+)")
_STATIC = re.compile(rb"_ZZ(\d+)(\w+)")
_SIZES = {
    **dict.fromkeys(["bool", "char", "signed char", "unsigned char", "int8_t", "uint8_t"], 1),
    **dict.fromkeys(
        ["short", "unsigned short", "int16_t", "uint16_t", "half", "__half", "float16", "__nv_bfloat16"], 2
    ),
    **dict.fromkeys(["int", "unsigned", "unsigned int", "float", "int32_t", "uint32_t"], 4),
    **dict.fromkeys(["double", "long long", "unsigned long long", "long", "unsigned long", "size_t"], 8),
    **dict.fromkeys(["int64_t", "uint64_t", "float2", "int2", "uint2"], 8),
    **dict.fromkeys(["float4", "int4", "uint4", "double2"], 16),
}
"""The sizes of types that a source may name."""


class SharedVariable(NamedTuple):
    """A variable in shared memory.

    Attributes:
        name: The name in the source.
        type: The type of the elements; an empty text if the source does not tell.
        place: The distance of the variable from the variable ``tcuda_module`` of the library, in bytes.
        size: The bytes of the variable.
        shape: The lengths of the axes; None if they are not known, as for memory whose size the launch gives.
        itemsize: The bytes of an element; 0 if they are not known.
        dynamic: Whether the launch gives the size, and ``size`` is the most that is possible.
    """

    name: str
    type: str
    place: int
    size: int
    shape: tuple[int, ...] | None
    itemsize: int
    dynamic: bool = False


def static_sizes(library: bytes) -> dict[str, int]:
    """Return the bytes of the static variables of each function with C linkage, by the name of the function.

    The arrays of functions that a kernel calls, and the arrays of templates, are not counted.
    """
    found: dict[str, int] = {}
    for name, _, size, _ in symbols.variables(library):
        # The name of a static variable is "_ZZ", the length and the name of the function, "E", and the variable.
        match = _STATIC.fullmatch(name)
        if match is None:
            continue
        length = int(match[1])
        function, rest = match[2][:length], match[2][length:]
        if rest.startswith(b"E"):
            found[function.decode()] = found.get(function.decode(), 0) + size
    return found


def shared_variables(library: bytes, source: str) -> list[SharedVariable]:
    """Return the variables in shared memory, in the order of their addresses.

    Args:
        library: The compiled library.
        source: The source.
    """
    declared = declarations(source)
    if not declared:
        return []
    fixed = {one.name: one for one in declared if not one.dynamic}
    dynamic = next((one for one in declared if one.dynamic), None)
    found, origin = [], 0
    for name, place, size, _ in symbols.variables(library):
        if name == _ORIGIN:
            origin = place
        elif name == _DYNAMIC and dynamic is not None:
            found.append(
                SharedVariable(dynamic.name, dynamic.type, place, size, None, _SIZES.get(dynamic.type, 0), True)
            )
        else:
            own = fixed.get(_name(name.decode(errors="replace")))
            if own is not None and size:
                found.append(_variable(own, place, size))
    return sorted({one._replace(place=one.place - origin) for one in found}, key=lambda one: one.place)


def _variable(own: Declaration, place: int, size: int) -> SharedVariable:
    itemsize = _SIZES.get(own.type, 0)
    known = math.prod(length for length in own.lengths if length is not None)
    lengths = [length for length in own.lengths if length is not None]
    missing = len(own.lengths) - len(lengths)
    if not missing and known and size % known == 0:
        return SharedVariable(own.name, own.type, place, size, tuple(lengths), size // known)
    if missing == 1 and itemsize and known and size % (itemsize * known) == 0:
        rest = size // (itemsize * known)
        shape = tuple(rest if length is None else length for length in own.lengths)
        return SharedVariable(own.name, own.type, place, size, shape, itemsize)
    return SharedVariable(own.name, own.type, place, size, None, itemsize)


def _name(symbol: str) -> str:
    """Return the name in the source of a variable with a mangled name, which may be one of a function."""
    if not symbol.startswith("_ZZ"):
        return readable(symbol).rpartition("::")[2]
    for match in reversed(list(_LOCAL.finditer(symbol))):
        rest = symbol[match.end() :]
        length = int(match[1])
        # A number behind the name tells variables of the same name apart.
        if len(rest) >= length and re.fullmatch(r"(_\d+|__\d+_)?", rest[length:]):
            return rest[:length]
    return ""
