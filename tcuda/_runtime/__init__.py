"""The CUDA runtime in use, which the first use chooses: CuPy's runtime, or an emulated one.

This package imports CuPy only when CuPy is needed, and chooses emulation only if the program asks for emulation.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcuda._runtime.emulated import EmulatedRuntime
    from tcuda._runtime.emulated.settings import Schedule
    from tcuda._runtime.protocol import Runtime

_in_use: Runtime | None = None
_successors: dict[Runtime | None, Runtime] = {}
"""For each runtime, the runtime that has replaced it; for None, the runtime that was chosen first.

The first caller of ``setdefault``, which is atomic, decides. No lock is held, because the choice runs foreign code:
imports, finalizers and signal handlers. That code may ask for the runtime too.
"""


def runtime() -> Runtime:
    """Return the runtime in use; the first call chooses the runtime by ``TCUDA_RUNTIME``.

    Raises:
        RuntimeError: ``TCUDA_RUNTIME`` names CUDA, and CuPy cannot be imported. The choice stays open.
        ValueError: An environment variable of tcuda has a value that is not allowed.
    """
    return _in_use or _decide(None, _from_environment())


def emulate(devices: int, memory: int, schedule: Schedule) -> None:
    """Choose ``devices`` emulated devices with ``memory`` bytes each, and the name and the seed of their schedule.

    A program may look for GPUs first. If the CUDA runtime is in use and has no device, the emulated runtime replaces
    the CUDA runtime, because a program cannot have used CUDA without a device.

    Raises:
        RuntimeError: A runtime with devices is already in use.
    """
    from tcuda._runtime.emulated import make

    made: Runtime = make(devices, memory, schedule)
    before: Runtime | None = None
    while before is not made:
        before = _in_use
        if before is not None and before.visibleDeviceCount():
            raise RuntimeError(
                f"Cannot emulate devices: the {before.name} runtime is already in use. Call "
                "tcuda.emulation.enable() before anything that needs a device, or set TCUDA_RUNTIME=emulated."
            )
        before = _decide(before, made)


def gpus() -> int:
    """Return the number of GPUs that CUDA shows to this process; the choice of the runtime stays open."""
    from tcuda._runtime.cuda import CudaRuntime

    try:
        return CudaRuntime().visibleDeviceCount()
    except RuntimeError:  # CuPy cannot be imported
        return 0


def environment() -> dict[str, str]:
    """Return the environment variables that give another process the same kind of devices as this process has.

    Raises:
        RuntimeError: ``TCUDA_RUNTIME`` names CUDA, and CuPy cannot be imported.
        ValueError: An environment variable of tcuda has a value that is not allowed.
    """
    return runtime().environment()


def emulated_runtime() -> EmulatedRuntime:
    """Return the runtime in use, which must be an emulated one.

    Raises:
        RuntimeError: The devices in use are not emulated.
    """
    from tcuda._runtime.emulated import EmulatedRuntime

    in_use = runtime()
    if not isinstance(in_use, EmulatedRuntime):
        raise RuntimeError(
            f"The {in_use.name} runtime is in use, and its devices have no emulated clock. Set TCUDA_RUNTIME=emulated, "
            "or call tcuda.emulation.enable() first."
        )
    return in_use


def _decide(before: Runtime | None, made: Runtime) -> Runtime:
    """Replace the runtime ``before`` by ``made``, unless another caller was faster; return the runtime in use."""
    global _in_use
    latest = _successors.setdefault(before, made)
    while True:
        while latest in _successors:
            latest = _successors[latest]
        _in_use = latest
        if latest not in _successors:  # if another caller has replaced `latest` meanwhile, that stays so
            return latest


def _from_environment() -> Runtime:
    choice = os.environ.get("TCUDA_RUNTIME", "cuda")
    if choice == "cuda":
        from tcuda._runtime.cuda import CudaRuntime

        return CudaRuntime()
    if choice == "emulated":
        from tcuda._runtime.emulated import made_from_environment

        return made_from_environment()
    raise ValueError(f"TCUDA_RUNTIME is {choice!r}; it can be 'cuda' or 'emulated'.")
