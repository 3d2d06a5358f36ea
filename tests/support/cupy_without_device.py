"""CuPy on a machine without a device: the calls of the driver and the runtime do nothing, and launches are recorded.

The modules of CuPy take each other's C functions from the dictionaries ``__pyx_capi__`` when they are imported. So the
functions that need a device are replaced there before the other modules are imported.
"""

from __future__ import annotations

import ctypes
import importlib
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_capsule_new = ctypes.pythonapi.PyCapsule_New
_capsule_new.restype, _capsule_new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.restype, _capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_TYPES = {
    "int": ctypes.c_int,
    "unsigned int": ctypes.c_uint,
    "intptr_t": ctypes.c_ssize_t,
    "size_t": ctypes.c_size_t,
    "PyObject *": ctypes.py_object,
    "CUdevice": ctypes.c_int,
}
_kept: list[Any] = []


@dataclass
class Stand:
    """What the replaced functions have seen.

    Attributes:
        sources: The sources, options and backends that CuPy compiled, by the number of the module.
        modules: The modules by the number of a function, and the name of the function.
        launches: The number of the function and the addresses of the parameters of each launch.
        images: The images of the modules.
    """

    modules: dict[int, bytes] = field(default_factory=dict)
    functions: dict[int, tuple[int, str]] = field(default_factory=dict)
    launches: list[tuple[int, int]] = field(default_factory=list)
    on_launch: Callable[[int, int], None] | None = None


def _replace(owner: Any, name: str, call: Callable[..., Any]) -> None:
    capsules = owner.__pyx_capi__
    signature = _capsule_name(capsules[name]).decode()
    result, _, arguments = signature.partition("(")
    words = [word.strip() for word in arguments.rstrip(")").split(",")]
    types = [
        _TYPES.get(word.removesuffix("__pyx_skip_dispatch").strip(), ctypes.c_void_p)
        for word in words
        if word != "void"
    ]
    function = ctypes.PYFUNCTYPE(_TYPES[result.strip()], *types)(call)
    text = signature.encode()
    _kept.extend((function, text, capsules[name]))
    capsules[name] = _capsule_new(ctypes.cast(function, ctypes.c_void_p).value, text, None)
    if hasattr(owner, name):
        setattr(owner, name, call)


def stand_in() -> Stand:
    """Replace the functions, and return what they see. CuPy must not have been imported."""
    stand = Stand()
    runtime = importlib.import_module("cupy_backends.cuda.api.runtime")
    driver = importlib.import_module("cupy_backends.cuda.api.driver")
    numbers = itertools.count(0x7000_0000, 0x100)

    def load(image: Any, *skip: Any) -> int:
        stand.modules[number := next(numbers)] = image
        return number

    def function(module: int, name: str, *skip: Any) -> int:
        stand.functions[number := next(numbers)] = (module, name)
        return number

    def launch(called: int, *rest: Any) -> None:
        stand.launches.append((called, rest[8]))
        if stand.on_launch is not None:
            stand.on_launch(called, rest[8])

    attributes = {75: 9, 76: 0}
    _replace(runtime, "_ensure_context", lambda: None)
    _replace(runtime, "getDevice", lambda *skip: 0)
    _replace(runtime, "getDeviceCount", lambda *skip: 1)
    _replace(runtime, "deviceGetAttribute", lambda attribute, *rest: attributes.get(attribute, 1024))
    _replace(runtime, "memsetAsync", lambda *rest: None)
    _replace(runtime, "memcpyAsync", lambda *rest: None)
    _replace(runtime, "memcpy", lambda *rest: None)
    _replace(runtime, "streamSynchronize", lambda *rest: None)
    _replace(runtime, "driverGetVersion", lambda *rest: 13000)
    _replace(runtime, "runtimeGetVersion", lambda *rest: 13000)
    _replace(
        runtime,
        "getDeviceProperties",
        lambda *rest: {
            "warpSize": 32,
            "multiProcessorCount": 100,
            "maxThreadsPerBlock": 1024,
            "sharedMemPerBlock": 49152,
        },
    )
    _replace(driver, "moduleLoadData", load)
    _replace(driver, "moduleLoad", load)
    _replace(driver, "moduleGetFunction", function)
    _replace(driver, "moduleUnload", lambda module, *skip: stand.modules.pop(module, None))
    _replace(driver, "launchKernel", launch)
    _replace(driver, "launchCooperativeKernel", launch)
    _replace(driver, "ctxGetCurrent", lambda *skip: 1)
    _replace(driver, "funcGetAttribute", lambda *rest: 32)
    _replace(driver, "occupancyMaxActiveBlocksPerMultiprocessor", lambda *rest: 4)
    import cupy

    cupy.cuda.runtime.getDevice = lambda: 0
    addresses = itertools.count(0x10_0000_0000, 0x100_0000)

    def allocate(size: int) -> Any:
        return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(next(addresses), max(size, 1), None, 0), 0)

    cupy.cuda.set_allocator(allocate)
    return stand
