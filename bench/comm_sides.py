"""The sides of a comparison over several devices: tcuda, plain CuPy, and torch where it can use the GPUs.

A side gives values to the names in the statements of ``comm_calls.py``:

* ``devices`` is the tuple of the devices, and ``x`` is an array of the first. ``host`` is a page-locked array, or None
  if the call does not use this name.
* ``parts`` has an equal part of an array on each device, and ``copies`` has a whole array on each device.
* ``small`` has many small arrays on the first device, and ``gradients`` has such a list for each device.
* ``keep_busy`` launches a kernel on the last device that does nothing for 50 microseconds.
* ``copied`` and ``uploaded`` return a copy on a device. ``cut`` returns equal parts of an array. ``joined`` and
  ``summed`` return one array.
* ``wait`` waits for all devices.
"""

from __future__ import annotations

import importlib.util
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
from comm_calls import COUNT, LENGTH, CommCall
from sides import own_allocator

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable

_CYCLES = 100_000  # 50 microseconds on an H200; a launch takes as long on each side


class CommSide(NamedTuple):
    """One side.

    Attributes:
        names: The values of the names in the statements.
        spelling: The field of :class:`CommCall` that has the statement of this side.
        begin: Called before the measurement: sets the allocator of CuPy that this side measures.
        end: Called after the measurement: undoes ``begin``.
    """

    names: dict[str, Any]
    spelling: str
    begin: Callable[[], None]
    end: Callable[[], None]


def present() -> tuple[str, ...]:
    """Return the names of the sides that can be measured on this machine."""
    return ("tcuda", "cupy", "torch") if importlib.util.find_spec("torch") else ("tcuda", "cupy")


def made(name: str, devices: int, call: CommCall) -> CommSide:
    """Return the side ``name`` with the arrays of ``call``."""
    return {"tcuda": _tcuda, "cupy": _cupy, "torch": _torch}[name](tuple(range(devices)), call)


def _tcuda(devices: tuple[int, ...], call: CommCall) -> CommSide:
    import tcuda.comm

    names = _of_arrays(tcuda.xp, tcuda.device, devices, call)
    return CommSide({**names, "comm": tcuda.comm}, "surface", _nothing, _nothing)


def _cupy(devices: tuple[int, ...], call: CommCall) -> CommSide:
    import cupy

    begin, end = own_allocator(cupy.cuda, cupy.cuda.MemoryPool().malloc, _nothing)
    begin()
    try:
        names = _of_arrays(cupy, cupy.cuda.Device, devices, call)
    finally:
        end()

    def copied(array: Any, device: int) -> Any:
        with cupy.cuda.Device(device):
            return cupy.array(array)

    def cut(array: Any) -> list[Any]:
        length = math.ceil(array.shape[0] / len(devices))
        return [array[begin : begin + length] for begin in range(0, array.shape[0], length)]

    def summed(arrays: list[Any]) -> Any:
        total = arrays[0]
        for array in arrays[1:]:
            total = total + array
        return total

    def uploaded(array: Any, device: int) -> Any:
        with cupy.cuda.Device(device):
            return cupy.asarray(array)

    functions = {"copied": copied, "uploaded": uploaded, "cut": cut, "joined": cupy.concatenate, "summed": summed}
    return CommSide({**names, **functions}, "cupy", begin, end)


def _of_arrays(xp: Any, on: Any, devices: tuple[int, ...], call: CommCall) -> dict[str, Any]:
    import cupyx

    length = call.size // 4

    def each(make: Callable[[], Any]) -> list[Any]:
        found = []
        for device in devices:
            with on(device):
                found.append(make())
        return found

    def ones(shape: Any) -> Any:
        return xp.ones(shape, xp.float32)

    def keep_busy() -> None:
        with on(devices[-1]):
            tcuda._sleep(_CYCLES)

    gradients = each(lambda: [ones(LENGTH) for _ in range(COUNT)])
    host = cupyx.empty_pinned((length,), numpy.float32) if "host" in call.surface else None
    if host is not None:
        host[...] = 1
    return {
        "devices": devices,
        "x": each(lambda: ones(length))[0],
        "host": host,
        "parts": each(lambda: ones(length // len(devices))),
        "copies": each(lambda: ones(length)),
        "small": gradients[0],
        "gradients": gradients,
        "keep_busy": keep_busy,
        "wait": _waiting(devices),
        "alive": each(lambda: [xp.empty(LENGTH, xp.float32) for _ in range(call.alive)]),
    }


def _torch(devices: tuple[int, ...], call: CommCall) -> CommSide:
    import torch
    import torch.cuda.comm

    length = call.size // 4

    def ones(shape: int, device: int) -> Any:
        return torch.ones(shape, device=f"cuda:{device}")

    def keep_busy() -> None:
        with torch.cuda.device(devices[-1]):
            torch.cuda._sleep(_CYCLES)

    gradients = [[ones(LENGTH, device) for _ in range(COUNT)] for device in devices]
    names = {
        "comm": torch.cuda.comm,
        "devices": devices,
        "x": ones(length, 0),
        "host": torch.ones(length).pin_memory() if "host" in call.surface else None,
        "parts": [ones(length // len(devices), device) for device in devices],
        "copies": [ones(length, device) for device in devices],
        "small": gradients[0],
        "gradients": gradients,
        "keep_busy": keep_busy,
        "alive": [[torch.empty(LENGTH, device=f"cuda:{device}") for _ in range(call.alive)] for device in devices],
        "wait": _waiting(devices),
    }
    return CommSide(names, "surface", _nothing, _nothing)


def _waiting(devices: tuple[int, ...]) -> Callable[[], None]:
    """Return a function that waits for all devices, and leaves the first of them current."""
    from cupy.cuda import runtime

    set_device, synchronize = runtime.setDevice, runtime.deviceSynchronize

    def wait() -> None:
        for device in reversed(devices):
            set_device(device)
            synchronize()

    return wait


def _nothing() -> None:
    pass
