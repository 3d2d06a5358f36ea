"""CuPy on a machine without a device: the calls of the driver and the runtime do nothing.

The modules of CuPy take each other's C functions from the dictionaries ``__pyx_capi__`` when they are imported. So the
functions that need a device are replaced there before the other modules are imported. CuPy then generates its kernels,
compiles them, and makes the parameters of launches as with a device.
"""

from __future__ import annotations

import ctypes
import importlib
import itertools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_TYPES = {
    "int": ctypes.c_int,
    "unsigned int": ctypes.c_uint,
    "intptr_t": ctypes.c_ssize_t,
    "size_t": ctypes.c_size_t,
    "PyObject *": ctypes.py_object,
    "CUdevice": ctypes.c_int,
}
_kept: list[Any] = []
_ATTRIBUTES = {75: 9, 76: 0}  # the compute capability
_PROPERTIES = {"warpSize": 32, "multiProcessorCount": 100, "maxThreadsPerBlock": 1024, "sharedMemPerBlock": 49152}


class WithoutDevice:
    """What CuPy has asked of the driver.

    Attributes:
        images: The loaded modules by handle: their images.
        functions: The functions by handle: the handle of the module, and the name.
        launched: The functions that were launched.
        on_launch: A function that is called at each launch with the function and the address of the addresses of its
            parameters; None for no function.
    """

    def __init__(self) -> None:
        self.images: dict[int, Any] = {}
        self.functions: dict[int, tuple[int, str]] = {}
        self.launched: list[int] = []
        self.on_launch: Callable[[int, int], object] | None = None
        self._handles = itertools.count(0x7000_0000, 0x100)
        self._addresses = itertools.count(0x10_0000_0000, 0x100_0000)

    def load(self, image: Any, *_: Any) -> int:
        """Return the handle of a new module."""
        handle = next(self._handles)
        self.images[handle] = image
        return handle

    def function(self, module: int, name: str, *_: Any) -> int:
        """Return the handle of a new function."""
        handle = next(self._handles)
        self.functions[handle] = module, name
        return handle

    def launch(self, function: int, *rest: Any) -> None:
        """Note a launch."""
        self.launched.append(function)
        if self.on_launch is not None:
            self.on_launch(function, rest[8])

    def unload(self, module: int, *_: Any) -> None:
        """Forget a module."""
        self.images.pop(module, None)

    def allocate(self, cupy: Any, size: int) -> Any:
        """Return memory that nobody may touch."""
        memory = cupy.cuda.UnownedMemory(next(self._addresses), max(size, 1), None, 0)
        return cupy.cuda.MemoryPointer(memory, 0)


def without_device() -> WithoutDevice:
    """Replace the functions that need a device; CuPy must not have been imported."""
    made = WithoutDevice()
    runtime = importlib.import_module("cupy_backends.cuda.api.runtime")
    driver = importlib.import_module("cupy_backends.cuda.api.driver")
    for name in ("_ensure_context", "memsetAsync", "memcpyAsync", "memcpy", "streamSynchronize", "setDevice"):
        _replace(runtime, name, lambda *_: None)
    _replace(runtime, "getDevice", lambda *_: 0)
    _replace(runtime, "getDeviceCount", lambda *_: 1)
    _replace(runtime, "deviceGetAttribute", lambda attribute, *_: _ATTRIBUTES.get(attribute, 1024))
    _replace(runtime, "getDeviceProperties", lambda *_: _PROPERTIES)
    _replace(driver, "moduleLoadData", made.load)
    _replace(driver, "moduleLoad", made.load)
    _replace(driver, "moduleGetFunction", made.function)
    _replace(driver, "moduleUnload", made.unload)
    _replace(driver, "launchKernel", made.launch)
    _replace(driver, "launchCooperativeKernel", made.launch)
    _replace(driver, "ctxGetCurrent", lambda *_: 1)
    _replace(driver, "funcGetAttribute", lambda *_: 32)
    _replace(driver, "occupancyMaxActiveBlocksPerMultiprocessor", lambda *_: 4)
    import cupy

    cupy.cuda.set_allocator(lambda size: made.allocate(cupy, size))
    return made


def _replace(owner: Any, name: str, call: Callable[..., Any]) -> None:
    """Replace a function of a module of CuPy, for compiled code and for Python."""
    capsules = owner.__pyx_capi__
    signature = _name(capsules[name])
    result, _, arguments = signature.decode().partition("(")
    words = (word.strip().removesuffix("__pyx_skip_dispatch").strip() for word in arguments.rstrip(")").split(","))
    types = [_TYPES.get(word, ctypes.c_void_p) for word in words if word != "void"]
    function = ctypes.PYFUNCTYPE(_TYPES[result.strip()], *types)(call)
    _kept.extend((function, signature, capsules[name]))
    capsules[name] = _new(ctypes.cast(function, ctypes.c_void_p).value, signature, None)
    if hasattr(owner, name):
        setattr(owner, name, call)
