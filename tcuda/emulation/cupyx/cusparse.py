"""The functions of cuSPARSE that CuPy calls on emulated devices (``cupyx.cusparse``); SciPy computes in their place."""

from __future__ import annotations

import importlib
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.work import creation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda.emulation.arrays.ndarray import ndarray

_AVAILABLE = frozenset(
    [
        "coo2csr",
        "coosort",
        "csc2csrEx2",
        "cscsort",
        "csr2coo",
        "csr2cscEx2",
        "csr2csr_compress",
        "csrgeam2",
        "csrilu02",
        "csrsort",
        "denseToSparse",
        "sparseToDense",
        "spgemm",
        "spmm",
        "spmv",
        "spsm",
    ]
)
_ABSENT = frozenset(
    [
        "csc2csr",
        "csc2dense",
        "csr2csc",
        "csr2dense",
        "csrgeam",
        "csrgemm",
        "csrgemm2",
        "csrmm",
        "csrmm2",
        "csrmv",
        "csrsm2",
        "dense2csc",
        "dense2csr",
        "gthr",
        "spgeam",
        "spgemm_int64",
    ]
)
_VERSION = 12709

_handles = itertools.count(1)


class MatDescriptor:
    """What cuSPARSE knows of a matrix beside its elements. Emulated devices keep the settings, and need none of them.

    Args:
        descriptor: The number of the descriptor in cuSPARSE.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._settings = {"type": 0, "index base": 0, "fill mode": 0, "diagonal": 0}

    @classmethod
    def create(cls) -> MatDescriptor:
        """Return a new descriptor, of a general matrix whose indices begin with 0."""
        return MatDescriptor(next(_handles))

    def __reduce__(self) -> tuple[Callable[[], MatDescriptor], tuple[()]]:
        return MatDescriptor.create, ()  # as in CuPy, without the settings

    def set_mat_type(self, typ: int) -> None:
        """Say what the matrix is: general (0), symmetric (1), Hermitian (2) or triangular (3).

        Raises:
            RuntimeError: There is no such number.
        """
        self._set("type", typ, 4)

    def set_mat_index_base(self, base: int) -> None:
        """Say whether the first index is 0 or 1.

        Raises:
            RuntimeError: There is no such number.
        """
        self._set("index base", base, 2)

    def set_mat_fill_mode(self, fill_mode: int) -> None:
        """Say which part of a triangular matrix is stored: the lower (0) or the upper (1).

        Raises:
            RuntimeError: There is no such number.
        """
        self._set("fill mode", fill_mode, 2)

    def set_mat_diag_type(self, diag_type: int) -> None:
        """Say whether all elements of the diagonal are one: no (0) or yes (1).

        Raises:
            RuntimeError: There is no such number.
        """
        self._set("diagonal", diag_type, 2)

    def _set(self, name: str, value: int, count: int) -> None:
        if value not in range(count):
            numbers = ", ".join(map(str, range(count)))
            raise RuntimeError(
                f"CUSPARSE_STATUS_INVALID_VALUE: the {name} of a matrix is one of {numbers}; got {value!r}."
            )
        self._settings[name] = int(value)


def check_availability(name: str) -> bool:
    """Return whether the cuSPARSE of the CUDA that the devices emulate has the function ``name``.

    Raises:
        ValueError: There is no such function.
    """
    if name not in _AVAILABLE | _ABSENT:
        raise ValueError(
            f"No available version information specified for {name}; there are {sorted(_AVAILABLE | _ABSENT)}."
        )
    return name in _AVAILABLE


def getVersion() -> int:
    """Return the version of the cuSPARSE of the CUDA that the devices emulate."""
    return _VERSION


def sparseToDense(x: Any, out: ndarray | None = None) -> ndarray:
    """Return the sparse matrix ``x`` as an array in column-major order.

    Args:
        x: The matrix, of floating-point or complex numbers.
        out: The array for the result, in column-major order; a new one if None.

    Raises:
        ValueError: The elements are other numbers, or ``out`` has another type or order.
    """
    _require_numbers(x.dtype)
    if out is None:
        return x.toarray(order="F")  # type: ignore[no-any-return]
    _require_columns(out, "out")
    if out.dtype != x.dtype:
        raise ValueError(f"out dtype mismatch: the matrix is of {x.dtype}, and out is of {out.dtype}")
    out[...] = x.toarray()
    return out


def denseToSparse(x: ndarray, format: str = "csr") -> Any:
    """Return the array ``x`` as a sparse matrix.

    Args:
        x: The array with two axes, of floating-point or complex numbers.
        format: ``"csr"``, ``"csc"`` or ``"coo"``.

    Raises:
        TypeError: There is no such format.
        ValueError: The elements are other numbers, or the array has another number of axes.
    """
    if x.ndim != 2:
        raise ValueError(f"expected 2-D matrix; got an array of {x.ndim} axes")
    _require_numbers(x.dtype)
    if format not in ("csr", "csc", "coo"):
        raise TypeError(f"unsupported format (actual: {format}); the formats are csr, csc and coo")
    sparse = importlib.import_module("tcuda.emulation.cupyx.scipy.sparse")
    return getattr(sparse, f"{format}_matrix")(x)


def coo2csr(x: Any) -> Any:
    """Return a matrix in the COO format, whose elements are in the order of rows, as a matrix in the CSR format."""
    sparse = importlib.import_module("tcuda.emulation.cupyx.scipy.sparse")
    starts = creation.zeros(x.shape[0] + 1, x.row.dtype)
    if x.nnz:
        counts = FUNCTIONS["bincount"](x.row, minlength=x.shape[0])
        FUNCTIONS["cumsum"](counts, out=starts[1:])  # type: ignore[index]
    return sparse.csr_matrix._from_parts(x.data, x.col, starts, x.shape)


def csrsort(x: Any) -> None:
    """Sort the elements of each row of a matrix in the CSR format by their columns, in place."""
    x.sort_indices()


def cscsort(x: Any) -> None:
    """Sort the elements of each column of a matrix in the CSC format by their rows, in place."""
    x.sort_indices()


def spmv(a: Any, x: ndarray, y: ndarray | None = None, alpha: Any = 1, beta: Any = 0, transa: bool = False) -> ndarray:
    """Return ``alpha * op(a) @ x + beta * y``.

    Args:
        a: The sparse matrix, in the CSR, CSC or COO format and canonical.
        x: The vector.
        y: The vector for the result; a new one if None.
        alpha: The factor of the product.
        beta: The factor of ``y``.
        transa: Whether ``op(a)`` is the transpose of ``a``.

    Raises:
        TypeError: ``a`` has another format.
        ValueError: ``a`` is not canonical, or the shapes do not fit.
    """
    a = _operand(a, transa)
    if a.shape[1] != len(x) or (y is not None and len(y) != a.shape[0]):
        raise ValueError(f"dimension mismatch: the matrix has the shape {a.shape}, and the vector {len(x)} elements")
    return _product(a, x, y, alpha, beta)


def spmm(
    a: Any,
    b: ndarray,
    c: ndarray | None = None,
    alpha: Any = 1,
    beta: Any = 0,
    transa: bool = False,
    transb: bool = False,
) -> ndarray:
    """Return ``alpha * op(a) @ op(b) + beta * c``.

    Args:
        a: The sparse matrix, in the CSR, CSC or COO format and canonical.
        b: The array, in column-major order.
        c: The array for the result, in column-major order; a new one if None.
        alpha: The factor of the product.
        beta: The factor of ``c``.
        transa: Whether ``op(a)`` is the transpose of ``a``.
        transb: Whether ``op(b)`` is the transpose of ``b``.

    Raises:
        TypeError: ``a`` has another format.
        ValueError: ``a`` is not canonical, an array is in another order, or the shapes do not fit.
    """
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError("expected 2-D matrices")
    for array, name in ((b, "b"), (c, "c")):
        if array is not None:
            _require_columns(array, name)
    a, b = _operand(a, transa), b.T if transb else b
    if a.shape[1] != b.shape[0] or (c is not None and c.shape != (a.shape[0], b.shape[1])):
        raise ValueError(f"dimension mismatch: the matrix has the shape {a.shape}, and the array {b.shape}")
    return _product(a, b, c, alpha, beta)


def spgemm(a: Any, b: Any, alpha: Any = 1) -> Any:
    """Return ``alpha * a @ b``.

    Args:
        a: A matrix in the CSR format, canonical.
        b: A matrix in the CSR format, canonical.
        alpha: The factor.

    Raises:
        TypeError: A matrix has another format.
        ValueError: A matrix is not canonical, or the shapes do not fit.
    """
    _require_rows(a, b)
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"mismatched shape: {a.shape} and {b.shape}")
    product = a @ b
    return product if alpha == 1 else product * alpha


def csrgeam2(a: Any, b: Any, alpha: Any = 1, beta: Any = 1) -> Any:
    """Return ``alpha * a + beta * b``.

    Args:
        a: A matrix in the CSR format, canonical.
        b: A matrix in the CSR format, canonical.
        alpha: The factor of ``a``.
        beta: The factor of ``b``.

    Raises:
        TypeError: A matrix has another format.
        ValueError: A matrix is not canonical, or the shapes differ.
    """
    _require_rows(a, b)
    if a.shape != b.shape:
        raise ValueError(f"inconsistent shapes: {a.shape} and {b.shape}")
    return (a if alpha == 1 else a * alpha) + (b if beta == 1 else b * beta)


def _require_numbers(dtype: np.dtype[Any]) -> None:
    if dtype.char not in "fdFD":
        raise ValueError(f"unsupported dtype: {dtype}; cuSPARSE has floating-point and complex numbers")


def _require_columns(array: ndarray, name: str) -> None:
    if not array.flags.f_contiguous:
        raise ValueError(f"expected F-contiguous array for {name}")


def _require_rows(*matrices: Any) -> None:
    for matrix, name in zip(matrices, "ab", strict=True):
        if getattr(matrix, "format", "") != "csr":
            raise TypeError(f"unsupported type (actual: {type(matrix)}); the matrices are in the CSR format")
        if not matrix.has_canonical_format:
            raise ValueError(f"expected canonical format for {name}; call sum_duplicates()")


def _operand(a: Any, transposed: bool) -> Any:
    if getattr(a, "format", "") not in ("csr", "csc", "coo"):
        raise TypeError(f"unsupported type (actual: {type(a)}); the formats are csr, csc and coo")
    if not a.has_canonical_format:
        raise ValueError("expected canonical format for a; call sum_duplicates()")
    return a.T if transposed else a


def _product(a: Any, b: ndarray, given: ndarray | None, alpha: Any, beta: Any) -> ndarray:
    """Return ``alpha * a @ b + beta * given``. As in CuPy, ``given`` gets the result if it has its type."""
    dtypes = [operand.dtype for operand in (a, b, given) if operand is not None]
    dtype = np.result_type(*dtypes)
    product = (a.astype(dtype) @ b.astype(dtype)) * dtype.type(alpha)
    target = creation.zeros(product.shape, dtype, "F") if given is None else given.astype(dtype, copy=False)
    if given is not None and a.nnz:
        product += target * dtype.type(beta)
    target[...] = product  # type: ignore[index]
    return target  # type: ignore[return-value]


def __dir__() -> list[str]:
    return [
        "MatDescriptor",
        "check_availability",
        "coo2csr",
        "cscsort",
        "csrgeam2",
        "csrsort",
        "denseToSparse",
        "getVersion",
        "sparseToDense",
        "spgemm",
        "spmm",
        "spmv",
    ]
