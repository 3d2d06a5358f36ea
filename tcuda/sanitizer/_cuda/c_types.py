"""The sizes of the types that CuPy writes into the parameters of its kernels."""

from __future__ import annotations

import re
from typing import NamedTuple


class Layout(NamedTuple):
    """The size and the alignment of a type in bytes."""

    size: int
    alignment: int


class ArrayType(NamedTuple):
    """A ``CArray`` of CuPy: ``{T *data; ptrdiff_t size; ptrdiff_t shape[n]; ptrdiff_t strides[n];}``.

    Attributes:
        itemsize: The bytes of an element; 0 if the size of ``T`` is unknown.
        dimensions: The number of dimensions.
    """

    itemsize: int
    dimensions: int

    @property
    def layout(self) -> Layout:
        """The layout of the whole struct."""
        return Layout(16 + 16 * self.dimensions, 8)


class PointerType(NamedTuple):
    """A pointer; ``is_const`` tells whether the elements are const."""

    is_const: bool

    @property
    def layout(self) -> Layout:
        """The layout of the pointer."""
        return Layout(8, 8)


_WIDTHS = {
    1: ("bool", "char", "int8_t", "uint8_t", "_Bool"),
    2: ("short", "float16", "bfloat16", "half", "__half", "__nv_bfloat16", "int16_t", "uint16_t"),
    4: ("int", "float", "int32_t", "uint32_t"),
    8: ("long", "double", "size_t", "ptrdiff_t", "intptr_t", "uintptr_t", "int64_t", "uint64_t", "cudaTextureObject_t"),
}
_SCALARS = {name: Layout(width, width) for width, names in _WIDTHS.items() for name in names}
_COMPLEX = {"float": Layout(8, 8), "double": Layout(16, 16)}
_ARRAY = re.compile(r"CArray\s*<(.*?),\s*(\d+)\s*(?:,\s*\w+\s*){0,2}>", re.DOTALL)
_INDEXER = re.compile(r"CIndexer\s*<\s*(\d+)\s*(?:,\s*\w+\s*)?>")
_COMPLEX_TYPE = re.compile(r"(?:thrust\s*::\s*)?complex\s*<\s*(\w+)\s*>")
_BYTES = re.compile(r"(?:cupy\s*::\s*)?UnstructuredVoid\s*<\s*(\d+)\s*>")
_STRUCT = re.compile(
    r"(?:cupy\s*::\s*)?StructView\s*<\s*(?:cupy\s*::\s*)?raw_structview_storage\s*<\s*(\d+)\s*,\s*(\d+)\s*>.*>",
    re.DOTALL,
)
_IGNORED = re.compile(
    r"\b(?:const|volatile|__restrict__|__restrict|__grid_constant__|struct|signed|unsigned|std)\b|::(?=\w+_t)"
)


def type_of(text: str, names: dict[str, str]) -> Layout | ArrayType | PointerType | None:
    """Return the layout of a type, or what is known of an array or a pointer; None if the size is unknown.

    Args:
        text: The type in the spelling of C++.
        names: The types of the ``typedef`` statements of the source, by name.
    """
    text = text.strip()
    if text.endswith("&"):
        return None
    without = re.sub(r"\b(?:__restrict__|__restrict)\b", "", text).strip()
    while without.endswith("const"):
        without = without[: -len("const")].strip()
    if without.endswith("*"):
        return PointerType(bool(re.search(r"\bconst\b", without)))
    array = _ARRAY.fullmatch(_unqualified(text))
    if array is not None:
        item = layout_of(array[1], names)
        return ArrayType(item.size if item is not None else 0, int(array[2]))
    return layout_of(text, names)


def layout_of(text: str, names: dict[str, str]) -> Layout | None:
    """Return the layout of a type that is no ``CArray`` and no pointer; None if the layout is unknown."""
    unqualified = _unqualified(text)
    indexer = _INDEXER.fullmatch(unqualified)
    if indexer is not None:
        return Layout(8 + 16 * int(indexer[1]), 8)
    found = _COMPLEX_TYPE.fullmatch(unqualified)
    if found is not None:
        return _COMPLEX.get(found[1])
    found = _BYTES.fullmatch(unqualified)
    if found is not None:
        return Layout(int(found[1]), 1)
    found = _STRUCT.fullmatch(unqualified)
    if found is not None:
        return Layout(int(found[1]), int(found[2]))
    words = _IGNORED.sub(" ", text).split()
    if not words:  # such as `unsigned`
        return _SCALARS["int"] if re.search(r"\b(?:signed|unsigned)\b", text) else None
    if set(words) == {"long"}:
        return _SCALARS["long"]
    if len(words) > 1 and words[-1] == "int":
        words.pop()
    if len(words) > 1 and set(words) != {"long"}:
        return None
    if words[0] in _SCALARS:
        return _SCALARS[words[0]]
    if unqualified in names and names[unqualified] != text:
        others = {name: known for name, known in names.items() if name != unqualified}  # a typedef of itself ends here
        return layout_of(names[unqualified], others)
    return None


def _unqualified(text: str) -> str:
    return re.sub(r"\b(?:const|volatile|__restrict__|__grid_constant__)\b", "", text).strip()
