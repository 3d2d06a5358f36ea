"""The sides of a comparison: tcuda, the layer below it, and torch where it can use the GPU.

A side gives values to the names in the statements of ``calls.py``:

* ``stream``, ``s2``, ``event``, ``start`` and ``end`` are objects for tcuda and torch, and handles for the layer below.
* ``s`` is ``stream``, always as an object.
* ``ledger`` is the ledger of tcuda's core, and ``philox`` is the state of a generator of the core.
* ``pool`` is a memory pool of CuPy.
* ``random`` is a generator of CuPy, or of NumPy on emulated devices.
* ``state`` is the state of a generator, as bytes.
* ``in_place`` and ``with_arrays`` launch 20 small kernels, in place and with a new array for each.
* ``axpy``, ``total`` and ``raw_axpy`` are functions of every element of arrays, which ``elementwise.py`` makes.
* ``graph`` is a graph of the kernels of ``in_place``, and a handle of this graph for the layer below.
* ``scale`` is a compiled kernel, and ``floats`` is its array; the layer below has CuPy's ``RawKernel``. Both exist only
  on CUDA.
* ``launch_kernel`` is ``cuLaunchKernel()`` as CuPy has it, for the same kernel: ``function`` is the handle of the
  kernel, and ``places`` the address of the addresses of the arguments.
* ``handle`` is a pool that has memory for the arrays of ``with_arrays``.
"""

from __future__ import annotations

import functools
import importlib.util
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
import pytest
from chosen_runtime import ON_CUDA
from elementwise import compiled, jitted

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

_SCALE = """
extern "C" __global__ void scale(float *x, double by) { x[blockIdx.x * blockDim.x + threadIdx.x] *= by; }
"""
_POOL = 32  # streams that tcuda and torch hand out in turn


class Side(NamedTuple):
    """One side.

    Attributes:
        names: The values of the names in the statements.
        spellings: The fields of :class:`Call` that can have the statement of this side, the preferred field first.
        begin: Called before a round: sets the allocator of CuPy that this side measures.
        rest: Called after a round: undoes ``begin``, makes the default stream current, and waits for the device.
    """

    names: dict[str, Any]
    spellings: tuple[str, ...]
    begin: Callable[[], None]
    rest: Callable[[], None]

    def statement(self, call: Call) -> str:
        """Return the statement of this side for ``call``."""
        statement: str = next(filter(None, (getattr(call, spelling) for spelling in self.spellings)))
        return statement

    def state(self, call: Call) -> State:
        """Return the state in which this side is measured for ``call``."""
        return call.state_below if "below" in self.spellings else call.state


def _present() -> tuple[str, ...]:
    if ON_CUDA and importlib.util.find_spec("torch"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # The import of torch may warn, for reasons outside of this repository.
            import torch

            if torch.cuda.is_available():
                return "tcuda", "below", "torch"
    return "tcuda", "below"


SIDES = _present()
"""The sides that can be measured on this machine."""


@functools.cache
def side(name: str) -> Side:
    """Return the side ``name``, after the device has become idle."""
    made = {"tcuda": _tcuda, "below": _below, "torch": _torch}[name]()
    made.rest()
    return made


def _tcuda() -> Side:
    kernels = _kernels(tcuda.xp.add, tcuda.xp.zeros(100))
    functions = jitted(tcuda, _ones)
    if ON_CUDA:
        functions |= {"scale": tcuda._compile_kernel(_SCALE, "scale"), "floats": _floats()}
    return _surface(("surface",), tcuda, tcuda.xp.empty(1), kernels, xp=tcuda.xp, **functions)


def _torch() -> Side:
    import torch

    kernels = _kernels(torch.add, torch.zeros(100, device="cuda"))
    functions = jitted(torch.cuda, functools.partial(torch.ones, device="cuda"))
    functions |= {"scale": _scale_of_torch(torch), "floats": torch.zeros(1000, device="cuda")}
    x = torch.empty(1, device="cuda")
    return _surface(("torch", "surface"), torch.cuda, x, kernels, torch=torch, **functions)


def _floats() -> Any:
    return tcuda.xp.zeros(1000, dtype=tcuda.xp.float32)


def _scale_of_torch(torch: Any) -> Any:
    """Return the kernel that torch compiles, or a stand-in that skips the benchmark where torch cannot compile."""
    from torch.utils import cpp_extension

    cpp_extension.CUDA_HOME = cpp_extension.CUDA_HOME or "/usr"  # torch needs a folder, and the kernel no header
    try:
        return torch.cuda._compile_kernel(_SCALE, "scale")
    except (AttributeError, OSError, RuntimeError) as error:
        reason = f"torch cannot compile a kernel here: {error}"
        return lambda *_: pytest.skip(reason)


def _surface(spellings: tuple[str, ...], cuda: Any, x: Any, kernels: Kernels, **arrays: Any) -> Side:
    stream, s2, *_ = [cuda.Stream() for _ in range(_POOL)]  # The whole pool, so that no measured call creates a stream.
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
    others |= compiled(tcuda.xp, _ones)
    others |= _kernels(tcuda.xp.add, tcuda.xp.zeros(100))
    others["kept_graph"] = _captured(tcuda, others["in_place"])
    others["graph"] = others["kept_graph"].raw_cuda_graph_exec()
    names = {**own, **others, **handles}
    rest = _rest(tcuda)
    if not ON_CUDA:
        return Side(names, ("below",), _nothing, rest)
    begin, end_of_round = own_allocator(own["cupy"].cuda, own["pool"].malloc, rest)
    return Side(names, ("cupy", "below"), begin, end_of_round)


def _ones(shape: Any) -> Any:
    return tcuda.xp.ones(shape, tcuda.xp.float32)


def _kernels(add: Any, x: Any) -> Kernels:
    """Return functions that launch 20 small kernels, in place and with a new array for each."""

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

    scale, floats = cupy.RawKernel(_SCALE, "scale"), _floats()
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
        "scale": scale,
        "floats": floats,
        **_driver_launch(scale, floats),
    }


def _driver_launch(kernel: Any, floats: Any) -> dict[str, Any]:
    """Return the launch of ``kernel`` by the driver, and what the launch needs."""
    from cupy_backends.cuda.api import driver

    values = numpy.array([floats.data.ptr], numpy.uint64), numpy.array([0.5])
    places = numpy.array([value.ctypes.data for value in values], numpy.uint64)
    arguments = {"function": kernel.kernel.ptr, "places": places.ctypes.data, "kept_arguments": (values, places)}
    return {"launch_kernel": driver.launchKernel, **arguments}


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
    """Return ``begin`` and ``rest`` of a side, between which CuPy's arrays come from ``allocator``.

    ``set_allocator`` sets the allocator, as tcuda does for the ledger. After a first use of ``using_allocator``, CuPy
    would take another path for every array.
    """
    found = cupy_cuda.get_allocator()  # The allocator of the ledger, because tcuda is initialised.

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
