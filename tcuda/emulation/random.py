"""Random numbers on emulated devices: the functions that ``cupy.random`` has.

All functions draw from the default generator of the current device, as those of CuPy do. Missing are the
``BitGenerator`` classes of CuPy, and ``bytes``, which CuPy takes from NumPy.
"""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tcuda._core import PhiloxState, philox_passes
from tcuda._process.lazy import _lazy_init, backend, cuda
from tcuda._status import Status
from tcuda.emulation import creation, kernel, philox
from tcuda.emulation.distributions import Distributions
from tcuda.emulation.functions import FUNCTIONS, named
from tcuda.emulation.signatures import signature_of
from tcuda.random._defaults import generators
from tcuda.random._generator import Generator, seed_of_environment
from tcuda.random._philox import WORD, most_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Self

    from tcuda._process.devices import DeviceArgument
    from tcuda.emulation._ndarray import ndarray

    Shape = int | Sequence[int] | None

_FLOPS = 30
"""The floating-point operations for one number, about."""
_xp = types.SimpleNamespace(empty=creation.empty, **FUNCTIONS)

_NUMBERS: dict[tuple[str, int], tuple[Callable[[list[Any]], Any], int]] = {
    ("uniform", 4): (philox.uniforms, 4),
    ("uniform", 8): (philox.double_uniforms, 2),
    ("normal", 4): (philox.normals, 4),
    ("normal", 8): (philox.double_normals, 2),
    ("words", 4): (philox.words, 4),
    ("words", 8): (philox.long_words, 2),
}


def _between(numbers: Any, low: Any, high: Any) -> Any:
    scaled = philox.fused(numbers, high - low, low)
    return np.where(scaled == high, low, scaled)


RULES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "Between": _between,
    "Scaled": lambda numbers, location, scale: philox.fused(numbers, scale, location),
    "Exponential": lambda numbers, location, scale: np.exp(philox.fused(numbers, scale, location)),
}
"""By the name of the rule in the kernels for CuPy, the function that makes the result of the numbers drawn."""


class CapturedState:
    """The state of a generator for the kernels of one graph.

    Args:
        state: The state of the generator.
    """

    def __init__(self, state: PhiloxState) -> None:
        self._state = state
        self._taken = 0
        """By how much all kernels of the graph together move the offset."""
        self._begin = 0, 0
        """The seed and the offset at the start of the present launch."""

    def prepare(self, exec: int) -> int:
        """Move the generator past the draws of the graph, for the next launch of ``exec``; return a status."""
        self._begin = self._state.advance(self._taken)
        return Status.SUCCESS

    def place(self, increment: int) -> Callable[[], tuple[int, int]]:
        """Return a function that returns the seed and the offset of a draw at every launch.

        Args:
            increment: By how much the draw moves the offset.
        """
        before = self._taken
        self._taken += increment
        return lambda: (self._begin[0], self._begin[1] + before & WORD)


