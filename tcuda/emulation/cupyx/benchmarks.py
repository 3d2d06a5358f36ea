"""The times of calls on the host and on devices (``cupyx.profiler.benchmark``)."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.cuda.device import Device, get_device_id
from tcuda.emulation.cuda.event import Event, get_elapsed_time

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

_TYPES = {"args": tuple, "kwargs": dict, "n_repeat": int, "name": str, "n_warmup": int, "devices": tuple}


class Times:
    """The times of the calls.

    Attributes:
        name: The name of the function.
        cpu_times: The seconds of each call on the host.
        gpu_times: The seconds of each call on each device, by the clock of the emulated devices.
    """

    def __init__(
        self, name: str, cpu_times: npt.NDArray[Any], gpu_times: npt.NDArray[Any], devices: tuple[int, ...]
    ) -> None:
        self.name = name
        self.cpu_times = cpu_times
        self.gpu_times = gpu_times
        self._devices = devices

    def to_str(self, show_gpu: bool = False) -> str:
        """Return the mean, the deviation and the range of the times as a text; with ``show_gpu``, of devices too."""
        rows = [("CPU", self.cpu_times)]
        if show_gpu:
            rows += [(f"GPU-{device}", row) for device, row in zip(self._devices, self.gpu_times, strict=True)]
        return f"{self.name:<20s}:{' '.join(_described(kind, row * 1e6) for kind, row in rows)}"

    def __str__(self) -> str:
        return self.to_str(show_gpu=True)

    __repr__ = __str__


def _described(kind: str, times: npt.NDArray[Any]) -> str:
    text = f"    {kind}: {times.mean():9.03f} us"
    if times.size > 1:
        text += f"   +/- {times.std():6.03f} (min: {times.min():9.03f} / max: {times.max():9.03f}) us"
    return text


def benchmark(
    func: Callable[..., Any],
    args: Any = (),
    kwargs: Any = None,
    n_repeat: int = 10000,
    *,
    name: str | None = None,
    n_warmup: int = 10,
    max_duration: float = math.inf,
    devices: tuple[int, ...] | None = None,
) -> Times:
    """Call a function again and again, and return the times of the calls.

    Args:
        func: The function.
        args: The positional arguments, a tuple.
        kwargs: The keyword arguments, a dictionary.
        n_repeat: The number of calls.
        name: The name in the result; that of the function if None.
        n_warmup: The number of calls before the calls whose times are taken.
        max_duration: The seconds after which the calls end.
        devices: The indices of the devices whose times are taken; the current device if None.

    Raises:
        ValueError: An argument is of a wrong type.
    """
    if not callable(func):
        raise ValueError("`func` should be a callable object.")
    chosen: dict[str, Any] = {
        "args": args,
        "kwargs": {} if kwargs is None else kwargs,
        "n_repeat": n_repeat,
        "name": getattr(func, "__name__", "") if name is None else name,
        "n_warmup": n_warmup,
        "devices": (get_device_id(),) if devices is None else devices,
    }
    for argument, kind in _TYPES.items():
        if not isinstance(chosen[argument], kind):
            raise ValueError(f"`{argument}` should be of {kind.__name__} type.")
    options = chosen["kwargs"]
    used = [Device(index) for index in chosen["devices"]]
    for _ in range(n_warmup):
        func(*args, **options)
    host: list[float] = []
    device: list[list[float]] = []
    begun = time.perf_counter()
    for _ in range(n_repeat):
        starts = _recorded(used)
        before = time.perf_counter()
        func(*args, **options)
        host.append(time.perf_counter() - before)
        ends = _recorded(used)
        for end in ends:
            end.synchronize()
        device.append([get_elapsed_time(*pair) * 1e-3 for pair in zip(starts, ends, strict=True)])
        if time.perf_counter() - begun > max_duration:
            break
    return Times(str(chosen["name"]), np.array(host), np.array(device).T, tuple(each.id for each in used))


def _recorded(devices: list[Device]) -> list[Event]:
    """Return an event for the current stream of each device."""
    events = []
    for device in devices:
        with device:
            event = Event()
            event.record()
            events.append(event)
    return events
