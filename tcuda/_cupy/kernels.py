"""Kernels that are compiled at run time and that the core launches."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import cupy
from cupy._core import core
from cupy.cuda import function as cupy_functions
from cupy_backends.cuda.api import driver
from cupy_backends.cuda.stream import __pyx_capi__ as stream_functions

from tcuda import _core
from tcuda._base.arguments import integer
from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda._cupy import loaded_kernels, nvrtc
from tcuda._cupy.arrays import array_addresses
from tcuda._cupy.loaded_kernels import LoadedSource
from tcuda._process.lazy import cuda

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_WITHOUT_ASKING = 48 << 10
"""The bytes of dynamic shared memory that every kernel may use; CUDA wants an attribute for more."""

_MOST_ATTEMPTS = 3
"""The most attempts at a launch. The first two failures may come from a missing context and from a missing function."""

_lock = threading.RLock()
_modules: dict[tuple[str, str, tuple[str, ...]], list[_Module]] = {}


def compile_kernel(source: str, name: str, arch: str | None, options: Sequence[str]) -> _core.KernelFunction:
    """Return the kernel ``name`` of ``source``, which is loaded on the current device."""
    key = source, nvrtc.architecture(cupy.cuda.Device().compute_capability, arch), tuple(options)
    with _lock:
        modules = _modules.setdefault(key, [])
        module = next((known for known in modules if name in known.image.entries), None)
        if module is None:
            module = _Module(nvrtc.compiled(source, name, *key[1:]), source, key[2])
            modules.append(module)
    return _Kernel(module, name).function


def _make_context() -> None:
    """Make the context of the current device current, which a new thread may lack."""
    if not driver.ctxGetCurrent():
        cuda.free(0)


class _Module:
    """A compiled source on the devices on which the source is loaded.

    A module is never unloaded, as in torch, because graphs and work in progress may use the kernels.
    """

    def __init__(self, image: nvrtc.Image, source: str, options: tuple[str, ...]) -> None:
        self.image = image
        self._source = source, options
        self._loaded: dict[int, Any] = {}  # CuPy's modules, by device

    def function(self, name: str, device: int, *, again: bool = False) -> Any:
        """Return CuPy's function for the kernel ``name`` on ``device``, which is current; ``again`` loads anew."""
        with _lock:
            if again or device not in self._loaded:
                module = cupy_functions.Module()
                try:
                    module.load(self.image.code)
                except cupy.cuda.driver.CUDADriverError as error:
                    raise AcceleratorError(error.status, f"cuModuleLoadData({name})") from error
                self._note(module.ptr)
                if device in self._loaded:
                    _kept.append(self._loaded[device])
                self._loaded[device] = module
            return self._loaded[device].get_function(self.image.entries[name].symbol)

    def _note(self, handle: int) -> None:
        """Note the source for race detectors, which read PTX; PTX that was loaded they see anyway."""
        if self.image.code.startswith(b"\x7fELF"):
            source, options = self._source
            every = core.assemble_cupy_compiler_options(options)
            names = tuple(self.image.entries)
            loaded_kernels.note(handle, LoadedSource(source, every, name_expressions=names, by_core=True))


_kept: list[Any] = []  # modules of other contexts of a device, of which the core has functions


class _Kernel:
    """A kernel, and the repair of launches that fail."""

    def __init__(self, module: _Module, name: str) -> None:
        self._module = module
        self._name = name
        self._functions: dict[int, Any] = {}  # CuPy's functions, by device
        self._launcher = _core.KernelLauncher()
        parameters = _core.KernelParameters(module.image.entries[name].parameters, array_addresses())
        self.function = _core.cuda_kernel(
            name,
            parameters,
            self._launcher,
            stream_functions["get_current_stream_ptr"],
            self._repair,
            self.set_shared_memory_config,
        )
        self._add(cuda.getDevice())

    def set_shared_memory_config(self, shared_mem_bytes: int) -> None:
        """Allow launches on the current device to ask for ``shared_mem_bytes`` bytes of dynamic shared memory.

        A program need not call this method: a launch that asks for more shared memory than is allowed calls the method.

        Raises:
            TypeError: ``shared_mem_bytes`` is not an integer.
            ValueError: ``shared_mem_bytes`` is negative.
            RuntimeError: The device has less shared memory. The message has the limit.
        """
        size = integer(shared_mem_bytes, "shared_mem_bytes", 0, (1 << 31) - 1)
        if size < _MOST_WITHOUT_ASKING:
            return
        device = cuda.getDevice()
        function = self._functions.get(device) or self._add(device)
        static = driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function.ptr)
        limit = cuda.getDeviceProperties(device)["sharedMemPerBlockOptin"] - static
        if size > limit:
            raise RuntimeError(
                f"Requested shared memory ({size} bytes) exceeds the limit of cuda:{device} for the kernel "
                f"{self._name} ({limit} bytes of dynamic shared memory beside {static} bytes of static shared memory)."
            )
        driver.funcSetAttribute(function.ptr, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, size)

    def _add(self, device: int, *, again: bool = False) -> Any:
        _make_context()
        function = self._module.function(self._name, device, again=again)
        self._functions[device] = function
        self._launcher.add(function.ptr, device)
        return function

    def _repair(
        self, status: int, attempt: int, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int
    ) -> None:
        """Remove the cause of a failed launch, or raise an error."""
        if attempt < _MOST_ATTEMPTS:
            device = cuda.getDevice()
            if status == Status.DEVICE_UNINITIALIZED:
                if attempt > 0 or device not in self._functions:
                    self._add(device, again=attempt > 0)
                else:
                    _make_context()
                return
            if status == Status.INVALID_VALUE and shared > self._allowed(device):
                self.set_shared_memory_config(shared)
                return
        raise AcceleratorError(status, f"cuLaunchKernel({self._name}, grid={grid}, block={block}, shared_mem={shared})")

    def _allowed(self, device: int) -> int:
        """Return the bytes of dynamic shared memory that a launch on ``device`` may ask for now."""
        allowed: int = driver.funcGetAttribute(
            driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, self._functions[device].ptr
        )
        return allowed
