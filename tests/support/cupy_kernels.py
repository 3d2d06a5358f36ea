"""Kernels of CuPy: their sources, and the places of their parameters as NVRTC lays them out.

``tests/data/cupy_kernels.json`` has them for machines without CuPy. To write the file anew, run
``python tests/support/cupy_kernels.py`` from ``tests``, where CuPy, NVRTC and the headers of CUDA are installed; no GPU
is needed.
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TABLE = Path(__file__).parents[1] / "data" / "cupy_kernels.json"
_ENTRY = re.compile(r"\.entry\s+(\w+)\s*\((.*?)\)\s*\n", re.DOTALL)
_WIDTHS = {"8": 1, "16": 2, "32": 4, "64": 8}


class Source(NamedTuple):
    """A source that CuPy has compiled.

    Attributes:
        operation: The operation that needed the kernel.
        text: The source.
        options: The options of the compiler.
    """

    operation: str
    text: str
    options: tuple[str, ...]


def places_text(places: Iterable[tuple[int, int]]) -> str:
    """Return the offsets and the sizes of parameters as a text, such as ``"0:48 48:8"``."""
    return " ".join(f"{offset}:{size}" for offset, size in places)


def parameters(ptx: str) -> dict[str, str]:
    """Return the places of the parameters of each kernel of a PTX text."""
    found = {}
    for kernel in _ENTRY.finditer(ptx):
        places: list[tuple[int, int]] = []
        end = 0
        for declaration in filter(str.strip, kernel[2].split(",")):
            aligned, count = re.search(r"\.align\s+(\d+)", declaration), re.search(r"\[(\d+)\]", declaration)
            kind = re.search(r"\.[busf](\d+)\s", declaration)
            assert kind is not None
            width = _WIDTHS[kind[1]]
            alignment = int(aligned[1]) if aligned is not None else width
            offset = -(-end // alignment) * alignment
            size = width * int(count[1]) if count is not None else width
            places.append((offset, size))
            end = offset + size
        found[kernel[1]] = places_text(places)
    return found


def sources() -> list[Source]:
    """Run CuPy's operations without a device, and return the sources of their kernels."""
    import cupy

    found: dict[str, Source] = {}
    running = ""

    def compile_module(source: str, options: tuple[str, ...] = (), **_: Any) -> Any:
        found.setdefault(source, Source(running, source, tuple(options)))
        module = cupy.cuda.function.Module()
        module.load(b"an image")
        return module

    cupy.cuda.compiler._compile_module_with_cache = compile_module
    for accelerators in ([], ["cub"]):
        cupy._core.set_reduction_accelerators(accelerators)
        cupy._core.set_routine_accelerators(accelerators)
        for running, operation in operations(cupy).items():
            try:
                operation()
            except (RuntimeError, ImportError) as error:  # the operation calls a library, or reads a result
                print(f"{running}: {error}")
    return list(found.values())


def ptx_of(source: Source) -> str:
    """Return the PTX of a source for an H100."""
    from cupy.cuda import compiler

    program = compiler._NVRTCProgram(source.text, "kernels.cu", (), (), method="ptx")
    image, _ = program.compile((*source.options, "-arch=compute_90", "--device-as-default-execution-space"))
    return str(image.decode())


def operations(cupy: Any) -> dict[str, Callable[[], object]]:
    """Return operations of CuPy that launch kernels, by name."""
    import cupyx

    empty, add = cupy.empty, cupy.add

    def of(*shape: int, dtype: str = "f") -> Any:
        return empty(shape, dtype)

    made: dict[str, Callable[[], object]] = {}
    for dtype in "?bHqefFD":
        made[f"add {dtype}"] = lambda dtype=dtype: of(3, 4, dtype=dtype)[:, ::2] + of(3, 2, dtype=dtype)
        made[f"multiply by a scalar {dtype}"] = lambda dtype=dtype: of(3, 4, dtype=dtype) * of(dtype=dtype)
        made[f"fill {dtype}"] = lambda dtype=dtype: of(3, 4, dtype=dtype).fill(1)
        made[f"sum {dtype}"] = lambda dtype=dtype: of(5, 64, dtype=dtype).sum(axis=0)
    made |= {
        "out": lambda: add(of(3), of(3), out=of(3, dtype="d")),
        "where": lambda: cupy.where(of(3, dtype="?"), of(3), of(3)),
        "ufunc where": lambda: add(of(3), of(3), out=of(3), _where=of(3, dtype="?")),
        "four dimensions": lambda: of(2, 3, 4, 5)[:, ::2, :, ::2] + of(2, 3, 4, 7)[:, 1::2, :, 1::2],
        "divmod": lambda: cupy.divmod(of(3), of(3)),
        "no dimensions": lambda: of() + of(),
        "scalar bool": lambda: of(3, dtype="?") | True,
        "scalar complex": lambda: of(3, dtype="F") * 2j,
        "take": lambda: of(5, 6).take(of(3, dtype="q"), axis=1),
        "put": lambda: of(5, 6).put(of(3, dtype="q"), of(3)),
        "assign indices": lambda: of(5, 6).__setitem__(of(3, dtype="q"), of(3, 6)),
        "assign mask": lambda: of(5, 6).__setitem__(of(5, 6, dtype="?"), 2.0),
        "scatter add": lambda: cupyx.scatter_add(of(5, 6), of(3, dtype="q"), of(3, 6)),
        "cumsum": lambda: of(100).cumsum(),
        "batched cumsum": lambda: of(10, 10).cumsum(axis=0),
        "large cumsum": lambda: of(5000).cumsum(),
        "argmax": lambda: of(6, 4000).argmax(axis=1),
        "any": lambda: of(600, 40).any(),
        "variance": lambda: of(6, 40).var(axis=1),
        "searchsorted": lambda: cupy.searchsorted(of(10), of(3)),
        "histogram": lambda: cupy.histogram(of(10), bins=5, range=(0, 1)),
        "argpartition": lambda: _argpartition(cupy, of(2000)),
        "reversed": lambda: of(8)[::-2] + 1,
    }
    if tuple(map(int, cupy.__version__.split(".")[:2])) >= (14, 1):  # older versions copy no such arrays
        made["structs"] = lambda: of(6, dtype="f,f")[::2].copy()
        made["bytes"] = lambda: of(6, dtype="V3")[::2].copy()
    made |= _own_kernels(cupy, of)
    return made


