"""A library that stands in for NVIDIA's libraries, and modules that call it."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
from typing import TYPE_CHECKING, Any

from support.core import for_tests

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIBRARY = r"""
#include <stddef.h>
#include <stdint.h>
static void (*observer)(void);
static int64_t seen[64];
static double numbers[4];
static int status;
void observe_calls(void (*function)(void)) { observer = function; }
void let_calls_return(int value) { status = value; }
int64_t seen_argument(int place) { return seen[place]; }
double seen_number(int place) { return numbers[place]; }
static int called(void) { if (observer) observer(); return status; }
#define I(place, value) seen[place] = (int64_t)(intptr_t)(value);

int cublasSgemm_v2(void *handle, int transa, int transb, int m, int n, int k, const float *alpha, const float *A,
                   int lda, const float *B, int ldb, const float *beta, float *C, int ldc) {
    I(0, handle) I(1, transa) I(2, transb) I(3, m) I(4, n) I(5, k) I(6, alpha) I(7, A) I(8, lda) I(9, B) I(10, ldb)
    I(11, beta) I(12, C) I(13, ldc)
    return called();
}
int cublasGemmStridedBatchedEx(void *handle, int transa, int transb, int m, int n, int k, const void *alpha,
    const void *A, int Atype, int lda, int64_t strideA, const void *B, int Btype, int ldb, int64_t strideB,
    const void *beta, void *C, int Ctype, int ldc, int64_t strideC, int count, int compute, int algorithm) {
    I(0, handle) I(1, transa) I(2, transb) I(3, m) I(4, n) I(5, k) I(6, alpha) I(7, A) I(8, Atype) I(9, lda)
    I(10, strideA) I(11, B) I(12, Btype) I(13, ldb) I(14, strideB) I(15, beta) I(16, C) I(17, Ctype) I(18, ldc)
    I(19, strideC) I(20, count) I(21, compute) I(22, algorithm)
    return called();
}
int cublasSgemv_v2(void *handle, int trans, int m, int n, const float *alpha, const float *A, int lda, const float *x,
                   int incx, const float *beta, float *y, int incy) { return called(); }
int cublasDscal_v2(void *handle, int n, const double *alpha, double *x, int incx) { return called(); }
int cublasSgeam(void *handle, int transa, int transb, int m, int n, const float *alpha, const float *A, int lda,
                const float *beta, const float *B, int ldb, float *C, int ldc) { return called(); }
int cublasSetWorkspace_v2(void *handle, void *workspace, size_t bytes) { return called(); }
int cublasSetStream_v2(void *handle, void *stream) { return called(); }
int cublasDestroy_v2(void *handle) { return called(); }
int curandGenerateNormal(void *generator, float *output, size_t n, float mean, float deviation) {
    I(0, generator) I(1, output) I(2, n)
    numbers[0] = mean; numbers[1] = deviation;
    return called();
}
int curandGenerateLogNormalDouble(void *generator, double *output, size_t n, double mean, double deviation) {
    I(0, generator) I(1, output) I(2, n)
    numbers[0] = mean; numbers[1] = deviation;
    return called();
}
int cusparseCreateCsr(void **matrix, int64_t rows, int64_t columns, int64_t nnz, void *offsets, void *indices,
                      void *values, int offset_type, int index_type, int base, int value_type) {
    *matrix = (void *)(intptr_t)0x5000;
    return called();
}
int cusparseCreateDnVec(void **vector, int64_t size, void *values, int type) {
    if (status != 0)
        return called();
    *vector = (void *)((intptr_t)0x6000 + (intptr_t)type * 256 + size);
    return called();
}
int cusparseDnVecSetValues(void *vector, void *values) { return called(); }
int cusparseDestroySpMat(void *matrix) { return called(); }
int cusparseSpMV(void *handle, int operation, const void *alpha, void *A, void *x, const void *beta, void *y, int type,
                 int algorithm, void *buffer) { return called(); }
int cusparseGather(void *handle, void *y, void *x) { return called(); }
int cufftMakePlan1d(int plan, int n, int type, int batch, size_t *size) {
    if (size)
        *size = 4096;
    return called();
}
int cufftMakePlanMany(int plan, int rank, int *n, int *inembed, int istride, int idist, int *onembed, int ostride,
                      int odist, int type, int batch, size_t *size) { return called(); }
int cufftSetWorkArea(int plan, void *area) { return called(); }
int cufftDestroy(int plan) { return called(); }
int cufftExecC2C(int plan, void *input, void *output, int direction) { return called(); }
int cufftExecC2R(int plan, void *input, void *output) { return called(); }
int cufftXtExec(int plan, void *input, void *output, int direction) { return called(); }
int ncclAllReduce(const void *send, void *receive, size_t count, int type, int operation, void *communicator,
                  void *stream) { return called(); }
