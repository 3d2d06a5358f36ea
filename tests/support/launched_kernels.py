"""The kernels of ``tests/data/launches`` with their launches, and the memory that each launch uses in any case."""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from support.folders import REPOSITORY

FOLDER = REPOSITORY / "tests" / "data" / "launches"
ITEMSIZES = {"B": 1, "e": 2, "i": 4, "f": 4, "q": 8, "d": 8}
"""The bytes of an element of each type of an array; the types are those of ``struct`` and NumPy."""


class Launch(NamedTuple):
    """A launch.

    An argument is an array with an offset in elements, such as ``"x+100"``, or a number with its type, such as
    ``"i:5"``. ``"{x y}i:5"`` is a structure of two addresses and a number.
    """

    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: str


class Kernel(NamedTuple):
    """A kernel with its launches.

    Attributes:
        arrays: The type and the number of elements of each array.
        whole: A launch that uses all elements.
        parts: Two launches that need no order: they write different elements, and neither reads what the other writes.
        reads: The arrays of which the launch ``whole`` reads elements in any case.
        writes: The arrays of which the launch ``whole`` writes elements in any case.
        maybe: The arrays that the launch may read or write, as the content of memory says.
    """

    arrays: dict[str, tuple[str, int]]
    whole: Launch
    parts: tuple[Launch, Launch] | None
    reads: str
    writes: str
    maybe: str = ""


_LINE, _HALF = ((40,), (256,)), ((20,), (256,))


def _line(
    arguments: str,
    *,
    arrays: str = "f:x y",
    reads: str = "x",
    writes: str = "y",
    maybe: str = "",
    halves: str | None = None,
    size: int = 10240,
) -> Kernel:
    """Return a kernel with a thread for each of 10,240 elements. ``N`` stands for the number of elements.

    In ``halves``, ``O`` stands for the first element of a half.
    """
    parts = (
        [Launch(*_HALF, halves.replace("N", "5120").replace("O", offset)) for offset in ("0", "5120")] if halves else []
    )
    return Kernel(
        {name: (group[0], size) for group in arrays.split(", ") for name in group[2:].split()},
        Launch(*_LINE, arguments.replace("N", "10240")),
        (parts[0], parts[1]) if parts else None,
        reads,
        writes,
        maybe,
    )


def _plane(arguments: str, parts: tuple[Launch, Launch] | None, *, kind: str = "f") -> Kernel:
    """Return a kernel with a thread for each element of 96 rows and 128 columns."""
    arrays = dict.fromkeys("xy", (kind, 96 * 128))
    return Kernel(arrays, Launch((8, 6), (16, 16), arguments), parts, "x", "y")


def _rows(arguments: str, halves: str, *, reads: str = "x", block: tuple[int, ...] = (128,), more: str = "") -> Kernel:
    """Return a kernel with a block for each of 64 rows of 200 columns. ``O`` stands for the first element of a half."""
    arrays = dict.fromkeys("xy", ("f", 64 * 200)) | dict.fromkeys(more.split(), ("f", 200))
    parts = (Launch((32,), block, halves.replace("O", "0")), Launch((32,), block, halves.replace("O", "6400")))
    return Kernel(arrays, Launch((64,), block, arguments), parts, reads, "y")


_PLANE = Launch((8, 3), (16, 16), "x y i:48 i:128")
_LOWER = Launch((8, 3), (16, 16), "x+6144 y+6144 i:48 i:128")

