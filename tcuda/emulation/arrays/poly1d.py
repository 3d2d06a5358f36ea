"""The class ``poly1d``, and the functions of the namespace that take polynomials of this class."""

from __future__ import annotations

import functools
import numbers
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.work import creation, numpy_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt


class poly1d:
    """A polynomial of one variable, with its coefficients in an array of the device, as ``cupy.poly1d``.

    Attributes that depend on the degree, such as :attr:`coeffs`, look for leading zeros, and so wait for the current
    stream once.

    Args:
        c_or_r: The coefficients from the highest power to the constant term: an array of a device or of the host, a
            sequence, a scalar, or a polynomial of this class or of NumPy's.
        r: Whether ``c_or_r`` has the roots of the polynomial in place of the coefficients.
        variable: The name of the variable in texts; ``"x"`` or the name in ``c_or_r`` if None.

    Raises:
        ValueError: The coefficients have more than one axis.
    """

    __module__ = "tcuda.emulation.xp"
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, c_or_r: Any, r: bool = False, variable: str | None = None) -> None:
        named = "x"
        self._trimmed = isinstance(c_or_r, (np.poly1d, poly1d))
        if self._trimmed:
            coefficients: Any = creation.asarray(c_or_r.coeffs)
            named = c_or_r.variable
        else:
            coefficients = FUNCTIONS["atleast_1d"](FUNCTIONS["poly"](c_or_r) if r else c_or_r)
        if coefficients.ndim > 1:
            raise ValueError(
                f"Polynomial must be 1d only: poly1d() takes coefficients with one axis, and got {coefficients.ndim}."
            )
        self._coeffs = coefficients
        self._variable = named if variable is None else variable

    @property
    def coeffs(self) -> Any:
        """The coefficients from the highest power to the constant term, without leading zeros."""
        if not self._trimmed:
            trimmed = FUNCTIONS["trim_zeros"](self._coeffs, "f")
            self._coeffs = trimmed if trimmed.size else creation.zeros(1, trimmed.dtype)
            self._trimmed = True
        return self._coeffs

    @coeffs.setter
    def coeffs(self, value: Any) -> None:
        if value is not self._coeffs:  # An operation in place sets the same array again.
            raise AttributeError("Cannot set attribute: write to the array of the coefficients instead.")

    c = coef = coefficients = coeffs

    @property
    def variable(self) -> str:
        """The name of the variable."""
        return self._variable

    @property
    def order(self) -> int:
        """The highest power."""
        degree: int = self.coeffs.size - 1
        return degree

    o = order

    @property
    def roots(self) -> Any:
        """The roots, as :func:`roots` returns them."""
        return FUNCTIONS["roots"](self._coeffs)

    r = roots

    def get(self, stream: Any = None) -> np.poly1d:
        """Return a copy on the host.

        Args:
            stream: The stream that copies; the current stream if None.
        """
        return np.poly1d(self.coeffs.get(stream=stream), variable=self.variable)

    def set(self, polyin: np.poly1d, stream: Any = None) -> None:
        """Copy the coefficients and the variable of ``polyin``, a polynomial of the host of the same degree.

        Args:
            polyin: The polynomial.
            stream: The stream that copies; the current stream if None.

        Raises:
            TypeError: ``polyin`` is not a ``numpy.poly1d``.
        """
        if not isinstance(polyin, np.poly1d):
            raise TypeError(f"Only numpy.poly1d can be set to cupy.poly1d, not {type(polyin)}")
        self._variable = polyin.variable
        self.coeffs.set(polyin.coeffs, stream)

    def __cupy_get_ndarray__(self) -> Any:
        return self.coeffs

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NoReturn:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array "
            "explicitly."
        )

    def __repr__(self) -> str:
        return repr(self.get())

    def __str__(self) -> str:
        return str(self.get())

    def __len__(self) -> int:
        return self.order

    def __iter__(self) -> Iterator[Any]:
        return iter(self.coeffs)

    def __getitem__(self, val: int) -> Any:
        """Return the coefficient of the power ``val``; 0 for a power above the degree and for a negative power."""
        return self._coeffs[-val - 1] if 0 <= val < self._coeffs.size else 0

    def __setitem__(self, key: int, val: Any) -> None:
        if key < 0:
            raise ValueError(f"Negative powers are not supported; got {key}.")
        missing = key + 1 - self._coeffs.size
        if missing > 0:
            self._coeffs = FUNCTIONS["pad"](self._coeffs, (missing, 0))
        self._coeffs[-key - 1] = val

    def __call__(self, val: Any) -> Any:
        """Return the values of the polynomial at ``val``: an array, a scalar, or a polynomial to insert."""
        return polyval(self.coeffs, val)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, poly1d):
            raise NotImplementedError("A poly1d can be compared with another poly1d only.")
        same_degree = self.coeffs.shape == other.coeffs.shape
        return same_degree and bool((self.coeffs == other.coeffs).all())

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __neg__(self) -> poly1d:
        return poly1d(-self.coeffs)

    def __pos__(self) -> poly1d:
        return self

    def __add__(self, other: Any) -> Any:
        return polyadd(self, other)

    def __radd__(self, other: Any) -> Any:
        return polyadd(_not_of_numpy(other), self)

    def __sub__(self, other: Any) -> Any:
        return polysub(self, other)

    def __rsub__(self, other: Any) -> Any:
        return polysub(_not_of_numpy(other), self)

    def __mul__(self, other: Any) -> Any:
        if np.isscalar(other):
            return poly1d(self.coeffs * other)
        return polymul(self, other)

    def __rmul__(self, other: Any) -> Any:
        other = _not_of_numpy(other)
        return polymul(self._coeffs.dtype.type(other) if np.isscalar(other) else other, self)

    def __truediv__(self, other: Any) -> poly1d:
        if not np.isscalar(other):
            raise NotImplementedError(f"A poly1d can be divided by a scalar only, not by an object of {type(other)}.")
        return poly1d(self.coeffs / other)

    def __pow__(self, val: Any, modulo: Any = None) -> poly1d:
        number: Any = val
        if not np.isscalar(val) or int(number) != number or number < 0:
            raise ValueError(f"Power to non-negative integers only; got {val!r}.")
        if not isinstance(number, numbers.Integral):
            raise TypeError(f"float object cannot be interpreted as an integer; got {val!r} as the power.")
        return poly1d(numpy_work.call(_raised, (self.coeffs, int(number))))

    def integ(self, m: int = 1, k: Any = 0) -> NoReturn:
        """Raise an error: CuPy has no integrals of polynomials."""
        raise NotImplementedError("CuPy has no poly1d.integ(): use numpy.poly1d, on get().")

    def deriv(self, m: int = 1) -> NoReturn:
        """Raise an error: CuPy has no derivatives of polynomials."""
        raise NotImplementedError("CuPy has no poly1d.deriv(): use numpy.poly1d, on get().")


