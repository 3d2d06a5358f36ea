"""The messages about headers that the compiler does not find."""

from __future__ import annotations

import re

from tcuda.emulation.rtc.unsupported import unsupported_header

_MISSING = re.compile(
    r"fatal error: (?:(?P<gcc>[^\n:]+): No such file or directory|'(?P<clang>[^'\n]+)' file not found)[^\n]*"
)
_LIBCUXX = {
    "assert.h": "cassert",
    "complex.h": "complex",
    "ctype.h": None,
    "errno.h": None,
    "float.h": "cfloat",
    "inttypes.h": "cstdint",
    "limits.h": "climits",
    "math.h": "cmath",
    "stdbool.h": None,
    "stddef.h": "cstddef",
    "stdint.h": "cstdint",
    "stdio.h": None,
    "stdlib.h": None,
    "string.h": "cstring",
    "time.h": None,
}
"""The headers of the C library, and the headers of libcu++ with the same names in a namespace."""

_STANDARD = frozenset(
    [
        "algorithm", "any", "array", "atomic", "bit", "bitset", "cassert", "ccomplex", "cctype", "cerrno", "cfenv",
        "cfloat", "charconv", "chrono", "cinttypes", "climits", "clocale", "cmath", "codecvt", "compare", "complex",
        "concepts", "condition_variable", "coroutine", "csetjmp", "csignal", "cstdalign", "cstdarg", "cstdbool",
        "cstddef", "cstdint", "cstdio", "cstdlib", "cstring", "ctgmath", "ctime", "cuchar", "cwchar", "cwctype",
        "deque", "exception", "execution", "filesystem", "forward_list", "fstream", "functional", "future",
        "initializer_list", "iomanip", "ios", "iosfwd", "iostream", "istream", "iterator", "limits", "list", "locale",
        "map", "memory", "memory_resource", "mutex", "new", "numbers", "numeric", "optional", "ostream", "queue",
        "random", "ranges", "ratio", "regex", "scoped_allocator", "set", "shared_mutex", "span", "sstream", "stack",
        "stdexcept", "streambuf", "string", "string_view", "strstream", "system_error", "thread", "tuple",
        "type_traits", "typeindex", "typeinfo", "unordered_map", "unordered_set", "utility", "valarray", "variant",
        "vector", "version"
    ]
)  # fmt: skip
"""The headers of the C++ standard library."""

_IN_LIBCUXX = frozenset(
    ["cassert", "cfloat", "climits", "cmath", "cstddef", "cstdint", "cstring", "initializer_list", "limits",
     "type_traits", "utility"]
)  # fmt: skip


def explained(messages: str) -> str:
    """Return ``messages`` of the compiler in the words of NVRTC, with advice about the headers that are missing."""
    found = [match["gcc"] or match["clang"] for match in _MISSING.finditer(messages)]
    shown = _MISSING.sub(lambda match: f'error: cannot open source file "{match["gcc"] or match["clang"]}"', messages)
    return "\n".join([shown, *dict.fromkeys(map(_advice, found))])


def _advice(header: str) -> str:
    unsupported = unsupported_header(header)
    if unsupported is not None:
        return unsupported
    if header not in _STANDARD and header not in _LIBCUXX:
        return f'Name the folder of "{header}" with the option -I.'
    twin = header if header in _IN_LIBCUXX else _LIBCUXX.get(header)
    advice = f"Include <cuda/std/{twin}>, or pass" if twin in _IN_LIBCUXX else "Pass"
    return (
        f"NVRTC has no headers of the host, such as <{header}>. Functions such as printf(), assert(), sin() and "
        f"memcpy() need no header. {advice} backend='nvcc' to RawKernel or RawModule, with which a source can include "
        "headers of the host."
    )
