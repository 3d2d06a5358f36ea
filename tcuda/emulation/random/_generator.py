"""The generators from which the functions of ``xp.random`` draw, one for each device.

The names are those of CuPy's module ``cupy.random._generator``, which ``cupy.testing`` and other libraries use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tcuda._process.lazy import _lazy_init, cuda
from tcuda.emulation.random.random_state import RandomState
from tcuda.random._defaults import generators
from tcuda.random._draws import real_dtype as _check_and_get_dtype
from tcuda.random._generator import seed_of_environment

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["RandomState", "_check_and_get_dtype", "get_random_state", "reset_states", "seed", "set_random_state"]

_first_states: dict[int, RandomState] = {}
_random_states = _first_states
"""The generators by device. Libraries that restore the random numbers of a program replace the dictionary."""
_taken: list[bool] = []
"""Empty until the default generators of tcuda are among the first states; True is then in the list."""


def _take_default_generators() -> None:
    """Initialise tcuda, and put its default generators among the first states, if that was not done before."""
    _lazy_init()
    if not _taken:
        for generator in generators():
            _first_states.setdefault(generator.device.index, cast("RandomState", generator))
        _taken.append(True)


def get_random_state() -> RandomState:
    """Return the generator of the current device (``cupy.random.get_random_state``)."""
    _take_default_generators()
    device = cuda.getDevice()
    state = _random_states.get(device)
    return _random_states.setdefault(device, RandomState(seed_of_environment())) if state is None else state


def set_random_state(rs: RandomState) -> None:
    """Let the functions of ``xp.random`` draw from ``rs`` on the current device (``cupy.random.set_random_state``).

    Raises:
        TypeError: ``rs`` is not a generator of emulated devices.
    """
    if not isinstance(rs, RandomState):
        raise TypeError(f"Random state must be an instance of RandomState. Actual: {type(rs)}")
    _take_default_generators()
    _random_states[cuda.getDevice()] = rs


def reset_states() -> None:
    """Forget the generators of all devices, so that new generators are made (``cupy.random.reset_states``)."""
    global _random_states
    _take_default_generators()
    _random_states = {}


def seed(seed: Any = None) -> None:
    """Seed the generator of the current device (``cupy.random.seed``)."""
    get_random_state().seed(seed)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (get_random_state, reset_states, seed, set_random_state)
}
for _function in FUNCTIONS.values():
    _function.__module__ = "tcuda.emulation.random"  # where users find the functions
