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
from typing import TYPE_CHECKING, Any, Literal

from tcuda import _runtime
from tcuda._base.public_names import public_names
from tcuda.emulation.runtime import check, choice, parse_memory, parse_schedule
from tcuda.emulation.runtime.clock import Clock

if TYPE_CHECKING:
    from tcuda._backend import xp
    from tcuda._backend.xp import ndarray


def enable(
    devices: int = 1,
    memory: int | str = "2GiB",
    *,
    schedule: Literal["eager", "late"] | None = None,
    seed: int | None = None,
    checks: str | None = None,
) -> None:
    """Use emulated devices in this process; call it before anything that needs a device.

    The environment can ask for the same: ``TCUDA_RUNTIME=emulated``, ``TCUDA_EMULATED_DEVICES``,
    ``TCUDA_EMULATED_MEMORY``, ``TCUDA_EMULATED_SCHEDULE``, ``TCUDA_EMULATED_CHECKS``. The call sets these variables, so
    that the processes that this process starts have the same devices. A second call with the same arguments does
    nothing, as when a cell of a notebook runs again.

    Args:
        devices: The number of devices.
        memory: The memory of each device: bytes, or a text such as ``"512MiB"``.
        schedule: When work is done. With ``"eager"``, a call does the work that it launches. With ``"late"``, work is
            done only when the host waits for it, in an order that shows missing waits. If None, the environment
            variable ``TCUDA_EMULATED_SCHEDULE`` decides, and the schedule is ``"eager"`` without the variable.
        seed: The order of work that nothing orders, for the late schedule: with 0, later work goes first; every other
            seed stands for a random order. If None, the environment variable decides, and the seed is 0 without it.
        checks: The checks of kernels, as in the environment variable ``TCUDA_EMULATED_CHECKS``: a list such as
            ``"memory,races"``. If None, the environment variable decides.

    Raises:
        RuntimeError: The process already uses CUDA devices, or other emulated devices.
        TypeError: An argument has a wrong type.
        ValueError: ``devices`` or ``memory`` is too large or not positive, the text is not a size, ``schedule`` is
            unknown, ``seed`` is out of range, or a check is unknown.

    Example:
        >>> import tcuda.emulation
        >>> tcuda.emulation.enable(devices=2, memory="1GiB")
        >>> tcuda.device_count()
        2
        >>> tcuda.mem_get_info()[1]  # bytes
        1073741824
    """
    __tracebackhide__ = True  # a notebook would show this long text with an error
    chosen = {} if checks is None else _checks(checks)
    choice.emulate(devices, parse_memory(memory), parse_schedule(schedule, seed, os.environ))
    _runtime.pass_on()
    os.environ.update(chosen)


def enable_without_gpu(devices: int = 1, memory: int | str = "2GiB", *, checks: str | None = None) -> bool:
    """Use emulated devices if there is no GPU that CuPy can use; otherwise do nothing.

    The environment goes first: with ``TCUDA_RUNTIME=cuda``, devices are never emulated, and with
    ``TCUDA_RUNTIME=emulated`` always. ``TCUDA_EMULATED_DEVICES``, ``TCUDA_EMULATED_MEMORY``,
    ``TCUDA_EMULATED_SCHEDULE`` and ``TCUDA_EMULATED_CHECKS`` go before the arguments. If the process uses devices
    already, the call does nothing. So several modules of a program may call the function.

    Args:
        devices: The number of emulated devices.
        memory: The memory of each emulated device: bytes, or a text such as ``"512MiB"``.
        checks: The checks of kernels on emulated devices, such as ``"memory,races"``, as for :func:`enable`.

    Returns:
        Whether the devices are emulated.

    Raises:
        TypeError: An argument has a wrong type.
        ValueError: ``devices`` or ``memory`` is too large or not positive, the text is not a size, a check is unknown,
            or a variable has a value that is not allowed.

    Example:
        >>> import tcuda.emulation
        >>> emulated = tcuda.emulation.enable_without_gpu(devices=2)
        >>> tcuda.is_available()  # in any case
        True
    """
    size = parse_memory(memory)
    check(devices, size)
    chosen = {} if checks is None else _checks(checks)
    if not _runtime.is_emulated("auto"):
        return False
    defaults = {"TCUDA_EMULATED_DEVICES": str(devices), "TCUDA_EMULATED_MEMORY": str(size)}
    if choice.emulate_by_environment(defaults):
        os.environ.update({name: text for name, text in chosen.items() if not os.environ.get(name)})
    _runtime.pass_on()
    return True


def install_as_cupy() -> bool:
    """Let ``import cupy`` import the arrays of emulated devices from now on, also where CuPy is installed.

    The same holds in the processes that this process starts. ``tcuda run PROGRAM`` does this for a whole program, and
    the option ``tcuda_cupy`` of pytest for tests. This function is for notebooks and ``conftest.py``: call it before
    the first ``import cupy``. A second call does nothing.

    The devices are those that :func:`enable` has chosen, or else those of the environment. With ``TCUDA_RUNTIME=auto``
    and a GPU, the function does nothing, and ``import cupy`` imports CuPy.

    Returns:
        Whether ``import cupy`` imports the arrays of emulated devices.

    Raises:
        RuntimeError: CuPy has been imported already, or the process uses GPUs, or ``TCUDA_RUNTIME`` is ``cuda``.
        ValueError: ``TCUDA_RUNTIME`` has a value that is not allowed.

    Example:
        >>> import tcuda.emulation
        >>> tcuda.emulation.install_as_cupy()
        True
        >>> import cupy
        >>> cupy is tcuda.xp
        True
    """
    from tcuda.emulation.as_cupy import children as _children
    from tcuda.emulation.as_cupy import import_hook as _import_hook

    if not _runtime.is_emulated("emulated"):
        if os.environ.get("TCUDA_RUNTIME") == "auto":
            return False
        raise RuntimeError(
            "Devices cannot be emulated: the process uses GPUs, or TCUDA_RUNTIME is 'cuda'. Call "
            "tcuda.emulation.install_as_cupy() before anything that needs a device, and set TCUDA_RUNTIME=emulated."
        )
    _import_hook.install()
    choice.settle()
    _children.pass_on_as_cupy()
    return True


def _checks(checks: str) -> dict[str, str]:
    """Return the environment variable that chooses checks of kernels.

    Raises:
        TypeError: ``checks`` is not a text.
        ValueError: A check is unknown.
    """
    from tcuda._base.arguments import text
    from tcuda.emulation.rtc import checks as known  # here, because few programs choose checks

    known.parsed(text(checks, "checks"), "checks")
    return {known.VARIABLE: checks}


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
    return choice.emulated_runtime().clock


def __getattr__(name: str) -> Any:
    # The arrays are imported on first use, because they import NumPy, which a program for streams does not need.
    if name == "xp":
        return importlib.import_module("tcuda.emulation.xp")
    if name == "ndarray":
        return importlib.import_module("tcuda.emulation.arrays.ndarray").ndarray
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["Clock", "clock", "enable", "enable_without_gpu", "install_as_cupy", "ndarray", "xp"]
__dir__ = public_names(__name__)
