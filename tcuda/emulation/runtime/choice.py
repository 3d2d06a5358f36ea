"""The choice of emulated devices as the runtime of this process, and of the processes that it starts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tcuda import _runtime
from tcuda.emulation.runtime import EmulatedRuntime, made_from_environment, make

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcuda.emulation.runtime.settings import Schedule


_SETTINGS = ("TCUDA_EMULATED_DEVICES", "TCUDA_EMULATED_MEMORY", "TCUDA_EMULATED_SCHEDULE")


def emulate(devices: int, memory: int, schedule: Schedule) -> None:
    """Choose ``devices`` emulated devices with ``memory`` bytes each, and the name and the seed of their schedule.

    If such devices are in use, the call does nothing. So a cell of a notebook can run twice.

    Raises:
        RuntimeError: A runtime with other devices is already in use.
    """
    made = make(devices, memory, schedule)
    before = _runtime.in_use()
    if not isinstance(before, EmulatedRuntime) or not before.visibleDeviceCount():
        _runtime.use(made)
        return
    there, asked = before.environment(), made.environment()
    others = [name for name in _SETTINGS if there[name] != asked[name]]
    if others:
        raise RuntimeError(
            f"Devices are already emulated, with {_listed(there, others)}. A process keeps its devices: restart the "
            f"program, or the kernel of the notebook, and call tcuda.emulation.enable() first; or set "
            f"{_listed(asked, others)}."
        )


def _listed(settings: Mapping[str, str], names: Sequence[str]) -> str:
    return " and ".join(f"{name}={settings[name]}" for name in names)


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
    if isinstance(_runtime.in_use(), EmulatedRuntime):
        return False
    variables = {**defaults, **{name: value for name, value in os.environ.items() if value or name not in defaults}}
    _runtime.use(made_from_environment(variables, only_visible=_runtime.asked_for("auto") == "emulated"))
    return True


def settle() -> None:
    """Choose emulated devices for this process and for the processes that it starts.

    If nothing has looked for devices, they are made at their first use, because the program may still change the
    environment.

    Raises:
        RuntimeError: GPUs are in use.
        ValueError: An environment variable of tcuda has a value that is not allowed.
    """
    if _runtime.in_use() is None and _runtime.asked_for("emulated") == "emulated":
        os.environ[_runtime.CHOICE] = "emulated"
        return
    emulate_by_environment({})
    _runtime.pass_on()


def emulated_runtime() -> EmulatedRuntime:
    """Return the runtime in use, which must be an emulated one.

    Raises:
        RuntimeError: The devices in use are not emulated.
    """
    in_use = _runtime.runtime()
    if not isinstance(in_use, EmulatedRuntime):
        raise RuntimeError(
            f"The {in_use.name} runtime is in use, and its devices have no emulated clock. Set TCUDA_RUNTIME=emulated, "
            "or call tcuda.emulation.enable() first."
        )
    return in_use
