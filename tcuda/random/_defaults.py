"""The default generator of each device, which every function of ``cupy.random`` draws from."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from tcuda._arguments import a_kind
from tcuda._device import device_count
from tcuda._lazy import _lazy_init
from tcuda._runtime import runtime
from tcuda.random._generator import Generator, seed_of_environment

if TYPE_CHECKING:
    from collections.abc import Callable

installed: tuple[Generator, ...] = ()
"""Those that are in use; none before tcuda is initialised."""


class _DefaultGenerators(Sequence[Generator]):
    """The default generators by the index of their device; looking at them initialises tcuda."""

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
        return f"<tcuda.default_generators {installed}>"


def _generators() -> tuple[Generator, ...]:
    """Return those that are in use, initialised if there is a device."""
    if device_count():
        _lazy_init()
    return installed


default_generators: Sequence[Generator] = _DefaultGenerators()
"""The generator that ``cupy.random`` draws from, for each device (``torch.cuda.default_generators``).

Looking at them initialises tcuda. Where there is no device, there is no generator."""


def install_generators() -> None:
    """Make a generator for each device and let the array module draw from them, if that was not done before.

    Their seeds are random, unless ``CUPY_SEED`` is set.
    """
    global installed
    if installed:
        return
    in_use = runtime()
    generators = tuple(Generator(device) for device in range(in_use.getDeviceCount()))
    for generator in generators:
        generator.seed(seed_of_environment())
    install: Callable[[Any], object] = importlib.import_module(in_use.random_module).install
    install(generators)
    installed = generators
