"""The default generator of each device, from which every function of ``cupy.random`` draws."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from tcuda._base.arguments import a_kind
from tcuda._process import lazy
from tcuda._process.device_rules import device_count
from tcuda._process.lazy import _lazy_init
from tcuda.random._generator import Generator, generator_on, seed_of, seed_of_environment

if TYPE_CHECKING:
    from tcuda._backend import Backend
    from tcuda._runtime.protocol import Runtime

made: tuple[Generator, ...] = ()
"""The generators; empty before :func:`generators` has made them."""

_first: dict[str, tuple[Generator, ...]] = {}
"""The generators under the key ``"all"``. A dictionary, because ``setdefault`` is atomic."""


class _DefaultGenerators(Sequence[Generator]):
    """The default generators by the index of their device. Each access initialises tcuda."""

    @overload
    def __getitem__(self, index: int) -> Generator: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Generator, ...]: ...
    def __getitem__(self, index: int | slice) -> Generator | tuple[Generator, ...]:
        generators = _generators()
        try:
            return generators[index]
        except IndexError:
            last = len(generators) - 1
            there_are = f"the devices are 0 to {last}" if generators else "there is no device"
            raise IndexError(f"default_generators has no generator {index}: {there_are}.") from None
        except TypeError:
            raise TypeError(f"default_generators takes the index of a device; got {a_kind(index)}.") from None

    def __len__(self) -> int:
        return len(_generators())

    def __repr__(self) -> str:
        return f"<tcuda.default_generators {made}>"


def _generators() -> tuple[Generator, ...]:
    """Return the generators, and initialise tcuda before; an empty tuple if no device exists."""
    if not device_count():
        return ()
    _lazy_init()
    return generators()


def generators() -> tuple[Generator, ...]:
    """Return the generators of an initialised process; make them if that was not done before."""
    return made or _make_generators(lazy.cuda, lazy.backend)


default_generators: Sequence[Generator] = _DefaultGenerators()
"""For each device, the generator from which ``cupy.random`` draws (``torch.cuda.default_generators``).

Each access initialises tcuda. The sequence is empty if no device exists.

Example:
    >>> generator = tcuda.default_generators[0]
    >>> seeded = generator.manual_seed(42)
    >>> tcuda.initial_seed()
    42
    >>> generator.device
    device(type='cuda', index=0)
"""


def install_generators(cuda: Runtime, backend: Backend) -> None:
    """Let the array library draw from the default generators. This call is a step of the initialisation.

    The seeds are random, unless ``CUPY_SEED`` is set.
    """
    backend.install_generators(functools.partial(_make_generators, cuda, backend))


def _make_generators(cuda: Runtime, backend: Backend) -> tuple[Generator, ...]:
    global made
    if not made:
        implementation = backend.generator_type()
        # Generator.seed() cannot be used: a capture forbids the call, and the first draw may be in a capture.
        seeds = [seed_of(seed_of_environment()) for _ in range(cuda.getDeviceCount())]
        new = tuple(generator_on(index, implementation, seed) for index, seed in enumerate(seeds))
        made = _first.setdefault("all", new)
    return made