def _not_of_numpy(operand: Any) -> Any:
    """Return ``operand``, the left operand of a polynomial.

    Raises:
        TypeError: ``operand`` is a scalar of NumPy's, which CuPy takes on the right only.
    """
    if isinstance(operand, np.generic):
        raise TypeError("A scalar of NumPy's is not supported to the left of a poly1d: write it to the right.")
    return operand


def _raised(coefficients: npt.NDArray[Any], power: int) -> npt.NDArray[Any]:
    """Return the coefficients of a power of a polynomial of the host."""
    if power == 0:
        return np.ones(1, int)
    kind = coefficients.dtype
    wide = {"c": np.dtype(complex), "f": np.dtype(float)}.get(kind.kind)
    if wide is None:
        wide = np.dtype(float) if kind == np.uint64 else np.promote_types(kind, int)
    factor = coefficients.astype(wide)
    result = None
    while power:
        if power & 1:
            result = factor if result is None else np.convolve(result, factor)
        power >>= 1
        if power:
            factor = np.convolve(factor, factor)
    assert result is not None
    return result


def _taking_polynomials(name: str) -> Callable[..., Any]:
    """Return the function ``name`` for polynomials, too. The result is a polynomial if an argument is one."""
    of_arrays = FUNCTIONS[name]

    @functools.wraps(of_arrays)
    def call(a1: Any, a2: Any) -> Any:
        given = [operand._coeffs if isinstance(operand, poly1d) else operand for operand in (a1, a2)]
        if any(isinstance(operand, Strided) and operand.ndim > 1 for operand in given):
            raise ValueError("Multidimensional inputs are not supported")
        result = of_arrays(*given)
        return poly1d(result) if isinstance(a1, poly1d) or isinstance(a2, poly1d) else result

    return call


polyadd = _taking_polynomials("polyadd")
polysub = _taking_polynomials("polysub")
polymul = _taking_polynomials("polymul")


@functools.wraps(FUNCTIONS["polyval"])
def polyval(p: Any, x: Any) -> Any:
    """Return the values of the polynomial ``p`` at ``x``, which may be a polynomial, too."""
    if isinstance(p, poly1d):
        p = p.coeffs
    if not isinstance(x, poly1d):
        return FUNCTIONS["polyval"](p, x)
    if not isinstance(p, Strided) or p.ndim == 0:
        raise TypeError(f"p must be 1d ndarray or poly1d object, not {type(p)}")
    if p.ndim > 1:
        raise ValueError("p must be 1d array")
    result = poly1d(creation.zeros(1, np.result_type(x.coeffs.dtype, 1)))
    for coefficient in cast("Any", p):
        result = result * x + coefficient
    return result


@functools.wraps(FUNCTIONS["roots"])
def roots(p: Any) -> Any:
    """Return the roots of the polynomial ``p``."""
    return FUNCTIONS["roots"](p.coeffs if isinstance(p, poly1d) else p)


POLYNOMIALS: dict[str, Any] = {
    "poly1d": poly1d,
    "polyadd": polyadd,
    "polymul": polymul,
    "polysub": polysub,
    "polyval": polyval,
    "roots": roots,
}
"""The names of the namespace for polynomials."""
