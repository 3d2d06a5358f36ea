"""Linear operators: functions that multiply arrays of a device by a matrix that need not exist."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.cupyx.scipy.sparse.base import _spbase
from tcuda.emulation.cupyx.scipy.sparse.parts import is_dense
from tcuda.emulation.cupyx.scipy.sparse.shapes import is_shape
from tcuda.emulation.work import creation

if TYPE_CHECKING:
    from collections.abc import Callable

    Product = Callable[[Any], Any]


class LinearOperator:
    """A matrix that is known by its products.

    Make an operator of functions, or write a class with ``_matvec`` or ``_matmat`` that calls ``__init__`` with a dtype
    and a shape.

    Args:
        shape: The numbers of rows and columns.
        matvec: Returns the product with an array of one axis.
        rmatvec: Returns the product of the adjoint operator with such an array.
        matmat: Returns the product with an array of two axes.
        dtype: The type of the elements; that of a product with zeros if None.
        rmatmat: Returns the product of the adjoint operator with an array of two axes.
    """

    ndim = 2
    shape: tuple[int, int]
    dtype: Any

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return an operator of functions, or one of a class that has products of its own."""
        made = super().__new__(_FunctionOperator if cls is LinearOperator else cls)
        kind: Any = type(made)
        if kind._matvec is LinearOperator._matvec and kind._matmat is LinearOperator._matmat:
            warnings.warn(
                "LinearOperator subclass should implement at least one of _matvec and _matmat.",
                RuntimeWarning,
                stacklevel=2,
            )
        return made

    def __init__(self, dtype: Any, shape: Any) -> None:
        lengths = tuple(shape)
        if not is_shape(lengths):
            raise ValueError(f"invalid shape {lengths!r} (must be 2-d)")
        self.dtype = None if dtype is None else np.dtype(dtype)
        self.shape = lengths

    def _matvec(self, x: Any) -> Any:
        return self.matmat(x.reshape(-1, 1))

    def _matmat(self, X: Any) -> Any:  # noqa: N803
        return _in_columns(self.matvec, X)

    def _rmatvec(self, x: Any) -> Any:
        if type(self)._adjoint is LinearOperator._adjoint:
            raise NotImplementedError("the operator has no product of its adjoint")
        return self.H.matvec(x)

    def _rmatmat(self, X: Any) -> Any:  # noqa: N803
        if type(self)._adjoint is LinearOperator._adjoint:
            return _in_columns(self.rmatvec, X)
        return self.H.matmat(X)

    def _vector(self, product: Product, x: Any, given: int, made: int) -> Any:
        if x.shape not in ((given,), (given, 1)):
            raise ValueError("dimension mismatch")
        return product(x).reshape(made if x.ndim == 1 else (made, 1))

    def _columns(self, product: Product, X: Any, given: int) -> Any:  # noqa: N803
        if X.ndim != 2:
            raise ValueError(f"expected 2-d ndarray or matrix, not {X.ndim}-d")
        if X.shape[0] != given:
            raise ValueError(f"dimension mismatch: {self.shape!r}, {X.shape!r}")
        return product(X)

    def matvec(self, x: Any) -> Any:
        """Return the product with an array of one axis or of one column."""
        return self._vector(self._matvec, x, self.shape[1], self.shape[0])

    def rmatvec(self, x: Any) -> Any:
        """Return the product of the adjoint operator with an array of one axis or of one column."""
        return self._vector(self._rmatvec, x, self.shape[0], self.shape[1])

    def matmat(self, X: Any) -> Any:  # noqa: N803
        """Return the product with an array of two axes."""
        return self._columns(self._matmat, X, self.shape[1])

    def rmatmat(self, X: Any) -> Any:  # noqa: N803
        """Return the product of the adjoint operator with an array of two axes."""
        return self._columns(self._rmatmat, X, self.shape[0])

    def dot(self, x: Any) -> Any:
        """Return the product with an operator, a number, or an array."""
        if isinstance(x, LinearOperator):
            return _product(self, x)
        if np.isscalar(x):
            return _scaled(self, x)
        if x.ndim not in (1, 2):
            raise ValueError(f"expected 1-d or 2-d array, got {x!r}")
        return self.matvec(x) if x.ndim == 1 or x.shape[1] == 1 else self.matmat(x)

    __call__ = __mul__ = dot

    def __rmul__(self, x: Any) -> Any:
        return _scaled(self, x) if np.isscalar(x) else NotImplemented

    def __matmul__(self, other: Any) -> Any:
        if np.isscalar(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return self * other

    def __rmatmul__(self, other: Any) -> Any:
        if np.isscalar(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return self.__rmul__(other)

    def __pow__(self, p: Any) -> Any:
        return _power(self, p) if np.isscalar(p) else NotImplemented

    def __add__(self, x: Any) -> Any:
        return _sum(self, x) if isinstance(x, LinearOperator) else NotImplemented

    def __neg__(self) -> Any:
        return _scaled(self, -1)

    def __sub__(self, x: Any) -> Any:
        return self + -x

    def __repr__(self) -> str:
        kind = "unspecified dtype" if self.dtype is None else f"dtype={self.dtype}"
        return f"<{self.shape[0]}x{self.shape[1]} {type(self).__name__} with {kind}>"

    def adjoint(self) -> Any:
        """Return the adjoint operator."""
        return self._adjoint()

    H = property(adjoint)

    def transpose(self) -> Any:
        """Return the transposed operator."""
        return self._transpose()

    T = property(transpose)

    def _adjoint(self) -> Any:
        return _FunctionOperator(self.shape[::-1], self._rmatvec, self._matvec, self._rmatmat, self.dtype, self._matmat)

    def _transpose(self) -> Any:
        def conjugated(product: Product) -> Product:
            return lambda x: FUNCTIONS["conj"](product(FUNCTIONS["conj"](x)))

        return _FunctionOperator(
            self.shape[::-1],
            conjugated(self._rmatvec),
            conjugated(self._matvec),
            conjugated(self._rmatmat),
            self.dtype,
            conjugated(self._matmat),
        )


def _in_columns(product: Product, columns: Any) -> Any:
    return FUNCTIONS["hstack"]([product(column.reshape(-1, 1)) for column in columns.T])


class _FunctionOperator(LinearOperator):
    """A linear operator of functions; see :class:`LinearOperator`."""

    def __init__(
        self,
        shape: Any,
        matvec: Product,
        rmatvec: Product | None = None,
        matmat: Product | None = None,
        dtype: Any = None,
        rmatmat: Product | None = None,
    ) -> None:
        super().__init__(dtype, shape)
        self._products = matvec, rmatvec, matmat, rmatmat
        if self.dtype is None:
            self.dtype = self.matvec(creation.zeros(self.shape[1])).dtype

    def _matvec(self, x: Any) -> Any:
        return self._products[0](x)

    def _rmatvec(self, x: Any) -> Any:
        if self._products[1] is None:
            raise NotImplementedError("rmatvec is not defined")
        return self._products[1](x)

    def _matmat(self, X: Any) -> Any:  # noqa: N803
        product = self._products[2]
        return product(X) if product is not None else _in_columns(self.matvec, X)

    def _rmatmat(self, X: Any) -> Any:  # noqa: N803
        product = self._products[3]
        return product(X) if product is not None else _in_columns(self.rmatvec, X)


class MatrixLinearOperator(LinearOperator):
    """The linear operator of a matrix or of an array."""

    def __init__(self, A: Any) -> None:  # noqa: N803
        super().__init__(A.dtype, A.shape)
        self.A = A

    def _matmat(self, X: Any) -> Any:  # noqa: N803
        return self.A.dot(X)

    def _adjoint(self) -> Any:
        return MatrixLinearOperator(self.A.T.conj())


def _made(dtype: Any, shape: Any, product: Callable[[str, Any], Any]) -> Any:
    """Return an operator of which ``product`` computes the products with the names of the methods."""
    each = {name: functools.partial(product, name) for name in ("matvec", "rmatvec", "matmat", "rmatmat")}
    return _FunctionOperator(shape, dtype=dtype, **each)


def _sum(a: Any, b: Any) -> Any:
    if a.shape != b.shape:
        raise ValueError(f"cannot add {a!r} and {b!r}: shape mismatch")
    return _made(np.result_type(a.dtype, b.dtype), a.shape, lambda name, x: getattr(a, name)(x) + getattr(b, name)(x))


def _product(a: Any, b: Any) -> Any:
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"cannot multiply {a!r} and {b!r}: shape mismatch")

    def product(name: str, x: Any) -> Any:
        first, second = (a, b) if name.startswith("r") else (b, a)
        return getattr(second, name)(getattr(first, name)(x))

    return _made(np.result_type(a.dtype, b.dtype), (a.shape[0], b.shape[1]), product)


def _scaled(a: Any, factor: Any) -> Any:
    def product(name: str, x: Any) -> Any:
        return (np.conj(factor).item() if name.startswith("r") else factor) * getattr(a, name)(x)

    return _made(np.result_type(a.dtype, type(factor)), a.shape, product)


def _power(a: Any, exponent: Any) -> Any:
    if a.shape[0] != a.shape[1]:
        raise ValueError(f"square LinearOperator expected, got {a!r}")
    if int(exponent) != exponent or exponent < 0:
        raise ValueError("non-negative integer expected as p")

    def product(name: str, x: Any) -> Any:
        for _ in range(int(exponent)):
            x = getattr(a, name)(x)
        return x

    return _made(a.dtype, a.shape, product)


def aslinearoperator(A: Any) -> Any:  # noqa: N803
    """Return a matrix, an array, or an object with ``shape`` and ``matvec`` as a :class:`LinearOperator`.

    Raises:
        TypeError: The object is no operator.
        ValueError: An array has more than two axes.
    """
    if isinstance(A, LinearOperator):
        return A
    if is_dense(A):
        if A.ndim > 2:
            raise ValueError("array must have ndim <= 2")
        return MatrixLinearOperator(FUNCTIONS["atleast_2d"](A))
    if isinstance(A, _spbase):
        return MatrixLinearOperator(A)
    if not (hasattr(A, "shape") and hasattr(A, "matvec")):
        raise TypeError("type not understood")
    others = {name: getattr(A, name, None) for name in ("rmatvec", "rmatmat", "dtype")}
    return _FunctionOperator(A.shape, A.matvec, **others)
