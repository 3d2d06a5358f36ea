"""Random numbers: generators whose state can be saved (``torch.cuda.random``, ``torch.random``)."""

from tcuda._base.public_names import public_names
from tcuda.random._defaults import default_generators
from tcuda.random._forking import fork_rng
from tcuda.random._generator import Generator, default_rng
from tcuda.random._seeding import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from tcuda.random._states import get_state, set_state

__all__ = [
    "Generator",
    "default_generators",
    "default_rng",
    "fork_rng",
    "get_rng_state",
    "get_rng_state_all",
    "get_state",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
    "set_state",
]
__dir__ = public_names(__name__)
