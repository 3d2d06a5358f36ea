"""The functions of ``cupy.cublas``, which NumPy computes on emulated devices, on vectors and matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.work import creation

if TYPE_CHECKING:
    from collections.abc import Callable

_limit = 256


def get_batched_gesv_limit() -> int:
    """Return the largest number of equations of the systems that CuPy solves together."""
    return _limit


def set_batched_gesv_limit(limit: int) -> None:
    """Set the largest number of equations of the systems that CuPy solves together."""
    global _limit
    _limit = limit


def iamax(x: Any, out: Any = None) -> Any:
    """Return the place of the first element whose parts have the largest sum of sizes; the first place is 1."""
    return _place(x, out, FUNCTIONS["argmax"])


def iamin(x: Any, out: Any = None) -> Any:
    """Return the place of the first element whose parts have the smallest sum of sizes; the first place is 1."""
    return _place(x, out, FUNCTIONS["argmin"])


def _place(x: Any, out: Any, find: Callable[..., Any]) -> Any:
    _require_vector("x", x)
    return _given(find(_sizes(x)).astype("i") + 1, out)


def asum(x: Any, out: Any = None) -> Any:
    """Return the sum of the sizes of the elements; the size of a complex number is the sum of those of its parts."""
    _require_vector("x", x)
    return _given(_sizes(x).sum(), out)


def nrm2(x: Any, out: Any = None) -> Any:
    """Return the length of a vector."""
    _require_vector("x", x)
    return _given(FUNCTIONS["sqrt"]((abs(x) ** 2).sum()), out)


def scal(a: Any, x: Any) -> None:
    """Multiply a vector by a number, in place."""
    _require_vector("x", x)
    x *= _number(a, x)


def axpy(a: Any, x: Any, y: Any) -> None:
    """Add ``a * x`` to the vector ``y``, in place."""
    _require_two_vectors(x, y)
    y += _number(a, x) * x


def dot(x: Any, y: Any, out: Any = None) -> Any:
    """Return the product of two real vectors."""
    if x.dtype.char in "FD":
        raise TypeError("Use dotu() or dotc() for complex dtype")
    return dotu(x, y, out)


def dotu(x: Any, y: Any, out: Any = None) -> Any:
    """Return the product of two vectors."""
    _require_two_vectors(x, y)
    return _given((x * y).sum(), out)


def dotc(x: Any, y: Any, out: Any = None) -> Any:
    """Return the product of the conjugate of ``x`` and ``y``."""
    return dotu(x.conj(), y, out)


def gemv(transa: Any, alpha: Any, a: Any, x: Any, beta: Any, y: Any) -> None:
    """Store ``alpha * op(a) @ x + beta * y`` in ``y``."""
    _require_type(a)
    assert a.ndim == 2
    assert x.ndim == y.ndim == 1
    assert a.dtype == x.dtype == y.dtype
    matrix = _operand(transa, a)
    assert (y.shape[0], x.shape[0]) == matrix.shape
    _store(_number(alpha, a) * (matrix @ x), beta, y)


def ger(alpha: Any, x: Any, y: Any, a: Any) -> None:
    """Add ``alpha * x @ y.T`` to the real matrix ``a``, in place."""
    if a.dtype.char in "FD":
        raise TypeError("Use geru() or gerc() for complex dtypes")
    geru(alpha, x, y, a)


def geru(alpha: Any, x: Any, y: Any, a: Any) -> None:
    """Add ``alpha * x @ y.T`` to the matrix ``a``, in place."""
    _require_type(a)
    assert a.ndim == 2
    assert x.ndim == y.ndim == 1
    assert a.dtype == x.dtype == y.dtype
    assert a.shape == (x.shape[0], y.shape[0])
    a += _number(alpha, a) * FUNCTIONS["outer"](x, y)


def gerc(alpha: Any, x: Any, y: Any, a: Any) -> None:
    """Add ``alpha * x @ y.T.conj()`` to the matrix ``a``, in place."""
    geru(alpha, x, y.conj(), a)


def gemm(transa: Any, transb: Any, a: Any, b: Any, out: Any = None, alpha: Any = 1.0, beta: Any = 0.0) -> Any:
    """Return ``alpha * op(a) @ op(b) + beta * out``, in ``out`` if given.

    Args:
        transa: The operation on ``a``: ``"N"`` for none, ``"T"`` for the transpose, ``"H"`` for its conjugate.
        transb: The operation on ``b``.
        a: A matrix.
        b: A matrix.
        out: The matrix for the result.
        alpha: The factor of the product.
        beta: The factor of ``out``.
    """
    assert a.ndim == b.ndim == 2
    assert a.dtype == b.dtype
    _require_type(a)
    left, right = _operand(transa, a), _operand(transb, b)
    assert left.shape[1] == right.shape[0]
    return _result(_number(alpha, a) * (left @ right), beta, out)


def geam(transa: Any, transb: Any, alpha: Any, a: Any, beta: Any, b: Any, out: Any = None) -> Any:
    """Return ``alpha * op(a) + beta * op(b)``, in ``out`` if given."""
    assert a.ndim == b.ndim == 2
    assert a.dtype == b.dtype
    _require_type(a)
    left, right = _operand(transa, a), _operand(transb, b)
    assert left.shape == right.shape
    return _result(_number(alpha, a) * left + _number(beta, a) * right, 0.0, out)


def dgmm(side: Any, a: Any, x: Any, out: Any = None, incx: int = 1) -> Any:
    """Return ``diag(x) @ a`` for the side ``"L"``, and ``a @ diag(x)`` for the side ``"R"``, in ``out`` if given."""
    assert a.ndim == 2
    assert 0 <= x.ndim <= 2
    assert a.dtype == x.dtype
    _require_type(a)
    if side not in ("L", "R", 0, 1):
        raise ValueError(f"invalid side (actual: {side})")
    is_left = side in ("L", 0)
    length = a.shape[0 if is_left else 1]
    assert x.size >= (length - 1) * abs(incx) + 1
    elements = x.ravel()[:: abs(incx)][:length] if incx else FUNCTIONS["broadcast_to"](x.ravel()[:1], (length,))
    if incx < 0:
        elements = elements[::-1]
    scaled = elements[:, None] * a if is_left else a * elements
    order = "C" if a.flags.c_contiguous else "F"
    return _result(scaled, 0.0, out, order)


def syrk(trans: Any, a: Any, out: Any = None, alpha: Any = 1.0, beta: Any = 0.0, lower: bool = False) -> Any:
    """Return one triangle of ``alpha * op(a) @ op(a).T + beta * out``; the other triangle keeps its elements."""
    assert a.ndim == 2
    _require_type(a)
    matrix = _operand(trans, a)
    product = _number(alpha, a) * (matrix @ matrix.T)
    if out is None:
        out, beta = creation.zeros(product.shape, a.dtype, "F"), 0.0
    else:
        assert out.shape == product.shape
        assert out.dtype == a.dtype
    ones = creation.ones(product.shape, bool)
    part = FUNCTIONS["tril" if lower else "triu"](ones)
    out[...] = FUNCTIONS["where"](part, product + _number(beta, a) * out, out)
    return out


def _result(value: Any, beta: Any, out: Any, order: str = "F") -> Any:
    if out is None:
        return value.copy(order=order)
    assert out.ndim == 2
    assert out.shape == value.shape
    assert out.dtype == value.dtype
    _store(value, beta, out)
    return out


def _store(value: Any, beta: Any, out: Any) -> None:
    if isinstance(beta, (int, float, complex)) and beta == 0:  # As in cuBLAS, `out` may then hold anything.
        out[...] = value
    else:
        out[...] = value + _number(beta, out) * out


def _operand(trans: Any, a: Any) -> Any:
    """Return the matrix ``op(a)``.

    Raises:
        TypeError: ``trans`` names no operation.
    """
    if trans in ("N", 0):
        return a
    if trans in ("T", 1):
        return a.T
    if trans in ("H", 2):
        return a.T.conj()
    raise TypeError(f"invalid trans (actual: {trans})")


def _number(value: Any, like: Any) -> Any:
    """Return a factor as an array without axes, of the type of ``like``."""
    number: Any = creation.asarray(value, like.dtype)
    return number.reshape(())


def _sizes(x: Any) -> Any:
    return abs(x.real) + abs(x.imag) if x.dtype.kind == "c" else abs(x)


def _given(value: Any, out: Any) -> Any:
    if out is None:
        return value
    out[...] = value
    return out


def _require_vector(name: str, x: Any) -> None:
    if x.ndim != 1:
        raise ValueError(f"{name} must be a 1D array (actual: {x.ndim})")
    _require_type(x)


def _require_two_vectors(x: Any, y: Any) -> None:
    if x.dtype != y.dtype:
        raise TypeError(f"x and y must be the same dtype (actual: {x.dtype} and {y.dtype})")
    _require_vector("x", x)
    _require_vector("y", y)
    if x.size != y.size:
        raise ValueError(f"x and y must be the same size (actual: {x.size} and {y.size})")


def _require_type(x: Any) -> None:
    if x.dtype.char not in "fdFD":
        raise TypeError("invalid dtype")


__all__ = [
    "asum",
    "axpy",
    "dgmm",
    "dot",
    "dotc",
    "dotu",
    "geam",
    "gemm",
    "gemv",
    "ger",
    "gerc",
    "geru",
    "get_batched_gesv_limit",
    "iamax",
    "iamin",
    "nrm2",
    "scal",
    "set_batched_gesv_limit",
    "syrk",
]
