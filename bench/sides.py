"""The sides of a comparison: tcuda, the layer below it, and torch where it can use the GPU.

A side is what the names in the statements of ``calls.py`` stand for. ``stream``, ``s2``, ``event``, ``start`` and
``end`` are objects for tcuda and torch, and handles for the layer below; ``s`` is ``stream``, always as an object.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import tcuda
from tcuda._lazy import _lazy_init
from tcuda._runtime.protocol import EVENT_DEFAULT, EVENT_DISABLE_TIMING

if TYPE_CHECKING:
    from collections.abc import Callable

    from calls import Call

ON_CUDA = os.environ["TCUDA_RUNTIME"] == "cuda"
"""Whether there is a GPU to measure; the conftest.py of the repository has settled it."""

_POOL = 32  # streams that tcuda and torch hand out in turn


class Side(NamedTuple):
    """One side.

    Attributes:
        names: What the names in its statements stand for.
        rest: Makes the default stream current and waits until the device is idle.
    """

    names: dict[str, Any]
    rest: Callable[[], None]

    def statement(self, call: Call) -> str:
        """Return what this side does for ``call``."""
        if "cuda" in self.names:
            return call.surface
        return call.cupy if ON_CUDA and call.cupy else call.below


def _present() -> tuple[str, ...]:
    if ON_CUDA and importlib.util.find_spec("torch"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what torch warns of when it is imported is not ours to mend
            import torch

            if torch.cuda.is_available():
                return "tcuda", "below", "torch"
    return "tcuda", "below"


SIDES = _present()
"""The sides that this machine has."""


@functools.cache
def side(name: str) -> Side:
    """Return the side of that name, with an idle device."""
    made = {"tcuda": _tcuda, "below": _below, "torch": _torch}[name]()
    made.rest()
    return made


def _tcuda() -> Side:
    return _surface(tcuda, tcuda.xp.empty(1))


def _torch() -> Side:
    import torch

    return _surface(torch.cuda, torch.empty(1, device="cuda"))


def _surface(cuda: Any, x: Any) -> Side:
    stream, s2, *_ = [cuda.Stream() for _ in range(_POOL)]  # all of them, so that no measured call creates one
    event, start, end = cuda.Event(), cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    for each in (event, start, end):
        each.record()
    objects = {"x": x, "s": stream, "stream": stream, "s2": s2, "event": event, "start": start, "end": end}
    return Side({"cuda": cuda, **objects}, _rest(cuda))


def _below() -> Side:
    import nvtx

    own = _cupy() if ON_CUDA else _emulated()
    runtime, nvml = own["runtime"], own["nvml"]
    event, start, end = map(runtime.eventCreateWithFlags, (EVENT_DISABLE_TIMING, EVENT_DEFAULT, EVENT_DEFAULT))
    for each in (event, start, end):
        runtime.eventRecord(each, 0)
    nvml.nvmlInit()
    gpu = nvml.nvmlDeviceGetHandleByUUID(f"GPU-{tcuda.get_device_properties(0).uuid}")
    handles = {"stream": own["s"].ptr, "s2": tcuda.Stream().cuda_stream, "event": event, "start": start, "end": end}
    return Side({**own, "x": tcuda.xp.empty(1), "gpu": gpu, "domain": nvtx.get_domain(), **handles}, _rest(tcuda))


def _cupy() -> dict[str, Any]:
    import pynvml
    from cupy.cuda import Device, Stream, get_current_stream, runtime

    return {
        "runtime": runtime,
        "nvml": pynvml,
        "Device": Device,
        "Stream": Stream,
        "get_current_stream": get_current_stream,
        "s": Stream(non_blocking=True),
    }


def _emulated() -> dict[str, Any]:
    runtime = _lazy_init()
    return {"runtime": runtime, "nvml": runtime.nvml(), "s": tcuda.Stream()}


def _rest(cuda: Any) -> Callable[[], None]:
    def rest() -> None:
        cuda.set_stream(cuda.default_stream())
        cuda.synchronize()

    return rest
