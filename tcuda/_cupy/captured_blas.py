"""Matrix products of CuPy on a capturing stream.

CuPy refuses to call cuBLAS while the stream captures. cuBLAS itself can be captured, if the memory of its workspace
lives as long as the graph. So this module replaces the functions by which CuPy multiplies matrices. A replacement calls
CuPy's function first, and calls cuBLAS itself if CuPy refuses. The workspace comes from CuPy's allocator, and so from
the pool of the graph, and the next product of the graph uses the same memory. A capture that CuPy has begun has no such
pool, and CuPy goes on refusing.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Callable

_WORKSPACE = 32 << 20
"""The bytes of the workspace: NVIDIA's advice, and cuBLAS's own default, for devices of compute capability 9."""

_COMPUTE_TYPES = {2: 64, 0: 68, 4: 68, 1: 70, 5: 70}
"""The ``cublasComputeType_t`` for a ``cudaDataType``, which CuPy may pass because older cuBLAS functions take it."""

_TYPES = {"i": ctypes.c_int, "l": ctypes.c_longlong, "p": ctypes.c_void_p}


class _Function(NamedTuple):
    """A function of cuBLAS.

    Attributes:
        symbol: The name of the function in the library.
        kinds: The types of the parameters after the handle, one letter of ``_TYPES`` each.
        has_compute_type: Whether the parameter before the last is a ``cublasComputeType_t``.
    """

    symbol: str
    kinds: str
    has_compute_type: bool


# The groups: two operations, three sizes and alpha; A; B; beta; C (each matrix with its leading dimension); the rest.
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
"""The functions that are replaced, by their names in CuPy."""


def capture_products(may_capture: Callable[[int], bool]) -> None:
    """Let CuPy multiply matrices from now on also on those capturing streams for which ``may_capture`` returns true."""
    import cupy
    from cupy_backends.cuda.libs import cublas

    library = ctypes.CDLL(f"libcublas.so.{cupy.cuda.driver.get_build_version() // 1000}")
    library.cublasSetWorkspace_v2.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    library.cublasSetStream_v2.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    for name, function in _FUNCTIONS.items():
        call = getattr(library, function.symbol)
        call.argtypes = (ctypes.c_void_p, *(_TYPES[kind] for kind in function.kinds))
        call = _noted(function.symbol, call)
        refusing = getattr(cublas, name)
        multiply = _capturable(refusing, call, function.has_compute_type, may_capture, cupy, cublas, library)
        setattr(cublas, name, multiply)


def _noted(symbol: str, function: Any) -> Callable[..., int]:
    """Return a function that calls ``function``, and reports to the race detector what memory the call uses."""
    if not _core.has_wings:  # the functions that note a call are a part of the search for races
        return function  # type: ignore[no-any-return]
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    noting = ctypes.CFUNCTYPE(ctypes.c_int, *function.argtypes)(_core.noting_function(symbol, address))

    def call(*arguments: int) -> int:
        return (noting if _core.notes_library_calls() else function)(*arguments)  # type: ignore[no-any-return]

    return call


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
