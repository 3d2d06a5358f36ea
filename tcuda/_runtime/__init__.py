"""The CUDA runtime in use, decided once and lazily: CuPy's, or an emulated one.

Nothing here imports CuPy before it is needed, and nothing chooses emulation that was not asked for.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcuda._runtime.emulated import EmulatedRuntime
    from tcuda._runtime.protocol import Runtime

_in_use: Runtime | None = None
_successors: dict[Runtime | None, Runtime] = {}
"""The runtime that took the place of each; that of None was the first.

Who adds to it with ``setdefault``, which is atomic, has decided. No lock is held, because choosing a runtime runs code
of others: imports, and finalizers and signal handlers, which may ask for the runtime too.
"""


def runtime() -> Runtime:
    """Return the runtime in use, choosing it by ``TCUDA_RUNTIME`` at the first call.

    Raises:
        RuntimeError: CUDA was chosen and CuPy cannot be imported. The choice stays open.
        ValueError: An environment variable of tcuda's holds what it must not.
    """
    return _in_use or _decide(None, _from_environment())


def emulate(devices: int, memory: int) -> None:
    """Choose ``devices`` emulated devices with ``memory`` bytes each.

    A program may look for GPUs first: CUDA without a device cannot have been used, and is given up.

    Raises:
        RuntimeError: A runtime with devices is already in use.
    """
    from tcuda._runtime.emulated import EmulatedRuntime

    made: Runtime = EmulatedRuntime(devices, memory)
    before: Runtime | None = None
    while before is not made:
        before = _in_use
        if before is not None and before.visibleDeviceCount():
            raise RuntimeError(
                f"Cannot emulate devices: the {before.name} runtime is already in use. Call "
                "tcuda.emulation.enable() before anything that needs a device, or set TCUDA_RUNTIME=emulated."
            )
        before = _decide(before, made)


def emulated_runtime() -> EmulatedRuntime:
    """Return the runtime in use.

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
    """Put ``made`` in the place of ``before``, unless another caller was faster, and return the runtime in use."""
    global _in_use
    latest = _successors.setdefault(before, made)
    while True:
        while latest in _successors:
            latest = _successors[latest]
        _in_use = latest
        if latest not in _successors:  # else another caller decided after the question, and it must not be undone
            return latest


def _from_environment() -> Runtime:
    choice = os.environ.get("TCUDA_RUNTIME", "cuda")
    if choice == "cuda":
        from tcuda._runtime.cuda import CudaRuntime

        return CudaRuntime()
    if choice == "emulated":
        from tcuda._runtime.emulated import EmulatedRuntime, from_environment

        return EmulatedRuntime(*from_environment(os.environ))
    raise ValueError(f"TCUDA_RUNTIME is {choice!r}; it can be 'cuda' or 'emulated'.")
