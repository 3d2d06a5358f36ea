"""The CUDA runtime in use, which the first use chooses: CuPy's runtime, or an emulated one.

This package imports CuPy only when CuPy is needed, and chooses emulation only if the program asks for emulation.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tcuda._base import log
from tcuda._runtime.visible_devices import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcuda._runtime.emulated import EmulatedRuntime
    from tcuda._runtime.emulated.settings import Schedule
    from tcuda._runtime.protocol import Runtime

_CHOICE = "TCUDA_RUNTIME"

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


def emulate(devices: int, memory: int, schedule: Schedule) -> None:
    """Choose ``devices`` emulated devices with ``memory`` bytes each, and the name and the seed of their schedule.

    A program may count the devices first. If the CUDA runtime is in use and has no device, the emulated runtime
    replaces the CUDA runtime, because a program cannot have used CUDA without a device.

    Raises:
        RuntimeError: A runtime with devices is already in use.
    """
    from tcuda._runtime.emulated import make

    _use(make(devices, memory, schedule))


def emulate_by_environment(defaults: Mapping[str, str]) -> bool:
    """Choose the emulated devices that the environment describes, unless emulated devices are in use already.

    Args:
        defaults: The values of the variables that are not set.

    Returns:
        Whether the call has chosen the devices.

    Raises:
        RuntimeError: A runtime with devices is already in use.
        ValueError: An environment variable of tcuda has a value that is not allowed.
    """
    from tcuda._runtime.emulated import made_from_environment

    if _in_use is not None and _in_use.name == "emulated":
        return False
    variables = {**defaults, **{name: value for name, value in os.environ.items() if value or name not in defaults}}
    _use(made_from_environment(variables, only_visible=_asked("auto") == "emulated"))
    return True


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
    asked = _asked(otherwise)
    return asked == "emulated" or (asked == "auto" and not gpus())


def pass_on() -> None:
    """Let the processes that this process starts have devices of the same kind, by the environment."""
    variables = environment()
    if VARIABLE not in os.environ:  # then all devices are visible, and the variable would hide GPUs from other programs
        variables.pop(VARIABLE, None)
    os.environ.update(variables)


def settle_emulated() -> None:
    """Choose emulated devices for this process and for the processes that it starts.

    If nothing has looked for devices, they are made at their first use, because the program may still change the
    environment.

    Raises:
        RuntimeError: GPUs are in use.
        ValueError: An environment variable of tcuda has a value that is not allowed.
    """
    if _in_use is None and _asked("emulated") == "emulated":
        os.environ[_CHOICE] = "emulated"
        return
    emulate_by_environment({})
    pass_on()


def _use(made: Runtime) -> None:
    """Put ``made`` in the place of no runtime, or of a runtime without devices.

    Raises:
        RuntimeError: A runtime with devices is already in use.
    """
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
            log.debug("The runtime is %s.", latest.name)
            return latest


def _from_environment() -> Runtime:
    asked = _asked("cuda")
    if asked == "cuda" or (asked == "auto" and gpus()):
        from tcuda._runtime.cuda import CudaRuntime

        return CudaRuntime()
    from tcuda._runtime.emulated import made_from_environment

    return made_from_environment(os.environ, only_visible=asked == "emulated")


def _asked(otherwise: str) -> str:
    """Return the value of ``TCUDA_RUNTIME``; ``otherwise`` if the variable is not set, or empty."""
    asked = os.environ.get(_CHOICE) or otherwise
    if asked not in ("cuda", "emulated", "auto"):
        raise ValueError(f"{_CHOICE} is {asked!r}; it can be 'cuda', 'emulated' or 'auto'.")
    return asked
