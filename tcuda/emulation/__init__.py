"""Arrays on emulated devices, for programs that use CuPy's interface on a machine without a GPU.

::

    import tcuda.emulation

    tcuda.emulation.enable(devices=2, memory="1GiB")
    xp = tcuda.emulation.xp
    x = xp.arange(6.0).reshape(2, 3)
    print((x @ x.T).get())
"""

from __future__ import annotations

from tcuda._runtime import emulate, runtime
from tcuda._runtime.emulated import EmulatedRuntime, parse_memory
from tcuda._runtime.emulated.clock import Clock
from tcuda.emulation import xp
from tcuda.emulation.ndarray import ndarray


def enable(devices: int = 1, memory: int | str = "2GiB") -> None:
    """Use emulated devices in this process; call it before anything that needs a device.

    The environment can ask for the same: ``TCUDA_RUNTIME=emulated``, ``TCUDA_EMULATED_DEVICES``,
    ``TCUDA_EMULATED_MEMORY``.

    Args:
        devices: How many.
        memory: How much memory each of them has: bytes, or a text such as ``"512MiB"``.

    Raises:
        RuntimeError: A runtime with devices, CUDA's or an emulated one, is already in use.
        TypeError: One of the arguments is no number, or no text that tells a size.
        ValueError: So many devices, or so much memory or so little, cannot be emulated.
    """
    emulate(devices, parse_memory(memory))


def clock() -> Clock:
    """Return the clock of the emulated devices.

    Its ``now()`` is the time in nanoseconds; ``advance(ns)`` lets time pass as if the host were busy with something
    else. Time passes only when the program does something, and is the same at every run.

    Raises:
        RuntimeError: The devices in use are not emulated.
    """
    in_use = runtime()
    if not isinstance(in_use, EmulatedRuntime):
        raise RuntimeError(
            f"The {in_use.name} runtime is in use, and its devices have no emulated clock. Set TCUDA_RUNTIME=emulated, "
            "or call tcuda.emulation.enable() first."
        )
    return in_use.clock


__all__ = ["Clock", "clock", "enable", "ndarray", "xp"]
