"""Random numbers on emulated devices: the functions that ``cupy.random`` has.

As in CuPy, all functions draw from the default generator of the current device. The module does not have the
``BitGenerator`` classes of CuPy, nor ``bytes``, which CuPy takes from NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tcuda._process.lazy import _lazy_init, cuda
from tcuda.emulation.functions import FUNCTIONS, named
from tcuda.emulation.random_state import DeviceGenerator as DeviceGenerator  # the module by which it is pickled
from tcuda.emulation.random_state import RandomState
from tcuda.emulation.signatures import signature_of
from tcuda.random._defaults import generators
from tcuda.random._generator import seed_of_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcuda.emulation._ndarray import ndarray

    Shape = int | Sequence[int] | None

_states: dict[int, RandomState] = {}
_taken: list[bool] = []
"""Empty until the default generators of tcuda are among the states; True is then in the list."""


def _states_in_use() -> dict[int, RandomState]:
    """Return the generators by device. The first call adds the default generators of tcuda."""
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
        TypeError: ``rs`` is not a generator of emulated devices.
    """
    if not isinstance(rs, RandomState):
        raise TypeError(f"Random state must be an instance of RandomState. Actual: {type(rs)}")
    _states_in_use()[cuda.getDevice()] = rs


def reset_states() -> None:
    """Forget the generators of all devices, so that new generators are made (``cupy.random.reset_states``)."""
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
    return cast("ndarray", (drawn[..., None] == FUNCTIONS["arange"](outcomes)).sum(axis=-2))


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
        assert admitted is not None  # No function of cupy.random leaves a call to NumPy.
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
