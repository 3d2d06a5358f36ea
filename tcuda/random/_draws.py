"""The distributions that torch has too, and the draws from which an array module makes the other distributions."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tcuda._process.captures import capture_on
from tcuda._process.lazy import backend, cuda
from tcuda.random._generator import Generator
from tcuda.random._philox import INCREMENT, WORD, derived_seed

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Array = Any
    Shape = int | Sequence[int] | None


class Draws(Generator, abc.ABC):
    """A generator that fills arrays; a base of classes that also derive from the ``RandomState`` of an array module.

    Uniform, normal and integer numbers are the same as torch's, bit for bit. ``cupy.random.RandomState`` makes its
    other distributions by the methods whose names begin with an underscore.
    """

    xp: Any
    """The array module."""

    @abc.abstractmethod
    def _fill_reals(self, out: Array, numbers: str, rule: str, first: float, second: float) -> None:
        """Fill an array of float32 or float64.

        Args:
            out: The array, with at least one element.
            numbers: The numbers that are drawn: ``"uniform"``, in (0, 1], or ``"normal"``.
            rule: The function of each number: ``"Between"`` (maps uniform numbers to [first, second)), ``"Scaled"``
                (the number times ``second``, plus ``first``), or ``"Exponential"`` (the exponential function of the
                scaled number).
            first: See ``rule``.
            second: See ``rule``.
        """

    @abc.abstractmethod
    def _fill_integers(self, out: Array, bits: int, low: int, range: int) -> None:
        """Fill an array of integers.

        Args:
            out: The array, with at least one element.
            bits: The number of bits from which each integer is made, 32 or 64.
            low: The smallest integer, modulo 2**64.
            range: The number of different integers; 0 for all integers of ``bits`` bits.
        """

    @abc.abstractmethod
    def _new_captured_state(self) -> Any:
        """Return the object from which the kernels of the graph that is being captured read the state.

        The method ``prepare(exec)`` of the object moves the generator past the numbers that the graph draws, lets the
        next launch of ``exec`` draw these numbers, and returns a status.
        """

    @abc.abstractmethod
    def _uniform_between(self, low: Any, high: Any, size: Shape, dtype: npt.DTypeLike) -> Array:
        """Return uniform numbers in [low, high); ``low``, ``high`` or both are arrays."""

    @abc.abstractmethod
    def _integers_between(self, low: Any, high: Any, size: Shape, dtype: npt.DTypeLike) -> Array:
        """Return integers in [low, high), or in [0, low) if ``high`` is None. ``low`` is an array."""

    def random_sample(self, size: Shape = None, dtype: npt.DTypeLike = float) -> Array:
        """Return uniform numbers in [0, 1), as ``torch.rand`` does."""
        return self._reals("uniform", "Between", size, dtype, 0.0, 1.0)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Shape = None, dtype: npt.DTypeLike = float) -> Array:
        """Return uniform numbers in [low, high), as ``torch.Tensor.uniform_`` does with scalars."""
        if np.isscalar(low) and np.isscalar(high):
            return self._reals("uniform", "Between", size, dtype, float(low), float(high))  # type: ignore[arg-type]
        return self._uniform_between(low, high, size, dtype)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Shape = None, dtype: npt.DTypeLike = float) -> Array:
        """Return normal numbers, as ``torch.normal`` does with scalars."""
        if np.isscalar(loc) and np.isscalar(scale):
            return self._reals("normal", "Scaled", size, dtype, float(loc), float(scale))  # type: ignore[arg-type]
        shape = common_shape(loc, scale) if size is None else size
        numbers = self._reals("normal", "Scaled", shape, dtype, 0.0, 1.0)
        self.xp.multiply(numbers, scale, out=numbers)
        self.xp.add(numbers, loc, out=numbers)
        return numbers

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Shape = None, dtype: npt.DTypeLike = float) -> Array:
        """Return numbers whose logarithms are normal, as ``torch.Tensor.log_normal_`` does with scalars."""
        if np.isscalar(mean) and np.isscalar(sigma):
            return self._reals("normal", "Exponential", size, dtype, float(mean), float(sigma))  # type: ignore[arg-type]
        numbers = self.normal(mean, sigma, size, dtype)
        return self.xp.exp(numbers, out=numbers)

    def randint(self, low: Any, high: Any = None, size: Shape = None, dtype: npt.DTypeLike = int) -> Array:
        """Return integers in [low, high), or in [0, low) if ``high`` is None.

        With scalars, the integers are those of ``torch.randint``.
        """
        if not np.isscalar(low):
            return self._integers_between(low, high, size, dtype)
        first, last = (0, int(low) - 1) if high is None else (int(low), int(high) - 1)  # type: ignore[arg-type]
        kind = np.dtype(dtype)
        limits = np.iinfo(kind)
        if first > last:
            raise ValueError(f"low >= high: there is no integer from {first} up to {last}")
        if first < limits.min:
            raise ValueError(f"low is out of bounds for {kind.name}: {first}")
        if last > limits.max:
            raise ValueError(f"high is out of bounds for {kind.name}: {last + 1}")
        # As in torch, ranges below 2**28 use words of 32 bits. In a larger range, such words would make some integers
        # noticeably more likely than others.
        bits = 32 if last - first + 1 < 1 << 28 else 64
        return self._integers(bits, first, last - first + 1, size, kind)

    def tomaxint(self, size: Shape = None) -> Array:
        """Return integers from 0 to the largest ``numpy.int_``."""
        kind = np.dtype(np.int_)
        return self._integers(64, 0, int(np.iinfo(kind).max) + 1, size, kind)

    # Methods under the names of cupy.random.Generator

    def random(self, size: Shape = None, dtype: npt.DTypeLike = float, out: Array | None = None) -> Array:
        """Return uniform numbers in [0, 1) (``cupy.random.Generator.random``)."""
        return self._reals("uniform", "Between", size, dtype, 0.0, 1.0, out)

    def standard_normal(self, size: Shape = None, dtype: npt.DTypeLike = float, out: Array | None = None) -> Array:
        """Return normal numbers, as ``torch.randn`` does."""
        return self._reals("normal", "Scaled", size, dtype, 0.0, 1.0, out)

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Shape = None,
        dtype: npt.DTypeLike = np.int64,
        endpoint: bool = False,
    ) -> Array:
        """Return integers in [low, high), or in [low, high] with ``endpoint`` (``cupy.random.Generator.integers``)."""
        if high is None:
            low, high = 0, low
        return self.randint(low, high + 1 if endpoint else high, size, dtype)

    # The methods by which CuPy makes the other distributions

    def _random_sample_raw(self, size: Shape, dtype: npt.DTypeLike) -> Array:
        """Return uniform numbers in (0, 1]. Each number has a logarithm, because 0 is excluded."""
        return self._reals("uniform", "Scaled", size, dtype, 0.0, 1.0)

    def _curand_generate(self, num: int, dtype: npt.DTypeLike) -> Array:
        """Return words of 32 or 64 bits. All words are equally likely."""
        kind = np.dtype(dtype)
        return self._integers(8 * kind.itemsize, 0, 0, num, kind)

    def _permutation(self, num: int) -> Array:
        return self.xp.argsort(self._curand_generate(num, np.uint64))

    def _get_seed(self, size: int) -> int:
        """Return a seed for a kernel of CuPy, which gives the seed plus the index to each of ``size`` elements."""
        if cuda.getDevice() != self._index:
            self._refuse_device()
        if cuda.streamIsCapturing(backend.current_stream().ptr):
            raise RuntimeError(
                "This distribution cannot be drawn while the current stream is capturing: its kernel takes a seed, "
                "which every replay of the graph would use again. Draw it before the capture; random, uniform, normal, "
                "lognormal and integer numbers, and permutations, can be captured."
            )
        return derived_seed(*self._philox.advance(INCREMENT if size else 0))

    # The arrays

    def _reals(
        self,
        numbers: str,
        rule: str,
        size: Shape,
        dtype: npt.DTypeLike,
        first: float,
        second: float,
        out: Array | None = None,
    ) -> Array:
        if cuda.getDevice() != self._index:
            self._refuse_device()
        kind = real_dtype(dtype)
        if out is None:
            out = self.xp.empty(() if size is None else size, kind)
        else:
            _require_fitting(out, size, kind)
        if out.size:
            self._fill_reals(out, numbers, rule, first, second)
        return out

    def _integers(self, bits: int, low: int, range: int, size: Shape, kind: np.dtype[Any]) -> Array:
        """Return integers from ``low`` to ``low + range - 1``. A ``range`` of 0 means all words of ``bits`` bits."""
        if cuda.getDevice() != self._index:
            self._refuse_device()
        out = self.xp.empty(() if size is None else size, kind)
        if out.size:
            self._fill_integers(out, bits, low & WORD, range & WORD)
        return out

    def _refuse_device(self) -> NoReturn:
        raise RuntimeError(
            f"Expected a 'cuda:{cuda.getDevice()}' generator device but found '{self.device}': arrays are made on the "
            f"current device; make {self.device} current, or draw from a generator of the current device."
        )

    def _captured_state(self) -> Any:
        """Return the object from which the kernels of the graph that is being captured read the state.

        Raises:
            RuntimeError: tcuda did not begin the capture of the current stream: every replay would draw the same
                numbers. Or the current stream captures the body of a conditional node, or this is the first use of the
                generator in the capture, and its device is not current.
        """
        capture = capture_on(backend.current_stream().ptr)
        if capture is None:
            raise RuntimeError(
                "Random numbers cannot be drawn in a capture that tcuda.graph has not begun: every replay would give "
                "the same numbers. Capture with tcuda.graph, or draw the numbers before the capture."
            )
        return capture.state_for(self._philox, self._first_captured_state)

    def _first_captured_state(self) -> Any:
        if cuda.getDevice() != self._index:  # draws have asked before
            self._refuse_device()
        return self._new_captured_state()


def real_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return the dtype of real numbers that a generator can draw.

    Raises:
        TypeError: ``dtype`` is neither float32 nor float64.
    """
    kind = np.dtype(dtype)
    if kind.char not in "fd":
        raise TypeError(f"cupy.random only supports float32 and float64, not {kind.name}")
    return kind


def common_shape(*parameters: Any) -> tuple[int, ...]:
    """Return the shape that scalars and arrays broadcast to."""
    return np.broadcast_shapes(*map(np.shape, parameters))


def _require_fitting(out: Array, size: Shape, kind: np.dtype[Any]) -> None:
    """Check that ``out`` can hold the numbers.

    Raises:
        TypeError: ``out`` has another dtype than ``kind``.
        ValueError: ``out`` has another shape than ``size``, or is not C-contiguous.
    """
    if out.dtype != kind:
        raise TypeError(f"Supplied output array has the wrong type. Expected {kind}, got {out.dtype}")
    if not out.flags.c_contiguous:
        raise ValueError("Supplied output array is not C-contiguous")
    if size is not None and out.shape != ((size,) if isinstance(size, int) else tuple(size)):
        raise ValueError(f"size must match out.shape when used together: {size} and {out.shape}")
