"""The sides of a comparison: tcuda, the layer below it, and torch where it can use the GPU.

A side is what the names in the statements of ``calls.py`` stand for. ``stream``, ``s2``, ``event``, ``start`` and
``end`` are objects for tcuda and torch, and handles for the layer below; ``s`` is ``stream``, always as an object.
``ledger`` is that of tcuda's core, ``philox`` the state of a generator there, and ``pool`` a pool of CuPy's. ``random``
is a generator of CuPy's own, or of NumPy's on emulated devices; ``state`` that of a generator, as bytes. ``in_place``
and ``with_arrays`` launch 20 small kernels; ``graph`` has those of the first, and is a handle for the layer below;
``handle`` is a pool in which there is memory for those of the second.
"""

from __future__ import annotations

import functools
import importlib.util
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
from chosen_runtime import ON_CUDA

import tcuda
from tcuda._backend import backend_of
from tcuda._core import PhiloxState
from tcuda._process.ledger import ledger
from tcuda._runtime import runtime
from tcuda._runtime.protocol import EVENT_DEFAULT, EVENT_DISABLE_TIMING

if TYPE_CHECKING:
    from collections.abc import Callable

    from calls import Call, State

    Kernels = dict[str, Callable[[], None]]

_POOL = 32  # streams that tcuda and torch hand out in turn


class Side(NamedTuple):
    """One side.

    Attributes:
        names: What the names in its statements stand for.
        spellings: The fields of a call that are meant for it, the nearest first.
        begin: What comes before a round: lets the arrays of CuPy come from where this side measures them.
        rest: What comes after one: undoes ``begin``, makes the default stream current, waits until the device is idle.
    """

    names: dict[str, Any]
    spellings: tuple[str, ...]
    begin: Callable[[], None]
    rest: Callable[[], None]

    def statement(self, call: Call) -> str:
        """Return what this side does for ``call``."""
        statement: str = next(filter(None, (getattr(call, spelling) for spelling in self.spellings)))
        return statement

    def state(self, call: Call) -> State:
        """Return what it does so in."""
        return call.state_below if "below" in self.spellings else call.state


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
    kernels = _kernels(tcuda.xp.add, tcuda.xp.zeros(100))
    return _surface(("surface",), tcuda, tcuda.xp.empty(1), kernels, xp=tcuda.xp)


def _torch() -> Side:
    import torch

    kernels = _kernels(torch.add, torch.zeros(100, device="cuda"))
    return _surface(("torch", "surface"), torch.cuda, torch.empty(1, device="cuda"), kernels, torch=torch)


def _surface(spellings: tuple[str, ...], cuda: Any, x: Any, kernels: Kernels, **arrays: Any) -> Side:
    stream, s2, *_ = [cuda.Stream() for _ in range(_POOL)]  # all of them, so that no measured call creates one
    event, start, end = cuda.Event(), cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    for each in (event, start, end):
        each.record()
    objects = {"x": x, "s": stream, "stream": stream, "s2": s2, "event": event, "start": start, "end": end}
    kept = _captured(cuda, kernels["with_arrays"])
    objects |= {**kernels, "graph": _captured(cuda, kernels["in_place"]), "kept": kept, "handle": kept.pool()}
    return Side({"cuda": cuda, "state": cuda.get_rng_state(), **arrays, **objects}, spellings, _nothing, _rest(cuda))


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
    others = {"x": tcuda.xp.empty(1), "gpu": gpu, "domain": nvtx.get_domain(), "ledger": ledger()}
    others["philox"] = PhiloxState(0)
    others |= _kernels(tcuda.xp.add, tcuda.xp.zeros(100))
    others["kept_graph"] = _captured(tcuda, others["in_place"])
    others["graph"] = others["kept_graph"].raw_cuda_graph_exec()
    names = {**own, **others, **handles}
    rest = _rest(tcuda)
    if not ON_CUDA:
        return Side(names, ("below",), _nothing, rest)
    begin, end_of_round = own_allocator(own["cupy"].cuda, own["pool"].malloc, rest)
    return Side(names, ("cupy", "below"), begin, end_of_round)


def _kernels(add: Any, x: Any) -> Kernels:
    """Return what launches 20 small kernels, in place and with an array for each."""

    def in_place() -> None:
        for _ in range(20):
            add(x, 1, out=x)

    def with_arrays() -> None:
        y = x
        for _ in range(20):
            y = add(y, 1)

    return {"in_place": in_place, "with_arrays": with_arrays}


def _captured(cuda: Any, function: Callable[[], None]) -> Any:
    function()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        function()
    return graph


def _cupy() -> dict[str, Any]:
    import cupy
    import pynvml
    from cupy.cuda import Device, MemoryPool, Stream, get_current_stream
    from cupy.cuda import runtime as cupy_runtime

    return {
        "cupy": cupy,
        "runtime": cupy_runtime,
        "nvml": pynvml,
        "Device": Device,
        "Stream": Stream,
        "get_current_stream": get_current_stream,
        "pool": MemoryPool(),
        "random": cupy.random.RandomState(0),
        "s": Stream(non_blocking=True),
    }


def _emulated() -> dict[str, Any]:
    tcuda.init()
    in_use = runtime()
    return {
        "runtime": in_use,
        "backend": backend_of(in_use),
        "nvml": in_use.nvml(),
        "s": tcuda.Stream(),
        "random": numpy.random.RandomState(0),
    }


def own_allocator(
    cupy_cuda: Any, allocator: Callable[[int], Any], rest: Callable[[], None]
) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return ``begin`` and ``rest`` of a side between which CuPy's arrays come from ``allocator``.

    By ``set_allocator``, as the ledger was set: CuPy takes another path where ``using_allocator`` was ever entered.
    """
    found = cupy_cuda.get_allocator()  # that of the ledger, since tcuda is initialised

    def begin() -> None:
        cupy_cuda.set_allocator(allocator)

    def rest_with_allocator_as_found() -> None:
        cupy_cuda.set_allocator(found)
        rest()

    return begin, rest_with_allocator_as_found


def _nothing() -> None:
    pass


def _rest(cuda: Any) -> Callable[[], None]:
    def rest() -> None:
        cuda.set_stream(cuda.default_stream())
        cuda.synchronize()

    return rest
