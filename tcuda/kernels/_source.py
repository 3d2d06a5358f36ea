"""A search for kernels in a source. The search does not know the preprocessor, so only a compiler can tell for sure."""

from __future__ import annotations

import re

_COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_EXTERN_C = re.compile(r'extern\s*""\s*\{')
_LAUNCH_BOUNDS = re.compile(r"__launch_bounds__\s*\([^()]*\)")
_NAME = re.compile(r"[\w\s]*?\b([A-Za-z_]\w*)\s*\(")


def untemplated_kernels(source: str) -> list[str]:
    """Return the names of the kernels in ``source`` that are neither templates nor in a namespace or a class."""
    text = _COMMENT_OR_STRING.sub(lambda found: '""' if found[0][0] == '"' else " ", source)
    names: dict[str, None] = {}
    for found in re.finditer(r"\b__global__\b", text):
        before = text[: found.start()]
        # The braces of extern "C" open no namespace. Their closing braces may leave a depth below 0.
        outer = _EXTERN_C.sub("", before)
        depth = outer.count("{") - outer.count("}")
        declaration = before[max(before.rfind(character) for character in ";{}") + 1 :]
        named = _NAME.match(_LAUNCH_BOUNDS.sub("", text[found.end() :]))
        if named is not None and depth <= 0 and re.search(r"\btemplate\b", declaration) is None:
            names[named[1]] = None
    return list(names)
