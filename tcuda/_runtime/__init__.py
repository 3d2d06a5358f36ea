"""The CUDA runtime in use, decided once and lazily: CuPy's, or an emulated one.

Nothing here imports CuPy before it is needed, and nothing chooses emulation that was not asked for.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcuda._runtime.protocol import Runtime

_lock = threading.Lock()
_in_use: Runtime | None = None


def runtime() -> Runtime:
    """Return the runtime in use, choosing it by ``TCUDA_RUNTIME`` at the first call.

    Raises:
        RuntimeError: CUDA was chosen and CuPy cannot be imported. The choice stays open.
        ValueError: An environment variable of tcuda's holds what it must not.
    """
    return _in_use or _choose()


def emulate(devices: int, memory: int) -> None:
    """Choose ``devices`` emulated devices with ``memory`` bytes each.

    A program may look for GPUs first: CUDA without a device cannot have been used, and is given up.

    Raises:
        RuntimeError: A runtime with devices is already in use.
    """
    from tcuda._runtime.emulated import EmulatedRuntime

    global _in_use
    with _lock:
        if _in_use is not None and _in_use.visibleDeviceCount():
            raise RuntimeError(
                f"Cannot emulate devices: the {_in_use.name} runtime is already in use. Call "
                "tcuda.emulation.enable() before anything that needs a device, or set TCUDA_RUNTIME=emulated."
            )
        _in_use = EmulatedRuntime(devices, memory)


def _choose() -> Runtime:
    global _in_use
    with _lock:
        if _in_use is None:
            choice = os.environ.get("TCUDA_RUNTIME", "cuda")
            if choice == "cuda":
                from tcuda._runtime.cuda import CudaRuntime

                _in_use = CudaRuntime()
            elif choice == "emulated":
                from tcuda._runtime.emulated import EmulatedRuntime, from_environment

                _in_use = EmulatedRuntime(*from_environment(os.environ))
            else:
                raise ValueError(f"TCUDA_RUNTIME is {choice!r}; it can be 'cuda' or 'emulated'.")
        return _in_use