def _argpartition(cupy: Any, array: Any) -> None:
    with contextlib.suppress(ValueError):  # without a device, the kernel leaves indices that may be too large
        cupy.argpartition(array, 5)


def _own_kernels(cupy: Any, of: Callable[..., Any]) -> dict[str, Callable[[], object]]:
    elementwise, reduction = cupy.ElementwiseKernel, cupy.ReductionKernel
    branch = elementwise("T x", "T y", "if (x > 0) y = x; else { y = -x; }", "own_branch")
    raw = elementwise("raw T x, T s", "raw T y", "y[i] = x[i] * s + x[0]", "own_raw")
    in_place = elementwise("T x", "T y", "y += x", "own_in_place")
    atomic = elementwise("T x", "raw T y", "atomicAdd(&y[0], x)", "own_atomic")
    norm = reduction("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "own_norm")
    more = reduction("T x, T w", "T y", "x * w", "a + b", "y += a", "0", "own_more")
    fused = cupy.fuse(kernel_name="fused")(lambda x, y: cupy.sqrt(x * y) + 1)
    fused_sum = cupy.fuse(kernel_name="fused_sum")(lambda x, y: cupy.sum(x * y, axis=1))
    new_fused_sum = cupy._core.new_fusion.Fusion(lambda x, y: cupy.sum(x * y, axis=1) + 1, "new_fused_sum")
    return {
        "branch": lambda: branch(of(5), of(5)),
        "raw": lambda: raw(of(5), 2.0, of(5), size=5),
        "in place": lambda: in_place(of(5), of(5)),
        "atomic": lambda: atomic(of(5), of(1)),
        "norm": lambda: norm(of(5, 6), axis=1),
        "more": lambda: more(of(5, 6), of(5, 6), of()),
        "fused": lambda: fused(of(5, 6)[:, ::2], of(5, 3)),
        "fused sum": lambda: fused_sum(of(5, 6), of(5, 6)),
        "new fused sum": lambda: new_fused_sum(of(5, 6), of(5, 6)),
        **_jit_kernels(of),
    }


def _jit_kernels(of: Callable[..., Any]) -> dict[str, Callable[[], object]]:
    import cupy
    import numpy
    from cupyx import jit

    # CuPy 13 compares no unsigned number with a signed one.
    limit = numpy.uint32(5) if cupy.__version__.startswith("13.") else numpy.int32(5)

    @jit.rawkernel()
    def shifted(x, y, n):  # type: ignore[no-untyped-def]
        i = jit.threadIdx.x
        if i < n:
            y[i] = x[i] + 1

    @jit.rawkernel()
    def table(x, y):  # type: ignore[no-untyped-def]
        i = jit.threadIdx.x
        y[i, 0] += x[i, 1]

    return {
        "jit": lambda: shifted((1,), (32,), (of(5), of(5), limit)),
        "jit table": lambda: table((1,), (5,), (of(5, 6), of(5, 6)[:, ::2])),
    }


if __name__ == "__main__":
    import warnings

    from cupy_without_device import without_device

    warnings.simplefilter("ignore")
    without_device()
    table = [
        {"operation": source.operation, "source": source.text, "parameters": parameters(ptx_of(source))}
        for source in sources()
    ]
    TABLE.write_text(json.dumps(table, indent=1) + "\n")
    print(f"{len(table)} sources")
