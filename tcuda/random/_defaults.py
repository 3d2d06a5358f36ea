"""The default generator of each device, which every function of ``cupy.random`` draws from."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

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
        _lazy_init()
        return installed[index]

    def __len__(self) -> int:
        _lazy_init()
        return len(installed)

    def __repr__(self) -> str:
        return f"<tcuda.default_generators {installed}>"


default_generators: Sequence[Generator] = _DefaultGenerators()
"""The generator that ``cupy.random`` draws from, for each device (``torch.cuda.default_generators``).

Looking at them initialises tcuda."""


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
