"""The context manager in which draws do not change the sequence of the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._base.arguments import several
from tcuda._base.scope import Scope
from tcuda._process.device_rules import device_count
from tcuda._process.lazy import _lazy_init
from tcuda.random._defaults import generators
from tcuda.random._generator import current_capture
from tcuda.random._seeding import _default_generator

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcuda._process.devices import DeviceArgument
    from tcuda.random._generator import Generator


def fork_rng(devices: Iterable[DeviceArgument] | None = None, enabled: bool = True) -> Scope:
    """Return a context manager that restores the states of the default generators (``torch.random.fork_rng``).

    The states are read at the start of the block, and restored at the end of the block. So draws in the block do not
    change the numbers after the block. In the capture of a graph, the draws of the graph go back in every replay.

    Args:
        devices: The devices of the generators; all devices if None. In contrast to torch, many devices cause no
            warning, because to read a state touches no device.
        enabled: Whether to restore the states; if False, the context manager does nothing.

    Raises:
        IndexError: A device does not exist.
        RuntimeError: The index of a device is negative.
        TypeError: ``devices`` is not iterable.
        ValueError: An element of ``devices`` is not a CUDA device.

    Example:
        >>> tcuda.manual_seed(42)
        >>> with tcuda.random.fork_rng():
        ...     x = xp.random.random_sample(4)
        >>> y = xp.random.random_sample(4)
        >>> bool((x == y).all())  # the draw in the block left no trace
        True
    """
    return _Forked(devices, enabled)


class _Forked(Scope):
    """The block of :func:`fork_rng`."""

    def __init__(self, devices: Iterable[DeviceArgument] | None, enabled: bool) -> None:
        self._devices = devices
        if devices is not None:
            self._devices = tuple(several(devices, "devices", "several devices, such as [0]"))
        self._enabled = enabled
        self._before: list[tuple[Generator, tuple[int, int], tuple[int, int]]] = []

    def begin(self) -> None:
        devices = self._devices
        if not self._enabled or (devices is None and not device_count()):
            return
        _lazy_init()
        chosen = generators() if devices is None else tuple(map(_default_generator, devices))
        self._before = [(generator, generator._philox.read(), generator._words()) for generator in chosen]

    def undo(self) -> None:
        # After a capture that ended in the block, only the states of the host can have changed.
        captures = current_capture() is not None
        for generator, of_host, words in self._before:
            generator._change_to(*(words if captures else of_host))()

    def again(self) -> _Forked:
        return _Forked(self._devices, self._enabled)
