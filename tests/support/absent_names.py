"""The names of ``torch.cuda`` that tcuda lacks, each with its kind in torch and the reason.

``tcuda/_base/absent.json`` has these names for the message of the ``AttributeError``, and ``array_names.json`` has the
names of arrays, which a program may look for in tcuda, with the name in ``tcuda.xp``. The tables in ``tests/data`` are
the source. ``tests/support/cupy_tables.py`` writes the files.
"""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

TABLE = Path(__file__).parents[2] / "tcuda" / "_base" / "absent.json"
ARRAY_NAMES = TABLE.with_name("array_names.json")
_DATA = Path(__file__).parents[1] / "data"


def absent() -> dict[str, dict[str, str]]:
    """Return the kind and the reason for each name that tcuda lacks; members of modules and classes are left out."""
    names = json.loads((_DATA / "torch_cuda_api.json").read_text(encoding="utf-8"))["names"]
    rows = json.loads((_DATA / "differences.json").read_text(encoding="utf-8"))["rows"]
    return {
        name: {"kind": torchs["kind"], "reason": row["reason"]}
        for name, torchs in sorted(names.items())
        for row in rows
        if row["kind"] in ("absent", "later") and "." not in name
        if any(fnmatchcase(name, pattern) for pattern in row["names"])
    }


_OF_TORCH = {
    "Tensor": "ndarray",
    "as_tensor": "asarray",
    "bmm": "matmul",
    "cat": "concatenate",
    "from_numpy": "asarray",
    "mm": "matmul",
    "rand": "random.rand",
    "randint": "random.randint",
    "randn": "random.randn",
    "tensor": "asarray",
}
"""Names of torch that have other names in CuPy."""

_OF_CUPY_CUDA = (
    "Device",
    "ManagedMemory",
    "Memory",
    "MemoryAsyncPool",
    "MemoryPointer",
    "MemoryPool",
    "PinnedMemoryPool",
    "UnownedMemory",
    "alloc",
    "alloc_pinned_memory",
    "driver",
    "get_allocator",
    "get_current_stream",
    "get_device_id",
    "get_elapsed_time",
    "malloc_async",
    "malloc_managed",
    "runtime",
    "set_allocator",
    "set_pinned_memory_allocator",
    "using_allocator",
)
"""Names of ``cupy.cuda`` that ``torch.cuda`` lacks."""


def array_names(names: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the name below ``tcuda.xp`` for each name of CuPy that a program may look for in tcuda.

    Args:
        names: The names of CuPy, each with its kind.
    """
    kinds = {"function", "ufunc", "class"}
    roots = {name.removeprefix("cupy."): row["kind"] for name, row in names.items() if name.count(".") == 1}
    own = {name: name for name, kind in roots.items() if kind in kinds or name in ("fft", "linalg")}
    of_cuda = {name: f"cuda.{name}" for name in _OF_CUPY_CUDA}
    return dict(sorted({**_OF_TORCH, **of_cuda, **own}.items()))
