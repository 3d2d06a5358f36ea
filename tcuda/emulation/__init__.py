"""Arrays on emulated devices, for programs that use CuPy's interface on a machine without a GPU.

::

    import tcuda.emulation

    tcuda.emulation.enable(devices=2, memory="1GiB")
    xp = tcuda.emulation.xp
    x = xp.arange(6.0).reshape(2, 3)
    print((x @ x.T).get())
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from tcuda._runtime import emulate, emulated_runtime
from tcuda._runtime.emulated import parse_memory, parse_schedule
from tcuda._runtime.emulated.clock import Clock

if TYPE_CHECKING:
    from tcuda.emulation import xp
    from tcuda.emulation._ndarray import ndarray


def enable(
    devices: int = 1, memory: int | str = "2GiB", *, schedule: str | None = None, seed: int | None = None
) -> None:
    """Use emulated devices in this process; call it before anything that needs a device.

    The environment can ask for the same: ``TCUDA_RUNTIME=emulated``, ``TCUDA_EMULATED_DEVICES``,
    ``TCUDA_EMULATED_MEMORY``, ``TCUDA_EMULATED_SCHEDULE``.

    Args:
        devices: The number of devices.
        memory: The memory of each device: bytes, or a text such as ``"512MiB"``.
        schedule: When work is done. With ``"eager"``, a call does the work that it launches. With ``"late"``, work is
            done only when the host waits for it, in an order that shows missing waits. If None, the environment
            variable ``TCUDA_EMULATED_SCHEDULE`` decides, and the schedule is ``"eager"`` without the variable.
        seed: The order of work that nothing orders, for the late schedule: with 0, later work goes first; every other
            seed stands for a random order. If None, the environment variable decides, and the seed is 0 without it.

    Raises:
        RuntimeError: The process already uses CUDA devices or emulated devices.
        TypeError: An argument has a wrong type.
        ValueError: ``devices`` or ``memory`` is too large or not positive, the text is not a size, ``schedule`` is
            unknown, or ``seed`` is out of range.

    Example:
        >>> import tcuda.emulation
        >>> tcuda.emulation.enable(devices=2, memory="1GiB")
        >>> tcuda.device_count()
        2
        >>> tcuda.mem_get_info()[1]  # bytes
        1073741824
    """
    emulate(devices, parse_memory(memory), parse_schedule(schedule, seed, os.environ))


def clock() -> Clock:
    """Return the clock of the emulated devices.

    ``now()`` of the clock is the time in nanoseconds. ``advance(ns)`` lets time pass as if the host did other work.
    Time passes only when the program calls tcuda, and is the same in every run.

    Raises:
        RuntimeError: The devices in use are not emulated.

    Example:
        >>> import tcuda.emulation
        >>> clock = tcuda.emulation.clock()
        >>> before = clock.now()
        >>> x = xp.ones(1000)
        >>> tcuda.synchronize()
        >>> clock.now() > before  # nanoseconds of the emulated devices
        True
    """
    return emulated_runtime().clock


def __getattr__(name: str) -> Any:
    # The arrays are imported on first use, because they import NumPy, which a program for streams does not need.
    if name == "xp":
        return importlib.import_module("tcuda.emulation.xp")
    if name == "ndarray":
        return importlib.import_module("tcuda.emulation._ndarray").ndarray
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = ["Clock", "clock", "enable", "ndarray", "xp"]
