"""The class ``Generator`` of ``cupy.random``, and the function ``default_rng``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.arrays.ndarray import ndarray
from tcuda.emulation.random import laws
from tcuda.emulation.random._bit_generator import XORWOW, BitGenerator
from tcuda.emulation.random.parameters import axes
from tcuda.emulation.work import creation
from tcuda.random._draws import common_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Shape = int | Sequence[int] | None

_BINOMIAL_STATE = 128
"""The size in bytes of what a thread of the binomial kernel keeps from one number to the next."""

_add, _broadcast_to, _exp, _power = (FUNCTIONS[name] for name in ("add", "broadcast_to", "exp", "power"))


class Generator:
    """A generator of random numbers on a device (``cupy.random.Generator``).

    The methods have the parameters and the refusals of CuPy's methods. As in CuPy, the values of parameters are not
    checked, and parameters are numbers of Python or arrays of the device.

    Args:
        bit_generator: The source of random bits.
    """

    __module__ = "tcuda.emulation.random"  # where users find the class

    def __init__(self, bit_generator: BitGenerator) -> None:
        self.bit_generator = bit_generator
        self._binomial_state: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Generator, (self.bit_generator,)

    def random(self, size: Shape = None, dtype: npt.DTypeLike = np.float64, out: Any = None) -> Any:
        """Return uniform numbers in [0, 1)."""
        if out is not None:
            _check_output(dtype, size, out)
        return _stored(self._uniform(() if size is None else size, dtype), dtype, out)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Shape = None, dtype: npt.DTypeLike = np.float64) -> Any:
        """Return uniform numbers in [low, high)."""
        low, high = creation.asarray(low), creation.asarray(high)
        shape = common_shape(low, high) if size is None else size
        low, high = _broadcast_to(low, _shape(shape)), _broadcast_to(high, _shape(shape))
        return (low + (high - low) * self._uniform(shape, dtype)).astype(dtype, copy=False)

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Shape = None,
        dtype: npt.DTypeLike = np.int64,
        endpoint: bool = False,
    ) -> Any:
        """Return integers in [low, high), or in [low, high] with ``endpoint``."""
        first, last = (0, int(low)) if high is None else (int(low), int(high))
        if not endpoint:
            last -= 1
        kind = np.dtype(dtype)
        limits = np.iinfo(kind)
        if first > last:
            raise ValueError(f"low >= high: there is no integer from {first} up to {last}")
        if first < limits.min:
            raise ValueError(f"low is out of bounds for {kind.name}: {first}")
        if last > limits.max:
            raise ValueError(f"high is out of bounds for {kind.name}: {last}")
        word = np.uint32 if last - first < 1 << 32 else np.uint64
        drawn: Any = creation.empty(() if size is None else size, word)
        self.bit_generator.draw(drawn, "interval", laws.integers, last - first, word)
        return _add(first, drawn, dtype=dtype)

    def beta(self, a: Any, b: Any, size: Shape = None, dtype: npt.DTypeLike = np.float64) -> Any:
        """Return numbers with the beta distribution."""
        return self._drawn("beta", size, a=_number("a", a, None), b=_number("b", b, None)).astype(dtype, copy=False)

    def binomial(self, n: Any, p: Any, size: Shape = None) -> Any:
        """Return numbers with the binomial distribution."""
        n = _number("n", n, np.int64)
        if type(p) is int:
            raise TypeError("p is required to be a cupy.ndarray or a scalar of type float")
        p = _number("p", p, np.float64)
        drawn: Any = creation.empty(common_shape(n, p) if size is None else size, np.int64)
        n, p = _broadcast_to(n, drawn.shape), _broadcast_to(p, drawn.shape)
        if self._binomial_state is None:
            self._binomial_state = creation.zeros(_BINOMIAL_STATE * self.bit_generator._state_size(), np.int8)
        self.bit_generator.draw(drawn, "binomial", laws.binomial, n, p, scratch=[self._binomial_state])
        return drawn

    def chisquare(self, df: Any, size: Shape = None) -> Any:
        """Return numbers with the chi-square distribution."""
        df = _number("df", df)
        drawn = self.standard_gamma(_broadcast_to(df, df.shape if size is None else _shape(size)) / 2)
        drawn *= 2
        return drawn

    def dirichlet(self, alpha: Any, size: Shape = None) -> Any:
        """Return vectors with the Dirichlet distribution."""
        alpha = _number("alpha", alpha)
        drawn = self.standard_gamma(alpha, (*axes(size), *alpha.shape))
        drawn /= drawn.sum(axis=-1, keepdims=True)
        return drawn

    def exponential(self, scale: Any = 1.0, size: Shape = None) -> Any:
        """Return numbers with the exponential distribution.

        As in CuPy, ``size`` alone says how many numbers are drawn. All numbers are then multiplied by ``scale``.
        """
        return self.standard_exponential(size) * scale

    def f(self, dfnum: Any, dfden: Any, size: Shape = None) -> Any:
        """Return numbers with the F distribution."""
        dfnum, dfden = _number("dfnum", dfnum), _number("dfden", dfden)
        if size is None:
            size = common_shape(dfnum, dfden)
        return (self.chisquare(dfnum, size) * dfden) / (self.chisquare(dfden, size) * dfnum)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Shape = None) -> Any:
        """Return numbers with the gamma distribution."""
        drawn = self.standard_gamma(shape, common_shape(shape, scale) if size is None else size)
        drawn *= scale
        return drawn

    def geometric(self, p: Any, size: Shape = None) -> Any:
        """Return numbers with the geometric distribution."""
        return self._drawn("geometric", size, np.int64, p=_number("p", p))

    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Shape = None) -> Any:
        """Return numbers with the hypergeometric distribution."""
        given = {"ngood": ngood, "nbad": nbad, "nsample": nsample}
        for name, value in given.items():
            if type(value) in (float, int) and value < 0:
                raise ValueError(f"{name} < 0")
        counts = {name: _number(name, value, np.int64) for name, value in given.items()}
        return self._drawn("hypergeometric", size, np.int64, **counts)

    def logseries(self, p: Any, size: Shape = None) -> Any:
        """Return numbers with the distribution of the logarithmic series."""
        return self._drawn("logseries", size, np.int64, p=_number("p", p))

    def poisson(self, lam: Any = 1.0, size: Shape = None) -> Any:
        """Return numbers with the distribution of Poisson."""
        return self._drawn("poisson", size, np.int64, lam=_number("lam", lam))

    def power(self, a: Any, size: Shape = None) -> Any:
        """Return numbers with the power distribution."""
        a = _number("a", a)
        drawn = self.standard_exponential(a.shape if size is None else _shape(size))
        _exp(-drawn, out=drawn)
        _add(1, -drawn, out=drawn)
        _power(drawn, 1.0 / a, out=drawn)
        return drawn

    def standard_exponential(
        self, size: Shape = None, dtype: npt.DTypeLike = np.float64, method: str = "inv", out: Any = None
    ) -> Any:
        """Return numbers with the exponential distribution of scale 1."""
        if method == "zig":
            raise NotImplementedError("Ziggurat method is not supported")
        if out is not None:
            _check_output(dtype, size, out)
        drawn: Any = creation.empty(() if size is None else size, np.float64)
        self.bit_generator.draw(drawn, "exponential", laws.exponential)
        return _stored(drawn, dtype, out)

    def standard_gamma(self, shape: Any, size: Shape = None, dtype: npt.DTypeLike = np.float64, out: Any = None) -> Any:
        """Return numbers with the gamma distribution of scale 1."""
        if shape is None:
            raise TypeError("shape must be real number, not NoneType")
        if not isinstance(shape, ndarray) and type(shape) not in (float, int):
            raise ValueError(f"shape is required to be a cupy.ndarray or a scalar, not {type(shape)}")
        shape = _number("shape", shape)
        if size is None:
            size = shape.shape if out is None else out.shape
        size = _shape(size)
        if out is not None:
            _check_output(dtype, size, out, only_c=True)
        direct = out is not None and out.dtype.char == "d"
        drawn: Any = out if direct else creation.empty(size, np.float64)
        if np.dtype(dtype).char not in "fd":
            raise TypeError(f"Unsupported dtype {np.dtype(dtype).name} for standard_gamma")
        shape = _broadcast_to(shape, drawn.shape)
        self.bit_generator.draw(drawn, "standard_gamma", laws.standard_gamma, shape)
        return _stored(drawn, dtype, None if direct else out)

    def standard_normal(self, size: Shape = None, dtype: npt.DTypeLike = np.float64, out: Any = None) -> Any:
        """Return normal numbers with the mean 0 and the variance 1."""
        if out is not None:
            _check_output(dtype, size, out)
        drawn: Any = creation.empty(() if size is None else size, dtype) if out is None else out
        if drawn.dtype.char not in "fd":
            raise TypeError(f"Unsupported dtype {drawn.dtype.name} for standard_normal")
        self.bit_generator.draw(drawn, "standard_normal", laws.standard_normal, drawn.dtype.type)
        return drawn

    def _uniform(self, size: Shape, dtype: npt.DTypeLike) -> Any:
        """Return uniform numbers of float64 if this is ``dtype``, and of float32 otherwise."""
        drawn: Any = creation.empty(size, np.float64 if np.dtype(dtype).char == "d" else np.float32)  # type: ignore[arg-type]
        self.bit_generator.draw(drawn, "random_uniform", laws.uniform, drawn.dtype.type)
        return drawn

    def _drawn(self, name: str, size: Shape, dtype: npt.DTypeLike = np.float64, **parameters: Any) -> Any:
        """Return a new array that the law ``name`` with arrays as parameters fills."""
        arrays = parameters.values()
        drawn: Any = creation.empty(common_shape(*arrays) if size is None else _shape(size), dtype)
        given = [_broadcast_to(array, drawn.shape) for array in arrays]
        self.bit_generator.draw(drawn, name, getattr(laws, name), *given)
        return drawn


def default_rng(seed: Any = None) -> Generator:
    """Return a generator (``cupy.random.default_rng``).

    Args:
        seed: The seed of a new bit generator of the class ``XORWOW``, a bit generator, or a generator, which is
            returned.
    """
    if isinstance(seed, Generator):
        return seed
    return Generator(seed if isinstance(seed, BitGenerator) else XORWOW(seed))


def _number(name: str, value: Any, dtype: type[Any] | None = np.float64) -> Any:
    """Return the parameter ``name`` as an array of the device.

    Args:
        name: The name.
        value: A number of Python or an array.
        dtype: The type to which an array is converted; the type of the array if None.

    Raises:
        TypeError: ``value`` is neither a number of Python nor an array of the device, or is complex.
    """
    if isinstance(value, ndarray):
        if value.dtype.kind == "c":
            raise TypeError(f"{name} is required to be real, not {value.dtype.name}")
        return value if dtype is None else value.astype(dtype, copy=False)
    if type(value) in (float, int):
        return creation.asarray(value, np.float64 if dtype is None else dtype)
    raise TypeError(f"{name} is required to be a cupy.ndarray or a scalar, not {type(value)}")


def _shape(size: Any) -> tuple[int, ...]:
    return size if isinstance(size, tuple) else (size,)


def _stored(drawn: Any, dtype: npt.DTypeLike, out: Any) -> Any:
    """Return the drawn numbers, in ``out`` unless ``out`` is None, as an array of ``dtype``."""
    if out is not None:
        out[...] = drawn
        drawn = out
    return drawn.astype(dtype, copy=False)


def _check_output(dtype: npt.DTypeLike, size: Shape, out: Any, only_c: bool = False) -> None:
    """Check that ``out`` can hold the numbers.

    Raises:
        TypeError: ``out`` has another dtype.
        ValueError: ``out`` has another shape than ``size``, or its elements are not side by side.
    """
    kind = np.dtype(dtype)
    if out.dtype.char != kind.char:
        raise TypeError(f"Supplied output array has the wrong type. Expected {kind.name}, got {out.dtype.name}")
    if not out.flags.c_contiguous and (only_c or not out.flags.f_contiguous):
        raise ValueError("Supplied output array is not contiguous, writable or aligned.")
    if size is not None and (tuple(size) if hasattr(size, "__iter__") else (size,)) != out.shape:
        raise ValueError(f"size must match out.shape when used together: {size} and {out.shape}")
