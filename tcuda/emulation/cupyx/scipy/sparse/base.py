"""The operations of the sparse matrices and the sparse arrays of a device."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.cupyx.scipy.sparse import host
from tcuda.emulation.cupyx.scipy.sparse.calls import CLASSES, call
from tcuda.emulation.cupyx.scipy.sparse.kinds import sparray, spmatrix
from tcuda.emulation.cupyx.scipy.sparse.layout import ARRAYS, DTYPES, HOST, Layout
from tcuda.emulation.cupyx.scipy.sparse.parts import is_dense
from tcuda.emulation.cupyx.scipy.sparse.shapes import collapsed_axis, reshaped
from tcuda.emulation.devices.strided import GROUPS, Strided
from tcuda.emulation.numbers import casts
from tcuda.emulation.work import creation, numpy_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Self

SparseWarning = HOST.SparseWarning
SparseEfficiencyWarning = HOST.SparseEfficiencyWarning

_KEEPS_ORDER = {("csr", "coo"), ("csr", "csc"), ("csc", "csr")}
"""The conversions, from a format to a format, after which a matrix is as canonical as before."""

_NAMES = {"coo": "COOrdinate", "csc": "Compressed Sparse Column", "csr": "Compressed Sparse Row", "dia": "DIAgonal"}


def is_scalar(value: Any) -> bool:
    """Return whether ``value`` is a number, or an array of the device without axes."""
    return np.isscalar(value) or (is_dense(value) and value.ndim == 0)


class _spbase:
    """What sparse matrices and sparse arrays of all formats have."""

    __array_priority__ = 101
    maxprint = 50
    format = ""
    _allow_nd: tuple[int, ...] = (2,)
    _shape: tuple[int, ...]
    data: Any

    def __init_subclass__(cls) -> None:
        if getattr(HOST, cls.__name__, None) is not None:
            CLASSES.setdefault(cls.__name__, cls)

    def __class_getitem__(cls, item: Any) -> Any:
        import types

        return types.GenericAlias(cls, item)

    # The parts

    @property
    def _layout(self) -> Layout:
        return Layout(type(self)._name(), self._shape)

    @classmethod
    def _name(cls) -> str:
        return next(base.__name__ for base in cls.__mro__ if base.__name__ in CLASSES)

    @classmethod
    def _of_layout(cls, layout: Layout, *arrays: Any) -> Self:
        made = cls.__new__(cls)
        made._set(layout, arrays)
        return made

    def _set(self, layout: Layout, arrays: Any) -> None:
        self._shape = layout.shape
        for name, array in zip(ARRAYS[self.format], arrays, strict=True):
            setattr(self, name, array)

    def _arrays(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in ARRAYS[self.format])

    def _adopt(self, other: _spbase) -> None:
        self._set(other._layout, other._arrays())

    def _class(self, format: str) -> Any:
        return CLASSES[f"{format}_{'array' if isinstance(self, sparray) else 'matrix'}"]

    def _with_data(self, data: Any, copy: bool = True) -> Self:
        rest = self._arrays()[1:]
        return type(self)._of_layout(self._layout, data, *([part.copy() for part in rest] if copy else rest))

    def _settle(self) -> None:
        """Sum elements that are stored twice, as CuPy does before most operations."""

    @property
    def device(self) -> Any:
        """The device in whose memory the arrays lie."""
        return self.data.device

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        kind: np.dtype[Any] = self.data.dtype
        return kind

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self._shape

    @property
    def nnz(self) -> int:
        """The number of stored elements."""
        return self._getnnz()

    @property
    def size(self) -> int:
        """The number of stored elements."""
        return self._getnnz()

    def _getnnz(self, axis: Any = None) -> int:
        if axis is not None:
            raise NotImplementedError(f"getnnz over an axis is not implemented for {self.format.upper()} format")
        return int(self.data.size)

    def get(self, stream: Any = None) -> Any:
        """Return a copy as a matrix or array of SciPy."""
        return self._layout.on_host([part.get(stream) for part in self._arrays()])

    def __len__(self) -> int:
        raise TypeError("sparse array length is ambiguous; use shape[0] or .nnz")

    def __repr__(self) -> str:
        kind = "array" if isinstance(self, sparray) else "matrix"
        more = f" ({len(self._arrays()[1])} diagonals)" if self.format == "dia" else ""
        return (
            f"<{_NAMES[self.format]} sparse {kind} of dtype '{self.dtype}'\n"
            f"\twith {self.nnz} stored elements{more} and shape {self.shape}>"
        )

    def __str__(self) -> str:
        return str(self.get())

    def __iter__(self) -> Iterator[Any]:
        matrix: Any = self
        for place in range(self.shape[0]):
            yield matrix[place] if self.ndim == 1 else matrix[place, :]

    def __bool__(self) -> bool:
        if self.shape == (1, 1):
            return self.nnz != 0
        raise ValueError("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all().")

    # Conversions

    def asformat(self, format: str | None) -> Any:
        """Return the matrix in another format."""
        if format is None or format == self.format:
            return self
        return getattr(self, f"to{format}")()

    def _converted(self, format: str, copy: Any, reads: bool) -> Any:
        if format == self.format:
            return self.copy() if copy else self
        room = max(self.shape) if {"csr", "csc"} >= {self.format, format} or self.format == "dia" else 0
        if self.format == "coo":
            room = self.shape[-1 if format == "csc" else 0]
        made = call(host.method(f"to{format}"), (self,), reads=reads, room=room)
        if self._layout.canonical and (self.format, format) in _KEEPS_ORDER:
            made.has_canonical_format = True
        return made

    def tocoo(self, copy: bool = False) -> Any:
        """Return the matrix with coordinates."""
        return self._converted("coo", copy, False)

    def tocsc(self, copy: bool = False) -> Any:
        """Return the matrix by columns."""
        return self._converted("csc", copy, False)

    def tocsr(self, copy: bool = False) -> Any:
        """Return the matrix by rows."""
        return self._converted("csr", copy, False)

    def todia(self, copy: bool = False) -> Any:
        """Return the matrix by diagonals, which CuPy cannot make of another format."""
        if self.format != "dia":
            raise NotImplementedError(f"a matrix of the format {self.format!r} cannot be converted to diagonals")
        return self.copy() if copy else self

    def _refuse_conversion(self, *args: Any, **options: Any) -> Any:
        """Refuse a format that CuPy does not have."""
        raise NotImplementedError("CuPy has the formats 'coo', 'csc', 'csr' and 'dia' only")

    tobsr = todok = tolil = _refuse_conversion

    def toarray(self, order: Any = None, out: Any = None) -> Any:
        """Return the matrix as an array of the device.

        Raises:
            ValueError: The order is neither ``"C"`` nor ``"F"``.
        """
        order = (order or "C").upper()
        if order not in ("C", "F"):
            raise ValueError("order not understood")
        return call(host.method("toarray"), (self,), {"order": order}, reads=self.format in ("coo", "dia"))

    def todense(self, order: Any = None, out: Any = None) -> Any:
        """Return the matrix as an array of the device."""
        return self.toarray(order, out)

    def copy(self) -> Self:
        """Return a copy."""
        return self._with_data(self.data.copy())

    def astype(self, dtype: Any, copy: bool = True) -> Self:
        """Return the matrix with elements of ``dtype``."""
        kind = np.dtype(dtype)
        if kind != self.dtype:
            return self._with_data(self.data.astype(kind))
        return self.copy() if copy else self

    def conj(self, copy: bool = True) -> Self:
        """Return the matrix with the complex conjugate of each element."""
        if self.dtype.kind == "c":
            return self._with_data(self.data.conj(), copy)
        return self.copy() if copy else self

    conjugate = conj

    @property
    def real(self) -> Self:
        """The matrix of the real parts."""
        return self._with_data(self.data.real)

    @property
    def imag(self) -> Self:
        """The matrix of the imaginary parts."""
        return self._with_data(self.data.imag)

    @property
    def T(self) -> Any:
        """The transposed matrix."""
        return self.transpose()

    @property
    def mT(self) -> Any:
        """The transposed matrix."""
        if self.ndim < 2:
            raise ValueError(f"Array must be at least 2-dimensional, but it is {self.ndim}-D")
        return self.transpose()

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """Return the transposed matrix, which shares its arrays where that is possible."""
        if axes is not None:
            raise ValueError(
                "Sparse matrices do not support an 'axes' parameter because swapping dimensions is the only logical "
                "permutation."
            )
        if self.ndim == 1:
            return self.copy() if copy else self
        return self._transposed(copy)

    def _transposed(self, copy: bool) -> Any:
        return self.tocsr().transpose(copy=copy)

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        """Return the matrix with coordinates in another shape."""
        lengths = reshaped(shape, self.shape, self._allow_nd)
        if lengths == self.shape:
            return self
        if order not in ("C", "F"):
            raise ValueError("'order' must be 'C' or 'F'")
        return call(host.method("reshape"), (self.tocoo(), lengths), {"order": order}, reads=False)

    # Arithmetic

    def __neg__(self) -> Any:
        if self.dtype.kind == "b":
            raise NotImplementedError("negating a boolean sparse array is not supported")
        return self._with_data(-self.data)

    def __round__(self, ndigits: int = 0) -> Any:
        return self._with_data(FUNCTIONS["around"](self.data, ndigits))

    def __abs__(self) -> Any:
        return self._with_data(abs(self.data))

    def _add(self, other: Any, ours: int, others: int) -> Any:
        if np.isscalar(other):
            if other == 0:
                return self.copy() if ours > 0 else -self
            raise NotImplementedError("adding a nonzero scalar to a sparse matrix is not supported")
        if isinstance(other, _spbase):
            rows = self if self.format in ("csr", "csc") else self.tocsr()
            pair = (rows, other) if ours > 0 else (other, rows)
            return rows._joined(host.added, *pair, others if ours > 0 else ours)
        if is_dense(other):
            dense = self.todense()
            function = FUNCTIONS["add" if ours == others else "subtract"]
            return function(dense, other) if ours > 0 else function(other, dense)
        return NotImplemented

    def __add__(self, other: Any) -> Any:
        return self._add(other, 1, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._add(other, 1, -1)

    def __rsub__(self, other: Any) -> Any:
        return self._add(other, -1, 1)

    def _refuse_in_place(self, other: Any) -> Any:
        return NotImplemented

    __iadd__ = __isub__ = _refuse_in_place

    def _kind_of_scaled(self, other: Any) -> np.dtype[Any]:
        kind = np.result_type(self.dtype, other.dtype if is_dense(other) else other)
        return kind if kind.char in DTYPES else np.dtype(np.float64)

    def __imul__(self, other: Any) -> Any:
        if not is_scalar(other):
            return NotImplemented
        kind = self._kind_of_scaled(other)
        if kind != self.dtype:
            self.data = self.data.astype(kind) * other
        else:
            self.data *= other
        return self

    def __itruediv__(self, other: Any) -> Any:
        return self.__imul__(1.0 / other) if is_scalar(other) else NotImplemented

    def _joined(self, work: Callable[..., Any], *args: Any) -> Any:
        """Return the result of ``work`` for matrices whose elements are summed before."""
        for arg in args:
            if isinstance(arg, _spbase):
                arg._settle()
        return call(work, args)

    def _scaled(self, other: Any) -> Any:
        self._settle()
        return self._with_data(self.data * other)

    def multiply(self, other: Any) -> Any:
        """Return the products of the elements."""
        if self.format != "csr":
            return self.tocsr().multiply(other)
        if np.isscalar(other):
            return self._with_data((self.data * other).astype(self._kind_of_scaled(other), copy=False))
        if not isinstance(other, (_spbase, Strided)):
            raise TypeError("expected scalar, dense matrix/vector or csr matrix")
        return self._joined(host.by_rows("multiply"), self, other)

    def __mul__(self, other: Any) -> Any:
        return self.multiply(other)

    __rmul__ = __mul__

    def __matmul__(self, other: Any) -> Any:
        if is_scalar(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return self._product(other)

    def __rmatmul__(self, other: Any) -> Any:
        if is_scalar(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return self._reflected_product(other)

    def _product(self, other: Any) -> Any:
        if is_scalar(other):
            return self._scaled(other)
        if isinstance(other, _spbase):
            self._settle()
            other._settle()
            rows = [part.shape[0] for part in (self, other) if part.format != "csr"]
            return call(host.product, (self, other), room=max(rows, default=0))
        if not is_dense(other):
            return NotImplemented
        if other.ndim > 2:
            raise ValueError("could not interpret dimensions")
        if self.format not in ("csr", "csc"):
            return self.tocsr()._product(other)
        self._settle()
        return call(host.dense_product, (self, other), reads=False)

    def _reflected_product(self, other: Any) -> Any:
        if is_scalar(other):
            return self._product(other)
        if not hasattr(other, "T"):
            return NotImplemented
        made = self.T._product(other.T)
        return made if made is NotImplemented else made.T

    def dot(self, other: Any) -> Any:
        """Return the product with a matrix, an array or a number."""
        return self * other if np.isscalar(other) else self @ other

    def __truediv__(self, other: Any) -> Any:
        if self.format != "csr":
            return self.tocsr().__truediv__(other)
        if is_scalar(other):
            kind = np.float64 if self.dtype == np.float32 else self.dtype
            kind = np.result_type(kind, other.dtype if is_dense(other) else other)
            kind = kind if kind.char in DTYPES else np.dtype(np.float64)
            with np.errstate(all="ignore"):
                inverse = 1 / other if is_dense(other) else np.reciprocal(np.asarray(other, kind))[()]
            return self._with_data((self.data * inverse).astype(kind, copy=False))
        if is_dense(other):
            return call(host.by_rows("__truediv__"), (self, other)).tocoo()
        if isinstance(other, _spbase):
            return self._joined(host.by_rows("__truediv__"), self, other)
        return NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return NotImplemented

    def power(self, n: Any, dtype: Any = None) -> Any:
        """Return the powers of the elements."""
        if not is_scalar(n):
            raise NotImplementedError("input is not scalar")
        if n == 0:
            raise NotImplementedError(
                "zero power is not supported as it would densify the matrix.\n"
                "Use cupy.ones(A.shape, dtype=A.dtype) for this case."
            )
        data = self.data.copy() if dtype is None else self.data.astype(dtype)
        data **= n
        return self._with_data(data)

    def __pow__(self, other: Any) -> Any:
        return self.power(other)

    def _compared(self, name: str, other: Any) -> Any:
        if is_dense(other) and other.ndim:
            return getattr(operator, name)(self.todense(), other)
        if not isinstance(other, (_spbase, Strided)) and not np.isscalar(other):
            raise NotImplementedError(f"a sparse matrix cannot be compared with {type(other).__name__}")
        return self._joined(host.compared, self, other, name)

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> Any:
        return self._compared("eq", other)

    def __ne__(self, other: object) -> Any:
        return self._compared("ne", other)

    def __lt__(self, other: Any) -> Any:
        return self._compared("lt", other)

    def __gt__(self, other: Any) -> Any:
        return self._compared("gt", other)

    def __le__(self, other: Any) -> Any:
        return self._compared("le", other)

    def __ge__(self, other: Any) -> Any:
        return self._compared("ge", other)

    def maximum(self, other: Any) -> Any:
        """Return the larger elements of two matrices."""
        return self._larger("maximum", other)

    def minimum(self, other: Any) -> Any:
        """Return the smaller elements of two matrices."""
        return self._larger("minimum", other)

    def _larger(self, name: str, other: Any) -> Any:
        if is_dense(other) and other.ndim:
            return FUNCTIONS[name](self.todense(), FUNCTIONS["atleast_2d"](other))
        if not isinstance(other, (_spbase, Strided)) and not np.isscalar(other):
            raise NotImplementedError(f"{name} of a sparse matrix and {type(other).__name__}")
        return self._joined(host.by_rows(name), self, other)

    # Reductions

    def _total(self, name: str, axis: Any, dtype: Any, out: Any) -> Any:
        self._settle()
        axis = collapsed_axis(axis, self.ndim)
        summed = self.tocsr() if self.format == "coo" and self.dtype == bool else self
        result = call(host.total, (summed, name, axis, dtype), reads=False)
        if out is None:
            return result
        if out.shape != result.shape:
            raise ValueError("dimensions do not match")
        numpy_work.modify(casts.copyto, (out, result), {"casting": "unsafe"})
        return out

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """Return the sum of all elements, or of those along an axis."""
        return self._total("sum", axis, dtype, out)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """Return the mean of all elements, or of those along an axis."""
        return self._total("mean", axis, dtype, out)

    def count_nonzero(self, axis: Any = None) -> Any:
        """Return the number of elements that are not zero."""
        self._settle()
        if axis is not None and self.format == "dia":
            raise NotImplementedError("count_nonzero over an axis is not implemented for DIA format")
        axis = collapsed_axis(axis, self.ndim) if self.ndim == 1 else axis
        counts = call(host.method("count_nonzero"), (self, axis))
        return counts if counts.ndim else int(counts)

    def nonzero(self) -> tuple[Any, ...]:
        """Return the indices of the elements that are not zero."""
        places: tuple[Any, ...] = call(host.method("nonzero"), (self,))
        return places

    def diagonal(self, k: int = 0) -> Any:
        """Return a diagonal."""
        self._require_2d("diagonal")
        self._settle()
        rows, columns = self.shape
        if k <= -rows or k >= columns:
            return creation.empty(0, self.dtype)
        return call(host.method("diagonal"), (self, k), reads=False)

    def trace(self, offset: int = 0) -> Any:
        """Return the sum of a diagonal."""
        return self.diagonal(offset).sum()

    def _require_2d(self, name: str) -> None:
        if self.ndim != 2:
            raise ValueError(f"{name} requires two dimensions")


GROUPS.append(_spbase)


def issparse(x: Any) -> bool:
    """Return whether ``x`` is a sparse matrix or a sparse array of a device."""
    return isinstance(x, _spbase)


def isspmatrix(x: Any) -> bool:
    """Return whether ``x`` is a sparse matrix of a device, and no sparse array."""
    return isinstance(x, spmatrix)


_OF_ELEMENTS = [
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "ceil",
    "deg2rad",
    "expm1",
    "floor",
    "log1p",
    "rad2deg",
    "rint",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]


def _of_elements(name: str) -> Callable[[Any], Any]:
    def apply(self: Any) -> Any:
        return self._with_data(FUNCTIONS[name](self.data))

    apply.__name__, apply.__qualname__ = name, f"_spbase.{name}"
    apply.__doc__ = f"Return the matrix with :func:`~tcuda.emulation.xp.{name}` of each stored element."
    return apply


for _function in _OF_ELEMENTS:
    setattr(_spbase, _function, _of_elements(_function))
