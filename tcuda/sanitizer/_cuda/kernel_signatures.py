"""The signatures of CuPy's kernels: which memory the kernels use, as their sources tell.

CuPy writes the arrays of a kernel as ``CArray`` parameters, which hold the address, the shape and the strides. An input
is ``const``. For another array, the body of the kernel tells whether the kernel reads or writes the array. A kernel
that chooses the elements of an array by data, as ``take`` does, may use only some of the elements.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tcuda.sanitizer._cuda.array_uses import BOTH, READ, UNCERTAIN, WRITE, Body
from tcuda.sanitizer._cuda.c_types import ArrayType, PointerType, type_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_BOUNDS = r"(?:__launch_bounds__\s*\([^()]*\)\s*)?"
_KERNEL = re.compile(rf'(extern\s*"C"\s*)?__global__\s+{_BOUNDS}void\s+{_BOUNDS}(\w+)\s*\(')
_C_BLOCK = re.compile(r'extern\s*"C"\s*\{')
_SCAN = re.compile(r"cupy_\w*(?:scan|bsum)_")  # these kernels compute their indices, and use all elements
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TYPEDEF = re.compile(r"\btypedef\s+([^;{}]+?)\s*\b(\w+)\s*;")
_NAME = re.compile(r"(\w+)\s*$")
_OPENING, _CLOSING = "([{<", ")]}>"


@dataclass(frozen=True)
class Pointer:
    """A pointer among the parameters of a kernel.

    Attributes:
        offset: The place in the block of parameters.
        kind: What the kernel does with the memory: 1 reads, 2 writes, 3 both, 0 nothing.
        is_certain: Whether the source tells the kind; otherwise the kind is 3.
        is_whole: Whether the kernel uses all elements; otherwise the kernel computes which elements to use.
        dimensions: The dimensions of a ``CArray``; -1 if the pointer is no ``CArray``.
        itemsize: The bytes of an element of a ``CArray``; 0 otherwise.
        label: The name of the parameter.
    """

    offset: int
    kind: int
    is_certain: bool
    is_whole: bool
    dimensions: int
    itemsize: int
    label: str

    @property
    def possible(self) -> bool:
        """Whether the kernel may do less than the kind and the extent of the array say."""
        return not (self.is_certain and self.is_whole)


@dataclass(frozen=True)
class Signature:
    """The parameters of a kernel.

    Attributes:
        parameters: The offset and the size of each parameter.
        pointers: The pointers among the parameters.
        labels: The name of each parameter.
    """

    parameters: tuple[tuple[int, int], ...]
    pointers: tuple[Pointer, ...]
    labels: tuple[str, ...]

    @property
    def is_certain(self) -> bool:
        """Whether the source tells what the kernel does with each pointer."""
        return all(pointer.is_certain for pointer in self.pointers)

    def refined(self, kinds: dict[int, int]) -> Signature:
        """Return this signature with ``kinds``, by offset, for the pointers whose use the source does not tell."""
        pointers = (
            replace(pointer, kind=kinds[pointer.offset], is_certain=True)
            if not pointer.is_certain and pointer.offset in kinds
            else pointer
            for pointer in self.pointers
        )
        return replace(self, pointers=tuple(pointers))


@functools.lru_cache(maxsize=1024)  # detectors begin and end often, as around each test
def signatures(source: str) -> dict[str, Signature]:
    """Return the signatures of those kernels of ``source`` that can be described, by name.

    A kernel can be described if its parameters have known sizes, and if each array is a ``CArray`` or a ``void *`` of a
    reduction of CuPy. The caller must not change the result.
    """
    if "__global__" not in source:
        return {}
    text = _COMMENT.sub(" ", source)
    names = {name: kind for kind, name in _TYPEDEF.findall(text)}
    found = {}
    for name, declarations, end in _kernels(text):
        made = _signature(declarations, names, Body(text, end), is_scan=_SCAN.match(name) is not None)
        if made is not None:
            found[name] = made
    return found


def parameter_names(source: str) -> dict[str, tuple[str, ...]]:
    """Return the names of the parameters of each kernel of ``source``, by the name in the source."""
    if "__global__" not in source:
        return {}
    found = {}
    for kernel, declarations, _ in _kernels(_COMMENT.sub(" ", source), every_linkage=True):
        names = [_NAME.search(declaration) for declaration in declarations]
        found[kernel] = tuple(name[1] for name in names if name is not None)
    return found


def _kernels(text: str, *, every_linkage: bool = False) -> Iterator[tuple[str, list[str], int]]:
    """Yield the name of each kernel with C linkage, the declarations of its parameters, and their end."""
    blocks = [(begin.start(), _end(text, begin.end() - 1, "{}")) for begin in _C_BLOCK.finditer(text)]
    for match in _KERNEL.finditer(text):
        place = match.start()
        in_c = every_linkage or match[1] is not None or any(begin < place < (end or len(text)) for begin, end in blocks)
        end = _end(text, match.end() - 1, "()")
        if in_c and end is not None:
            yield match[2], _split(text[match.end() : end]), end + 1


def _signature(declarations: Sequence[str], names: dict[str, str], body: Body, *, is_scan: bool) -> Signature | None:
    parameters, pointers, labels = [], [], []
    end = 0
    is_output = _writes_outputs(declarations)
    for declaration in declarations:
        name = _NAME.search(declaration)
        kind = type_of(declaration[: name.start()], names) if name is not None else None
        if name is None or kind is None:
            return None
        layout = kind.layout if isinstance(kind, (ArrayType, PointerType)) else kind
        offset = -(-end // layout.alignment) * layout.alignment
        end = offset + layout.size
        parameters.append((offset, layout.size))
        label = name[1].removeprefix("_raw_")
        labels.append(label)
        if isinstance(kind, PointerType):
            if not is_output or "void" not in declaration:
                return None  # only the code of the kernel tells what the kernel does with the memory
            pointers.append(Pointer(offset, READ if kind.is_const else WRITE, True, True, -1, 0, label))
        elif isinstance(kind, ArrayType):
            is_const = re.match(r"\s*const\b", declaration) is not None
            use = body.const_use(name[1]) if is_const else body.use(name[1])
            # CuPy's kernels write their outputs in any case, and BOTH conflicts with the same accesses as WRITE.
            certain = use != UNCERTAIN or (is_output and not is_const)
            is_told = use != UNCERTAIN or name[1].startswith("_raw_")
            is_whole = kind.dimensions == 0 or is_scan or (is_told and body.is_whole(name[1], by_element=is_output))
            known = BOTH if use == UNCERTAIN else use
            dimensions = kind.dimensions if kind.itemsize else -1
            pointers.append(Pointer(offset, known, certain, is_whole, dimensions, kind.itemsize, label))
    return Signature(tuple(parameters), tuple(pointers), tuple(labels))


def _writes_outputs(declarations: Sequence[str]) -> bool:
    """Return whether all arrays that are not const are outputs, as in elementwise kernels and reductions."""
    names = [found[1] for found in map(_NAME.search, declarations) if found is not None]
    return names[-1:] == ["_ind"] or "_out_ind" in names or "_segment_size" in names


def _end(text: str, begin: int, brackets: str) -> int | None:
    """Return the place of the bracket that closes the bracket at ``begin``."""
    opening = brackets[0]
    depth = 0
    for found in re.compile(rf"[{re.escape(brackets)}]").finditer(text, begin):
        depth += 1 if found[0] == opening else -1
        if depth == 0:
            return found.start()
    return None


def _split(text: str) -> list[str]:
    return [part for part in _parts(text) if part.strip()]


def _parts(text: str) -> Iterator[str]:
    depth = begin = 0
    for place, character in enumerate(text):
        depth += (character in _OPENING) - (character in _CLOSING)
        if character == "," and depth == 0:
            yield text[begin:place]
            begin = place + 1
    yield text[begin:]
