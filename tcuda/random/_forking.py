"""Random numbers beside the sequence of the program."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tcuda._arguments import several
from tcuda._device import device_count
from tcuda._lazy import _lazy_init
from tcuda.random import _defaults
from tcuda.random._seeding import _default_generator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tcuda._device_index import DeviceArgument


@contextlib.contextmanager
def fork_rng(devices: Iterable[DeviceArgument] | None = None, enabled: bool = True) -> Iterator[None]:
    """Let the default generators go on, when the block ends, from where they were before (``torch.random.fork_rng``).

    Args:
        devices: The devices whose generators this is about; None for all. Reading a state touches no device, so that
            there is no warning about many of them, as torch has it.
        enabled: Whether to do it at all.

    Raises:
        IndexError: There is no such device.
        RuntimeError: The index of a device is negative.
        TypeError: ``devices`` cannot be gone through.
        ValueError: One of them is not a CUDA device.
    """
    if not enabled or (devices is None and not device_count()):
        yield
        return
    _lazy_init()
    if devices is None:
        chosen = _defaults.installed
    else:
        chosen = tuple(map(_default_generator, several(devices, "devices", "several devices, such as [0]")))
    before = [(generator._philox, generator._philox.read()) for generator in chosen]
    try:
        yield
    finally:
        for state, words in before:
            state.write(*words)