int ncclBroadcast(const void *send, void *receive, size_t count, int type, int root, void *communicator, void *stream) {
    return called();
}
int ncclSend(const void *send, size_t count, int type, int peer, void *communicator, void *stream) { return called(); }
int ncclGroupStart(void) { return called(); }
int ncclGroupEnd(void) { return called(); }
"""

FUNCTIONS = [
    "cublasSgemm_v2",
    "cublasGemmStridedBatchedEx",
    "cublasSgemv_v2",
    "cublasDscal_v2",
    "cublasSgeam",
    "cublasSetWorkspace_v2",
    "cublasDestroy_v2",
    "cublasSetStream_v2",
    "curandGenerateNormal",
    "curandGenerateLogNormalDouble",
    "cusparseCreateCsr",
    "cusparseCreateDnVec",
    "cusparseDnVecSetValues",
    "cusparseDestroySpMat",
    "cusparseSpMV",
    "cusparseGather",
    "cufftMakePlan1d",
    "cufftMakePlanMany",
    "cufftSetWorkArea",
    "cufftDestroy",
    "cufftExecC2C",
    "cufftExecC2R",
    "cufftXtExec",
    "ncclAllReduce",
    "ncclSend",
    "ncclBroadcast",
    "ncclGroupStart",
    "ncclGroupEnd",
]

# The client calls the functions through its import table, in assembly: each function jumps to the library's function
# of the same name, with all its arguments.
JUMP = {
    "x86_64": "client_{0}: jmp {0}@PLT",
    "aarch64": "client_{0}: b {0}",
}

_dlopen = ctypes.CDLL(None).dlopen
_dlopen.restype = ctypes.c_void_p

Memory = tuple[str, str, int, "tuple[int, list[tuple[int, int]]] | None"]


def client_source(machine: str) -> str:
    """Return the C source of a module that calls each of the library's functions."""
    jump = JUMP[machine]
    lines = [
        f'__asm__(".text\\n.globl client_{name}\\n.type client_{name}, %function\\n{jump.format(name)}\\n");'
        for name in FUNCTIONS
    ]
    return "\n".join(lines)


class StandIn:
    """The built library, and what its functions saw."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        source = folder / "library.c"
        source.write_text(LIBRARY)
        versions = folder / "versions"
        versions.write_text("standin_1 { global: *; };")
        self.path = folder / "libstandin.so.1"
        _compile(source, self.path, f"-Wl,-soname,{self.path.name}", f"-Wl,--version-script={versions}")
        self.library = ctypes.CDLL(str(self.path))
        self.library.seen_argument.restype = ctypes.c_int64
        self.library.seen_number.restype = ctypes.c_double

    def client(self, name: str, *flags: str) -> Path:
        """Build a module that calls the library."""
        source = self.folder / f"{name}.c"
        source.write_text(client_source(platform.machine()))
        path = self.folder / f"{name}.so"
        _compile(source, path, str(self.path), f"-Wl,-rpath,{self.folder}", *flags)
        return path


def _compile(source: Path, target: Path, *flags: str) -> None:
    command = ["cc", "-shared", "-fPIC", "-w", "-O1", "-o", str(target), str(source), *flags]
    subprocess.run(command, check=True, capture_output=True, text=True)


class Client:
    """A loaded module that calls the library, and the notes of its last call."""

    def __init__(self, stand_in: StandIn, path: Path) -> None:
        self.path = path
        # ctypes would bind all functions now.
        handle = _dlopen(str(path).encode(), os.RTLD_LAZY | os.RTLD_LOCAL)
        assert handle
        self.module = ctypes.CDLL(str(path), handle=handle)
        self._library = stand_in.library
        self.notes: list[tuple[str, list[Memory]]] = []
        self.during: Callable[[], object] = lambda: None  # what the library's function does

    def call(self, name: str, *arguments: Any) -> int:
        """Call a function of the library through the import table of the module."""
        self.notes = []
        noted_memory = for_tests.noted_memory  # not in observe(), whose exceptions are lost

        def observe() -> None:
            self.notes = noted_memory()
            self.during()

        observer = ctypes.CFUNCTYPE(None)(observe)
        self._library.observe_calls(observer)
        try:
            return int(getattr(self.module, f"client_{name}")(*[_passed(argument) for argument in arguments]))
        finally:
            self._library.observe_calls(ctypes.CFUNCTYPE(None)(0))

    def memory(self, name: str, *arguments: Any) -> dict[str, tuple[str, int, Any]]:
        """Call a function and return the memory of its notes by label."""
        self.call(name, *arguments)
        ((noted, memory),) = self.notes
        assert noted == name
        return {label: (kind, address, shape) for label, kind, address, shape in memory}


def _passed(argument: Any) -> Any:
    return ctypes.c_int64(argument) if isinstance(argument, int) else argument
