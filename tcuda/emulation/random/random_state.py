"""Generators of random numbers on emulated devices: the class ``RandomState`` of ``cupy.random``.

The distributions use the same primitives as the distributions of CuPy. For distributions with a kernel of their own in
CuPy, one of the laws draws the numbers, with a new seed for each call.
"""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tcuda._core import philox_passes
from tcuda._process.lazy import backend, cuda
from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.arrays.ndarray import ndarray
from tcuda.emulation.names.experimental import experimental
from tcuda.emulation.random import laws, philox
from tcuda.emulation.random.captured_state import CapturedState
from tcuda.emulation.random.covariance import root_of
from tcuda.emulation.random.parameters import axes, operand, probabilities, refuse_if, shape_of, whole
from tcuda.emulation.work import creation, numpy_work
from tcuda.random._draws import Draws, common_shape
from tcuda.random._generator import Generator
from tcuda.random._philox import most_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt
    from typing_extensions import Self

    from tcuda._process.devices import DeviceArgument

    Shape = int | Sequence[int] | None

_FLOPS = 30
"""The approximate number of floating-point operations for one random number."""

_exp, _log, _sqrt, _tan, _where = (FUNCTIONS[name] for name in ("exp", "log", "sqrt", "tan", "where"))


class RandomState(Draws):
    """A generator on the current device, as ``cupy.random.RandomState``, which documents the distributions.

    Args:
        seed: An integer from 0 to 2**64 - 1, or a NumPy array; an unpredictable seed if None.
        method: Ignored, because all generators are Philox.

    Raises:
        TypeError: ``seed`` is neither None, an integer nor a NumPy array.
        ValueError: ``seed`` is out of range.
    """

    __module__ = "tcuda.emulation.random"  # where users find the class

    xp = types.SimpleNamespace(empty=creation.empty, **FUNCTIONS)

    def __new__(cls, seed: Any = None, method: int | None = None) -> Self:
        """Return a generator of the current device, which ``__init__`` seeds."""
        return Generator.__new__(cls)

    def __init__(self, seed: Any = None, method: int | None = None) -> None:
        self.seed(seed)

    def __reduce__(self) -> tuple[Any, ...]:
        _, (index, words) = super().__reduce__()
        return _restored, (type(self), index, words)

    # From uniform numbers

    def rand(self, *size: int, dtype: npt.DTypeLike = float) -> ndarray:
        return cast("ndarray", self.random_sample(size, dtype))

    def _uniform_between(self, low: Any, high: Any, size: Shape, dtype: npt.DTypeLike) -> ndarray:
        low, high = operand(low), operand(high)
        return self._scaled(self.random_sample(shape_of(size, low, high), dtype), low, high - low)

    def _integers_between(self, low: Any, high: Any, size: Shape, dtype: npt.DTypeLike) -> ndarray:
        # The arithmetic is modulo 2**64, because the distance of the ends of a signed type does not fit into the type.
        least, beyond = (whole(end) for end in ((0, low) if high is None else (low, high)))
        shape = common_shape(least, beyond) if size is None else size
        words = self._curand_generate(int(np.prod(shape)), np.uint64).reshape(shape)
        return cast("ndarray", (words % (beyond - least) + least).astype(dtype))

    def exponential(self, scale: Any = 1.0, size: Shape = None, dtype: npt.DTypeLike = float) -> ndarray:
        scale = operand(scale)
        refuse_if(scale < 0, "scale < 0")
        return self._scaled(self.standard_exponential(shape_of(size, scale), dtype), 0, scale)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Shape = None, dtype: npt.DTypeLike = float) -> ndarray:
        loc, scale = operand(loc), operand(scale)
        numbers = self._random_sample_raw(shape_of(size, loc, scale), dtype)
        return self._scaled(-_log(-_log(numbers)), loc, scale)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Shape = None, dtype: npt.DTypeLike = float) -> ndarray:
        loc, scale = operand(loc), operand(scale)
        twice = 2 * self._random_sample_raw(shape_of(size, loc, scale), dtype)
        return self._scaled(_where(twice <= 1, _log(twice), -_log(twice - 1)), loc, scale)

    def pareto(self, a: Any, size: Shape = None, dtype: npt.DTypeLike = float) -> ndarray:
        a = operand(a)
        numbers = self._random_sample_raw(shape_of(size, a), dtype)
        return cast("ndarray", (_exp(-_log(numbers) / a) - 1).astype(dtype))

    def power(self, a: Any, size: Shape = None, dtype: npt.DTypeLike = float) -> ndarray:
        a = creation.asarray(a)  # An array, because ``a`` may be 0 and Python raises an error for a division by 0.
        refuse_if(a < 0, "a < 0")
        numbers = self.standard_exponential(shape_of(size, a), dtype)
        return cast("ndarray", ((1 - _exp(-numbers)) ** (1.0 / a)).astype(dtype))

    def rayleigh(self, scale: Any = 1.0, size: Shape = None, dtype: npt.DTypeLike = float) -> ndarray:
        scale = operand(scale)
        refuse_if(scale < 0, "scale < 0")
        numbers = self._random_sample_raw(shape_of(size, scale), dtype)
        return self._scaled(_sqrt(-2 * _log(numbers)), 0, scale)

    def standard_cauchy(self, size: Shape = None, dtype: npt.DTypeLike = float) -> ndarray:
        return cast("ndarray", _tan(np.pi * (self.random_sample(size, dtype) - 0.5)))

    def standard_exponential(self, size: Shape = None, dtype: npt.DTypeLike = float) -> ndarray:
        numbers = self._random_sample_raw(size, dtype)
        return cast("ndarray", -_log(numbers, out=numbers))

    def triangular(self, left: Any, mode: Any, right: Any, size: Shape = None, dtype: npt.DTypeLike = float) -> ndarray:
        left, mode, right = operand(left), operand(mode), operand(right)
        refuse_if(left > mode, "left > mode")
        refuse_if(mode > right, "mode > right")
        refuse_if(left == right, "left == right")
        numbers = self.random_sample(shape_of(size, left, mode, right), dtype)
        whole, below, above = right - left, mode - left, right - mode
        rising = left + _sqrt(numbers * below * whole)
        falling = right - _sqrt((1.0 - numbers) * above * whole)
        return cast("ndarray", _where(numbers <= below / whole, rising, falling).astype(dtype))

    def weibull(self, a: Any, size: Shape = None, dtype: npt.DTypeLike = float) -> ndarray:
        a = creation.asarray(a)
        refuse_if(a < 0, "a < 0")
        return cast("ndarray", (self.standard_exponential(shape_of(size, a), dtype) ** (1.0 / a)).astype(dtype))

    def _scaled(self, numbers: ndarray, location: Any, scale: Any) -> ndarray:
        return cast("ndarray", (numbers * scale + location).astype(numbers.dtype))

    # From normal numbers

    def randn(self, *size: int, dtype: npt.DTypeLike = float) -> ndarray:
        return cast("ndarray", self.standard_normal(size, dtype))

    def dirichlet(self, alpha: Any, size: Shape = None, dtype: npt.DTypeLike = float) -> ndarray:
        alpha = creation.asarray(alpha)
        lead = axes(size)
        numbers = self.standard_gamma(alpha, (*lead, *alpha.shape), dtype)
        return cast("ndarray", numbers / numbers.sum(axis=-1, keepdims=True))

    def multivariate_normal(
        self,
        mean: Any,
        cov: Any,
        size: Shape = None,
        check_valid: str = "ignore",
        tol: float = 1e-8,
        method: str = "cholesky",
        dtype: npt.DTypeLike = float,
    ) -> ndarray:
        experimental("cupy.random.RandomState.multivariate_normal", stacklevel=3)
        mean, cov = creation.asarray(mean, dtype), creation.asarray(cov, dtype)
        if mean.ndim != 1:
            raise ValueError("mean must be 1 dimensional")
        if cov.ndim != 2 or cov.shape[0] != cov.shape[1]:
            raise ValueError("cov must be 2 dimensional and square")
        if mean.shape[0] != cov.shape[0]:
            raise ValueError("mean and cov must have same length")
        if method not in ("cholesky", "eigh", "svd"):
            raise ValueError("method must be one of {'eigh', 'svd', 'cholesky'}")
        if check_valid not in ("ignore", "warn", "raise"):
            raise ValueError("check_valid must equal 'warn', 'raise', or 'ignore'")
        lead = axes(size)
        root = root_of(cov, method, check_valid, tol)
        numbers = self.standard_normal((*lead, mean.size), dtype).reshape(-1, mean.size)
        return cast("ndarray", (numbers @ root.T + mean).reshape(*lead, mean.size))

    def negative_binomial(self, n: Any, p: Any, size: Shape = None, dtype: npt.DTypeLike = int) -> ndarray:
        n, p = operand(n), creation.asarray(p)  # an array, because ``p`` may be 0
        refuse_if(n <= 0, "n <= 0")
        refuse_if(p < 0, "p < 0")
        refuse_if(p > 1, "p > 1")
        return self.poisson(self.gamma(n, (1 - p) / p, size), dtype=dtype)

    def wald(self, mean: Any, scale: Any, size: Shape = None, dtype: npt.DTypeLike = float) -> ndarray:
        mean, scale = operand(mean), operand(scale)
        shape = shape_of(size, mean, scale)
        squares = mean * self.standard_normal(shape, dtype) ** 2
        uniform = self.random_sample(shape, dtype)
        least = mean + mean / (2 * scale) * (squares - _sqrt(4 * scale * squares + squares**2))
        return cast("ndarray", _where(uniform > mean / (mean + least), mean**2 / least, least).astype(dtype))

    # From NumPy's generators

    def beta(self, a: Any, b: Any, size: Shape = None, dtype: npt.DTypeLike = float) -> ndarray:
        return self._law("beta", (a, b), size, dtype)

    def binomial(self, n: Any, p: Any, size: Shape = None, dtype: npt.DTypeLike = int) -> ndarray:
        return self._law("binomial", (n, p), size, dtype)

    def chisquare(self, df: Any, size: Shape = None, dtype: npt.DTypeLike = float) -> ndarray:
        return self._law("chisquare", (df,), size, dtype)

    def f(self, dfnum: Any, dfden: Any, size: Shape = None, dtype: npt.DTypeLike = float) -> ndarray:
        return self._law("f", (dfnum, dfden), size, dtype)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Shape = None, dtype: npt.DTypeLike = float) -> ndarray:
        shape, scale = operand(shape), operand(scale)
        numbers: Any = self.standard_gamma(shape, shape_of(size, shape, scale), dtype)
        numbers *= scale
        return cast("ndarray", numbers)

    def geometric(self, p: Any, size: Shape = None, dtype: npt.DTypeLike = "l") -> ndarray:
        return self._law("geometric", (p,), size, dtype)

    def hypergeometric(
        self, ngood: Any, nbad: Any, nsample: Any, size: Shape = None, dtype: npt.DTypeLike = "l"
    ) -> ndarray:
        # CuPy does not check the numbers in arrays.
        for name, number, least in (("ngood", ngood, 0), ("nbad", nbad, 0), ("nsample", nsample, 1)):
            if isinstance(number, (int, float)) and number < least:
                raise ValueError(f"{name} < {least}")
        return self._law("hypergeometric", (ngood, nbad, nsample), size, dtype)

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Shape = None, dtype: npt.DTypeLike = float) -> ndarray:
        return self._law("logistic", (loc, scale), size, dtype)

    def logseries(self, p: Any, size: Shape = None, dtype: npt.DTypeLike = "l") -> ndarray:
        p = operand(p)
        refuse_if(p <= 0, "p <= 0.0")
        refuse_if(p >= 1, "p >= 1.0")
        return self._law("logseries", (p,), size, dtype)

    def noncentral_chisquare(self, df: Any, nonc: Any, size: Shape = None, dtype: npt.DTypeLike = float) -> ndarray:
        df, nonc = operand(df), operand(nonc)
        refuse_if(df <= 0, "df <= 0")
        refuse_if(nonc < 0, "nonc < 0")
        return self._law("noncentral_chisquare", (df, nonc), size, dtype)

    def noncentral_f(
        self, dfnum: Any, dfden: Any, nonc: Any, size: Shape = None, dtype: npt.DTypeLike = float
    ) -> ndarray:
        dfnum, dfden, nonc = operand(dfnum), operand(dfden), operand(nonc)
        refuse_if(dfnum <= 0, "dfnum <= 0")
        refuse_if(dfden <= 0, "dfden <= 0")
        refuse_if(nonc < 0, "nonc < 0")
        return self._law("noncentral_f", (dfnum, dfden, nonc), size, dtype)

    def poisson(self, lam: Any = 1.0, size: Shape = None, dtype: npt.DTypeLike = "l") -> ndarray:
        return self._law("poisson", (lam,), size, dtype)

    def standard_gamma(self, shape: Any, size: Shape = None, dtype: npt.DTypeLike = float) -> ndarray:
        return self._law("standard_gamma", (shape,), size, dtype)

    def standard_t(self, df: Any, size: Shape = None, dtype: npt.DTypeLike = float) -> ndarray:
        return self._law("standard_t", (df,), size, dtype)

    def vonmises(self, mu: Any, kappa: Any, size: Shape = None, dtype: npt.DTypeLike = float) -> ndarray:
        return self._law("vonmises", (mu, kappa), size, dtype)

    def zipf(self, a: Any, size: Shape = None, dtype: npt.DTypeLike = int) -> ndarray:
        a = operand(a)
        refuse_if(a <= 1, "'a' must be a valid float > 1.0")
        return self._law("zipf", (a,), size, dtype)

    # From given items

    def choice(self, a: Any, size: Shape = None, replace: bool = True, p: Any = None) -> ndarray:
        if isinstance(a, ndarray) and a.ndim == 0:
            raise NotImplementedError("choice() from an array whose ndim is 0 is not supported")
        if a is None or (not isinstance(a, int) and creation.asarray(a).ndim != 1):
            raise ValueError("a must be 1-dimensional or an integer")
        items: Any = None if isinstance(a, int) else creation.asarray(a)
        count = a if items is None else len(items)
        if count < 0:
            raise ValueError("a must be greater than or equal to 0")
        if p is not None:
            p = probabilities(p, count)
        if size is None:
            raise NotImplementedError("choice() without specifying size is not supported yet")
        wanted = int(np.prod(size))
        if count == 0 and wanted > 0:
            raise ValueError("a cannot be empty unless no samples are taken")
        indices = self._indices(count, wanted, replace, p, items is not None).reshape(size)
        return cast("ndarray", indices if items is None else items[indices])

    def _indices(self, count: int, wanted: int, replace: bool, p: Any, of_array: bool) -> Any:
        if p is not None and not replace:
            raise NotImplementedError("choice() of given probabilities is with replacement only")
        if p is not None:
            sums = p.cumsum()
            return FUNCTIONS["searchsorted"](sums / sums[-1], self.random_sample(wanted), side="right")
        if replace:
            return self.randint(0, max(count, 1), wanted, np.int64)
        if count < wanted:
            raise ValueError("Cannot take a larger sample than population when 'replace=False'")
        return self._permutation(count)[:wanted] if of_array else self._law("subset", (count,), wanted, np.int64)

    def permutation(self, a: Any) -> ndarray:
        return cast("ndarray", self._permutation(a) if isinstance(a, int) else a[self._permutation(len(a))])

    def shuffle(self, a: ndarray) -> None:
        if not isinstance(a, ndarray):
            raise TypeError(f"The array must be one of a device, not {type(a)}")
        if a.ndim == 0:
            raise TypeError("An array whose ndim is 0 is not supported")
        a[...] = self.permutation(a)

    def _interval(self, mx: int, size: Shape) -> ndarray:
        """Return integers from 0 to ``mx``, as uint32 if they fit."""
        if not 0 <= mx < 1 << 64:
            raise ValueError(f"mx must be non-negative and within uint64 range (actual: {mx})")
        bits, kind = (32, np.uint32) if mx < 1 << 32 else (64, np.uint64)
        return cast("ndarray", self._integers(bits, 0, mx + 1, size, np.dtype(kind)))

    def _law(self, name: str, parameters: Iterable[Any], size: Shape, dtype: npt.DTypeLike) -> ndarray:
        """Draw from the law ``name``, as CuPy does with a kernel that gets a seed."""
        arrays = [operand(parameter) for parameter in parameters]
        drawn: Any = creation.empty(shape_of(size, *arrays), dtype)  # type: ignore[arg-type]
        seed = self._get_seed(drawn.size)
        if drawn.size:
            reads = [array for array in arrays if isinstance(array, ndarray)]
            args, flops = [drawn, seed, getattr(laws, name), *arrays], _FLOPS * drawn.size
            numpy_work.launch(_draw, args, reads=reads, fresh=[drawn], flops=flops, name=name)
        return cast("ndarray", drawn)

    # By kernels

    def _fill_reals(self, out: ndarray, numbers: str, rule: str, first: float, second: float) -> None:
        kind = out.dtype.type
        make, lanes = philox.NUMBERS[numbers, out.itemsize]
        finish = philox.RULES[rule]
        self._fill(out, lanes, lambda words: finish(make(words), kind(first), kind(second)))

    def _fill_integers(self, out: ndarray, bits: int, low: int, range: int) -> None:
        make, lanes = philox.NUMBERS["words", bits // 8]
        least = np.uint64(low)

        def numbers(words: list[Any]) -> Any:
            drawn = make(words).astype(np.uint64)
            return least + (drawn % np.uint64(range) if range else drawn)

        self._fill(out, lanes, numbers)

    def _fill(self, out: ndarray, lanes: int, numbers: Callable[[list[Any]], Any]) -> None:
        passes = philox_passes(out.size, out.itemsize, lanes, self._most_blocks)
        capturing = cuda.streamIsCapturing(backend.current_stream().ptr)
        place = self._captured_state().place if capturing else self._place
        begins = [place(increment) for *_, increment in passes]
        if not capturing and numpy_work.defers():  # the draw takes its numbers now, as on CUDA
            begins = [functools.partial(tuple, begin()) for begin in begins]
        flat = numpy_work.memory_of(out).reshape(-1)

        def work() -> None:
            for (start, size, blocks, _), begin in zip(passes, begins, strict=True):
                seed, offset = begin()
                if size:
                    philox.fill(flat[start : start + size], blocks, seed, offset, lanes, numbers)

        numpy_work.launch(work, fresh=[out], flops=_FLOPS * out.size, name="draw")

    def _place(self, increment: int) -> Callable[[], tuple[int, int]]:
        return lambda: self._philox.advance(increment)

    def _new_captured_state(self) -> CapturedState:
        return CapturedState(self._philox)

    @functools.cached_property
    def _most_blocks(self) -> int:
        return most_blocks(cuda.getDeviceProperties(self._index))


class DeviceGenerator(RandomState):
    """A generator of a given device, without a seed from the caller."""

    __module__ = "tcuda.emulation.random"

    def __new__(cls, device: DeviceArgument = None) -> Self:
        """Return a generator of ``device``."""
        return Generator.__new__(cls, device)

    __init__ = Generator.__init__  # RandomState.__init__ would seed the generator


def _restored(kind: type[RandomState], index: int, words: tuple[int, int]) -> RandomState:
    state = kind.__new__(kind)
    Generator.__init__(state, index)
    state._philox.write(*words)
    return state


def _draw(out: npt.NDArray[Any], seed: int, law: Callable[..., Any], *parameters: Any) -> None:
    out[...] = law(np.random.Generator(np.random.Philox(key=seed)), out.shape, *parameters)