class RandomState(Distributions):
    """A generator on the current device, as ``cupy.random.RandomState``, which documents the distributions.

    Args:
        seed: None for a seed that nobody can know, an integer from 0 to 2**64 - 1, or an array of NumPy's.
        method: Ignored, because all generators are Philox.

    Raises:
        TypeError: ``seed`` is neither None, an integer nor an array of NumPy's.
        ValueError: ``seed`` is out of range.
    """

    xp = _xp

    def __new__(cls, seed: Any = None, method: int | None = None) -> Self:
        """Return a generator of the current device, which ``__init__`` seeds."""
        return Generator.__new__(cls)

    def __init__(self, seed: Any = None, method: int | None = None) -> None:
        self.seed(seed)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.device.index, self._philox.read())

    def _fill_reals(self, out: ndarray, numbers: str, rule: str, first: float, second: float) -> None:
        kind = out.dtype.type
        make, lanes = _NUMBERS[numbers, out.itemsize]
        finish = RULES[rule]
        self._fill(out, lanes, lambda words: finish(make(words), kind(first), kind(second)))

    def _fill_integers(self, out: ndarray, bits: int, low: int, range: int) -> None:
        make, lanes = _NUMBERS["words", bits // 8]
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
        flat = kernel.memory_of(out).reshape(-1)

        def work() -> None:
            for (start, size, blocks, _), begin in zip(passes, begins, strict=True):
                seed, offset = begin()
                if size:
                    philox.fill(flat[start : start + size], blocks, seed, offset, lanes, numbers)

        kernel.launch(work, fresh=[out], flops=_FLOPS * out.size)

    def _place(self, increment: int) -> Callable[[], tuple[int, int]]:
        return lambda: self._philox.advance(increment)

    def _new_captured_state(self) -> CapturedState:
        return CapturedState(self._philox)

    @functools.cached_property
    def _most_blocks(self) -> int:
        return most_blocks(cuda.getDeviceProperties(self._index))


class DeviceGenerator(RandomState):
    """A generator whose arrays are those of an emulated device."""

    def __new__(cls, device: DeviceArgument = None) -> Self:
        """Return a generator of ``device``."""
        return Generator.__new__(cls, device)

    __init__ = Generator.__init__  # RandomState.__init__ would seed the generator


def _restored(kind: type[RandomState], index: int, words: tuple[int, int]) -> RandomState:
    state = kind.__new__(kind)
    Generator.__init__(state, index)
    state._philox.write(*words)
    return state


_states: dict[int, RandomState] = {}
_taken: list[bool] = []
"""Holds True once the default generators of tcuda are among the states."""


def _states_in_use() -> dict[int, RandomState]:
    """Return the generator of each device: at the first call, the default generators of tcuda."""
    _lazy_init()
    if not _taken:
        for generator in generators():
            _states.setdefault(generator.device.index, cast("RandomState", generator))
        _taken.append(True)
    return _states


def get_random_state() -> RandomState:
    """Return the generator of the current device (``cupy.random.get_random_state``)."""
    states = _states_in_use()
    device = cuda.getDevice()
    if device not in states:
        states[device] = RandomState(seed_of_environment())
    return states[device]


def set_random_state(rs: RandomState) -> None:
    """Let the functions of this module draw from ``rs`` on the current device (``cupy.random.set_random_state``).

    Raises:
        TypeError: ``rs`` is no generator of emulated devices.
    """
    if not isinstance(rs, RandomState):
        raise TypeError(f"Random state must be an instance of RandomState. Actual: {type(rs)}")
    _states_in_use()[cuda.getDevice()] = rs


def reset_states() -> None:
    """Forget the generators of all devices; new ones take their places (``cupy.random.reset_states``)."""
    _states_in_use().clear()


def seed(seed: Any = None) -> None:
    """Seed the generator of the current device (``cupy.random.seed``)."""
    get_random_state().seed(seed)


def default_rng(seed: Any = None) -> RandomState:
    """Return a new generator on the current device (``cupy.random.default_rng``)."""
    return RandomState(seed)


def random_integers(low: int, high: int | None = None, size: Shape = None) -> ndarray:
    """Return integers from ``low`` to ``high``, or from 1 to ``low`` (``cupy.random.random_integers``)."""
    first, last = (1, low) if high is None else (low, high)
    return cast("ndarray", get_random_state().randint(first, last + 1, size))


def multinomial(n: int, pvals: Any, size: Shape = None) -> ndarray:
    """Return how often each outcome occurs in ``n`` trials (``cupy.random.multinomial``)."""
    shape = () if size is None else (size,) if isinstance(size, int) else tuple(size)
    outcomes = len(pvals)
    drawn = get_random_state().choice(outcomes, (*shape, n), p=pvals)
    return cast("ndarray", (drawn[..., None] == _xp.arange(outcomes)).sum(axis=-2))


_METHODS = {
    *("beta", "binomial", "chisquare", "choice", "dirichlet", "exponential", "f", "gamma", "geometric", "gumbel"),
    *("hypergeometric", "laplace", "logistic", "lognormal", "logseries", "multivariate_normal", "negative_binomial"),
    *("noncentral_chisquare", "noncentral_f", "normal", "pareto", "permutation", "poisson", "power", "rand", "randint"),
    *("randn", "random_sample", "rayleigh", "shuffle", "standard_cauchy", "standard_exponential", "standard_gamma"),
    *("standard_normal", "standard_t", "triangular", "uniform", "vonmises", "wald", "weibull", "zipf"),
}


def _of_current_device(name: str) -> Callable[..., Any]:
    signature = signature_of(f"random.{name}")

    def draw(*args: Any, **kwargs: Any) -> Any:
        admitted = signature.admit(args, kwargs)
        assert admitted is not None  # CuPy leaves none of these calls to NumPy
        arguments, options = admitted
        return getattr(get_random_state(), name)(*arguments, **options)

    draw.__signature__ = signature.described  # type: ignore[attr-defined]
    return named(draw, __name__, name, getattr(RandomState, name).__doc__)


_TABLE: dict[str, Callable[..., Any]] = {name: _of_current_device(name) for name in _METHODS}
_TABLE |= dict.fromkeys(("random", "ranf", "sample"), _TABLE["random_sample"])
_OTHERS = (
    *("RandomState", "default_rng", "get_random_state", "multinomial", "random_integers", "reset_states", "seed"),
    "set_random_state",
)


def __getattr__(name: str) -> Any:
    try:
        return _TABLE[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted([*_TABLE, *_OTHERS])