KERNELS: dict[str, Kernel] = {
    "copy": _line("x y i:N", halves="x+O y+O i:N"),
    "fill": _line("y f:1 i:N", arrays="f:y", reads="", halves="y+O f:1 i:N"),
    "scale_in_place": _line("y f:2 i:N", arrays="f:y", reads="y", halves="y+O f:2 i:N"),
    "axpy": _line("d:2 x y q:N", arrays="d:x y", reads="x y", halves="d:2 x+O y+O q:N"),
    "add": _line("a b c q:N", arrays="f:a b c", reads="a b", writes="c", halves="a+O b+O c+O q:N"),
    "exponential": _line("x y i:N", halves="x+O y+O i:N"),
    "sine": _line("x y i:N", halves="x+O y+O i:N"),
    "power": _line("x y i:N", arrays="d:x y", halves="x+O y+O i:N"),
    "relu": _line("x y i:N", maybe="y", writes="", halves="x+O y+O i:N"),
    "masked": _line(
        "mask x y i:N", arrays="B:mask, f:x y", reads="mask", writes="", maybe="x y", halves="mask+O x+O y+O i:N"
    ),
    "strided": Kernel(
        {"x": ("f", 10240), "y": ("f", 10240)},
        Launch((40,), (256,), "x y i:0 i:1 i:10240"),
        (Launch((20,), (256,), "x y i:0 i:2 i:10240"), Launch((20,), (256,), "x y i:1 i:2 i:10240")),
        "x",
        "y",
    ),
    "reversed": _line("x y i:N", halves="x+O y+O i:N"),
    "transpose": _plane("x y i:96 i:128", (_PLANE, _LOWER)),
    "transpose_in_tiles": Kernel(
        {"x": ("f", 96 * 128), "y": ("f", 96 * 128)},
        Launch((4, 3), (32, 8), "x y i:96 i:128"),
        (Launch((4, 1), (32, 8), "x y i:32 i:128"), Launch((4, 2), (32, 8), "x+4096 y+4096 i:64 i:128")),
        "x",
        "y",
    ),
    "product": Kernel(
        {"a": ("f", 64 * 40), "b": ("f", 40 * 48), "c": ("f", 64 * 48)},
        Launch((3, 4), (16, 16), "a b c i:64 i:48 i:40"),
        (Launch((3, 2), (16, 16), "a b c i:32 i:48 i:40"), Launch((3, 2), (16, 16), "a+1280 b c+1536 i:32 i:48 i:40")),
        "a b",
        "c",
    ),
    "product_in_tiles": Kernel(
        {"a": ("f", 64 * 40), "b": ("f", 40 * 48), "c": ("f", 64 * 48)},
        Launch((3, 4), (16, 16), "a b c i:64 i:48 i:40"),
        (Launch((3, 2), (16, 16), "a b c i:32 i:48 i:40"), Launch((3, 2), (16, 16), "a+1280 b c+1536 i:32 i:48 i:40")),
        "a b",
        "c",
    ),
    "product_with_vector": Kernel(
        {"a": ("f", 64 * 100), "x": ("f", 100), "y": ("f", 64)},
        Launch((16,), (32, 4), "a x y i:64 i:100"),
        (Launch((8,), (32, 4), "a x y i:32 i:100"), Launch((8,), (32, 4), "a+3200 x y+32 i:32 i:100")),
        "a x",
        "y",
    ),
    "stencil_of_a_line": _line("x y i:N", halves="x+O y+O i:N"),
    "stencil_with_shared_memory": _line("x y i:N", halves="x+O y+O i:N"),
    "jacobi": _plane("x y i:96 i:128", (_PLANE, _LOWER), kind="d"),
    "heat_in_space": Kernel(
        {"x": ("f", 32 * 32 * 32), "y": ("f", 32 * 32 * 32)},
        Launch((4, 8, 8), (8, 4, 4), "x y i:32 i:32 i:32 f:1"),
        (
            Launch((4, 8, 4), (8, 4, 4), "x y i:32 i:32 i:17 f:1"),
            Launch((4, 8, 8), (8, 4, 4), "x+15360 y+15360 i:32 i:32 i:17 f:1"),
        ),
        "x",
        "y",
    ),
    "blur_at_the_borders": _plane("x y i:96 i:128", (_PLANE, _LOWER), kind="B"),
    "filter_of_an_image": _plane("x y i:96 i:128", (_PLANE, _LOWER)),
    "streaming_of_a_lattice": Kernel(
        {"x": ("f", 9 * 64 * 48), "y": ("f", 9 * 64 * 48)}, Launch((4, 3), (16, 16), "x y i:64 i:48"), None, "x", "y"
    ),
    "bodies": Kernel(
        {"x": ("f", 4 * 256), "y": ("f", 4 * 256)},
        Launch((4,), (64,), "x y i:256"),
        (Launch((2,), (64,), "x y i:128"), Launch((2,), (64,), "x+512 y+512 i:128")),
        "x",
        "y",
    ),
    "sums_of_blocks": _line("x y i:N", halves="x+O y+O i:N"),
    "sum_by_atomics": _line("x y i:N", halves="x+O y+O i:N"),
    "histogram": _line("x y i:N", arrays="B:x, i:y", maybe="x", reads="x", halves="x+O y+O i:N"),
    "histogram_in_memory": _line("x y i:N", arrays="i:x y", writes="", maybe="y", halves="x+O y+O i:N"),
    "scan_of_blocks": _line("x y i:N", arrays="i:x y", halves="x+O y+O i:N"),
    "gather": _line("x index y i:N", arrays="f:x y, i:index", reads="index", maybe="x", halves="x index+O y+O i:N"),
    "scatter": _line(
        "x index y i:N", arrays="f:x y, i:index", reads="x index", writes="", maybe="y", halves="x+O index+O y+O i:N"
    ),
    "embedding": Kernel(
        {"x": ("f", 6400), "index": ("q", 64), "y": ("f", 64 * 100)},
        Launch((64,), (128,), "x index y i:100"),
        (Launch((32,), (128,), "x index y i:100"), Launch((32,), (128,), "x index+32 y+3200 i:100")),
        "index",
        "y",
        "x",
    ),
    "structures": Kernel(
        {"x": ("d", 3 * 2560), "y": ("d", 3 * 2560)},
        Launch((10,), (256,), "x y f:1 i:2560"),
        (Launch((5,), (256,), "x y f:1 i:1280"), Launch((5,), (256,), "x+3840 y+3840 f:1 i:1280")),
        "x",
        "y",
    ),
    "structure_of_arrays": _line(
        "{a b c}i:N f:1", arrays="f:a b c", reads="a b", writes="c", halves="{a+O b+O c+O}i:N f:1"
    ),
    "four_at_once": _line("x y i:N", halves="x+O y+O i:N"),
    "half_numbers": _line("x y i:N", arrays="e:x y", halves="x+O y+O i:N"),
    "complex_numbers": Kernel(
        {"x": ("f", 2 * 10240), "y": ("f", 2 * 10240)},
        Launch((40,), (256,), "x y i:10240"),
        (Launch((20,), (256,), "x y i:5120"), Launch((20,), (256,), "x+10240 y+10240 i:5120")),
        "x",
        "y",
    ),
    "batches": Kernel(
        {"x": ("f", 10000), "y": ("f", 10000)},
        Launch((2, 5), (128,), "x y i:10 i:1000"),
        (Launch((2, 5), (128,), "x y i:5 i:1000"), Launch((2, 5), (128,), "x+5000 y+5000 i:5 i:1000")),
        "x",
        "y",
    ),
    "rows_with_gaps": Kernel(
        {"x": ("f", 64 * 64), "y": ("f", 64 * 64)},
        Launch((1, 64), (64,), "x y q:256 i:64 i:50"),
        (Launch((1, 64), (64,), "x y q:256 i:64 i:32"), Launch((1, 64), (64,), "x+32 y+32 q:256 i:64 i:32")),
        "x",
        "y",
    ),
    "softmax_of_rows": _rows("x y i:200", "x+O y+O i:200"),
    "layer_norm": _rows(
        "x gamma beta y i:200", "x+O gamma beta y+O i:200", reads="x gamma beta", block=(32,), more="gamma beta"
    ),
    "random_numbers": _line("y i:7 i:N", arrays="f:y", reads="", halves="y+O i:7 i:N"),
    "bitonic_step": _line("y i:4 i:8 i:N", arrays="i:y", reads="y", writes="", maybe="y", halves="y+O i:4 i:8 i:N"),
    "newton": _line("x y i:N", arrays="d:x y", halves="x+O y+O i:N"),
    "sparse_product": Kernel(
        {"begin": ("i", 1025), "column": ("i", 4096), "value": ("f", 4096), "x": ("f", 1024), "y": ("f", 1024)},
        Launch((4,), (256,), "begin column value x y i:1024"),
        (
            Launch((2,), (256,), "begin column value x y i:512"),
            Launch((2,), (256,), "begin+512 column value x y+512 i:512"),
        ),
        "begin",
        "y",
        "column value x",
    ),
    "compaction": Kernel(
        {"x": ("f", 10240), "y": ("f", 10240), "count": ("i", 1)},
        Launch((40,), (256,), "x y count i:10240"),
        None,
        "x",
        "",
        "y count",
    ),
    "last_block": Kernel(
        {"x": ("f", 10240), "parts": ("f", 40), "y": ("f", 1)},
        Launch((40,), (256,), "x parts y i:10240"),
        None,
        "x",
        "parts",
        "y",
    ),
    "wait_for_a_flag": Kernel(
        {"flag": ("i", 1), "x": ("f", 10240), "y": ("f", 10240)},
        Launch((40,), (256,), "flag x y i:10240"),
        None,
        "",
        "",
        "flag x y",
    ),
}


