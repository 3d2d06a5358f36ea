"""The CUDA runtime in use, which the first use chooses: CuPy's runtime, or an emulated one.

This package imports CuPy only when CuPy is needed, and chooses emulation only if the program asks for emulation.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tcuda._base import log
from tcuda._base.messages import similar
from tcuda._base.wings import wing_module
from tcuda._runtime.visible_devices import VARIABLE

if TYPE_CHECKING:
    from tcuda._runtime.protocol import Runtime

CHOICE = "TCUDA_RUNTIME"
"""The environment variable that chooses the runtime."""

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


def visible_device_count() -> int:
    """Return the number of devices that the process would use now; the choice of the runtime stays open.

    Raises:
        RuntimeError: ``TCUDA_RUNTIME`` names CUDA, and CuPy cannot be imported.
        ValueError: An environment variable of tcuda has a value that is not allowed.
    """
    return (_in_use or _from_environment()).visibleDeviceCount()


def in_use() -> Runtime | None:
    """Return the runtime in use; None while the choice is open."""
    return _in_use


def is_emulated(otherwise: str = "cuda") -> bool:
    """Return whether the devices of this process are emulated; the choice of the runtime stays open.

    Args:
        otherwise: The choice if ``TCUDA_RUNTIME`` is not set: ``"cuda"``, ``"emulated"`` or ``"auto"``.

    Raises:
        ValueError: ``TCUDA_RUNTIME`` has a value that is not allowed.
    """
    before = _in_use
    if before is not None and (before.name == "emulated" or before.visibleDeviceCount()):
        return before.name == "emulated"
    asked = asked_for(otherwise)
    return asked == "emulated" or (asked == "auto" and not gpus())


def pass_on() -> None:
    """Let the processes that this process starts have devices of the same kind, by the environment."""
    variables = environment()
    if VARIABLE not in os.environ:  # then all devices are visible, and the variable would hide GPUs from other programs
        variables.pop(VARIABLE, None)
    os.environ.update(variables)


def use(made: Runtime) -> None:
    """Put ``made`` in the place of no runtime, or of a runtime without devices.

    A program may count the devices before it chooses emulated ones: a program cannot have used CUDA without a device.

    Raises:
        RuntimeError: A runtime with devices is already in use.
    """
    before: Runtime | None = None
    while before is not made:
        before = _in_use
        if before is not None and before.visibleDeviceCount():
            raise RuntimeError(
                f"Cannot emulate devices: the {before.name} runtime is already in use. Call "
                "tcuda.emulation.enable() before anything that needs a device, for which a notebook restarts its "
                "kernel, or set TCUDA_RUNTIME=emulated."
            )
        before = _decide(before, made)


def gpus() -> int:
    """Return the number of GPUs that CUDA shows to this process; the choice of the runtime stays open.

    Without a GPU, CuPy is not imported, because emulated devices may then take the place of CuPy.
    """
    from tcuda._runtime.cuda import CudaRuntime, visible_devices

    seen = visible_devices.count()
    if seen == 0 or (seen is None and not visible_devices.any_by_driver()):
        return 0
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


def _decide(before: Runtime | None, made: Runtime) -> Runtime:
    """Replace the runtime ``before`` by ``made``, unless another caller was faster; return the runtime in use."""
    global _in_use
    latest = _successors.setdefault(before, made)
    while True:
        while latest in _successors:
            latest = _successors[latest]
        _in_use = latest
        if latest not in _successors:  # if another caller has replaced `latest` meanwhile, that stays so
            log.debug("The runtime is %s.", latest.name)
            return latest


def _from_environment() -> Runtime:
    asked = asked_for("cuda")
    if asked == "cuda" or (asked == "auto" and gpus()):
        from tcuda._runtime.cuda import CudaRuntime

        return CudaRuntime()
    emulated: Runtime = wing_module("emulation.runtime").made_from_environment(
        os.environ, only_visible=asked == "emulated"
    )
    return emulated


def asked_for(otherwise: str) -> str:
    """Return the value of ``TCUDA_RUNTIME``; ``otherwise`` if the variable is not set, or empty.

    Raises:
        ValueError: ``TCUDA_RUNTIME`` has a value that is not allowed.
    """
    asked = os.environ.get(CHOICE) or otherwise
    known = ("cuda", "emulated", "auto")
    if asked not in known:
        raise ValueError(f"{CHOICE} is {asked!r}; it can be 'cuda', 'emulated' or 'auto'.{similar(asked, known)}")
    return asked
