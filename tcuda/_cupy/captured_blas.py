"""Matrix products of CuPy on a capturing stream.

CuPy refuses to call cuBLAS there. cuBLAS itself can be captured, if its workspace is memory that stays: so the
functions by which CuPy multiplies matrices are replaced by some that, where CuPy refuses, call the library themselves.
The workspace comes from CuPy's allocator, and so from the pool of the graph, where the next product gets it again. A
capture of CuPy's own has no such pool: there it goes on refusing.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_WORKSPACE = 32 << 20
"""Bytes: what NVIDIA advises for devices of compute capability 9, and what cuBLAS takes there of its own accord."""

_COMPUTE_TYPES = {2: 64, 0: 68, 4: 68, 1: 70, 5: 70}
"""The ``cublasComputeType_t`` for a ``cudaDataType``, which an older function of the same name takes in its place."""

_TYPES = {"i": ctypes.c_int, "l": ctypes.c_longlong, "p": ctypes.c_void_p}


class _Function(NamedTuple):
    """A function of cuBLAS.

    Attributes:
        symbol: Its name.
        kinds: The types of its parameters after the handle.
        has_compute_type: Whether the last parameter but one is a ``cublasComputeType_t``.
    """

    symbol: str
    kinds: str
    has_compute_type: bool


# Two operations, three sizes, alpha; A and B with their leading dimensions, beta, C with its own; and what comes then.
_BATCHED = "iiiiip pi pi p pi i".replace(" ", "")
_FUNCTIONS = {
    "gemmEx": _Function("cublasGemmEx", "iiiiip pii pii p pii ii".replace(" ", ""), True),
    "gemmStridedBatchedEx": _Function(
        "cublasGemmStridedBatchedEx", "iiiiip piil piil p piil iii".replace(" ", ""), True
    ),
    "sgemmBatched": _Function("cublasSgemmBatched", _BATCHED, False),
    "dgemmBatched": _Function("cublasDgemmBatched", _BATCHED, False),
    "cgemmBatched": _Function("cublasCgemmBatched", _BATCHED, False),
    "zgemmBatched": _Function("cublasZgemmBatched", _BATCHED, False),
}
"""By their names in CuPy."""


def capture_products(may_capture: Callable[[int], bool]) -> None:
    """Let CuPy multiply matrices on capturing streams from now on, on those of which ``may_capture`` is true."""
    import cupy
    from cupy_backends.cuda.libs import cublas

    library = ctypes.CDLL(f"libcublas.so.{cupy.cuda.driver.get_build_version() // 1000}")
    library.cublasSetWorkspace_v2.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    library.cublasSetStream_v2.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    for name, function in _FUNCTIONS.items():
        call = getattr(library, function.symbol)
        call.argtypes = (ctypes.c_void_p, *(_TYPES[kind] for kind in function.kinds))
        refusing = getattr(cublas, name)
        multiply = _capturable(refusing, call, function.has_compute_type, may_capture, cupy, cublas, library)
        setattr(cublas, name, multiply)


def _capturable(
    refusing: Any,
    call: Callable[..., int],
    has_compute_type: bool,
    may_capture: Callable[[int], bool],
    cupy: Any,
    cublas: Any,
    library: Any,
) -> Callable[..., None]:
    @functools.wraps(refusing)
    def multiply(handle: int, *arguments: int) -> None:
        try:
            refusing(handle, *arguments)
            return
        except NotImplementedError:
            stream = cupy.cuda.get_current_stream().ptr
            if not may_capture(stream):
                raise
        if has_compute_type:
            *others, compute_type, algorithm = arguments
            arguments = (*others, _COMPUTE_TYPES.get(compute_type, compute_type), algorithm)
        workspace = cupy.cuda.alloc(_WORKSPACE)
        status = (
            library.cublasSetStream_v2(handle, stream)
            or library.cublasSetWorkspace_v2(handle, workspace.ptr, _WORKSPACE)
            or call(handle, *arguments)
        )
        if status:
            raise cublas.CUBLASError(status)

    return multiply