def _texts(name: str) -> dict[str, str]:
    parts = re.split(r"^//// (\w+)\n", (FOLDER / name).read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


SOURCES = _texts("kernels.cu")
TEXTS = _texts("kernels.ptx")


class Argument(NamedTuple):
    """An argument of a launch: for each part of the parameter an array with an offset in elements, or a number."""

    parts: tuple[tuple[str, int | float], ...]


def arguments_of(launch: Launch) -> list[Argument]:
    """Return the arguments of a launch. The name of a part is that of an array, or the type of a number with ``:``."""
    found = re.findall(r"\{[^}]*\}\S*|\S+", launch.arguments)
    return [Argument(tuple(map(_part_of, re.findall(r"[^\s{}]+", argument)))) for argument in found]


def _part_of(text: str) -> tuple[str, int | float]:
    if ":" in text:
        kind, _, number = text.partition(":")
        return kind + ":", float(number) if kind in "fd" else int(number)
    name, _, offset = text.partition("+")
    return name, int(offset or 0)


def packed(argument: Argument, kernel: Kernel, addresses: dict[str, int]) -> bytes:
    """Return the bytes of a parameter, for arrays at ``addresses``."""
    made = b""
    for name, number in argument.parts:
        if name.endswith(":"):
            made += struct.pack("<" + name[0], number)
        else:
            itemsize = ITEMSIZES[kernel.arrays[name][0]]
            made += struct.pack("<Q", addresses[name] + int(number) * itemsize)
    return made.ljust(-(-len(made) // 8) * 8, b"\0") if len(argument.parts) > 1 else made
