"""Kernels of ``_compile_kernel`` on emulated devices, which the C++ compiler of the machine compiles."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from tcuda import _core
from tcuda._base.arguments import integer
from tcuda._process.lazy import cuda
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.kernels.module import load
from tcuda.emulation.rtc.errors import CompileException
from tcuda.emulation.runtime.launch_limits import MOST_SHARED
from tcuda.kernels._source import untemplated_kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda.emulation.kernels.function import Function
    from tcuda.emulation.kernels.module import Module


def compile_kernel(source: str, name: str, options: Sequence[str]) -> _core.KernelFunction:
    """Return the kernel ``name`` of ``source``.

    Raises:
        RuntimeError: The source cannot be compiled, has no kernel of that name, or the machine has no C++ compiler.
    """
    return _Kernel(source, name, tuple(options)).function


class _Kernel:
    def __init__(self, source: str, name: str, options: tuple[str, ...]) -> None:
        self._source = source
        self._name = name
        self._options = options
        self._functions: dict[int, Function] = {}
        parameters = _core.KernelParameters(self._on_current_device().parameters)
        self.function = _core.python_kernel(name, parameters, self._launch, self.set_shared_memory_config)

    def set_shared_memory_config(self, shared_mem_bytes: int) -> None:
        """Allow launches on the current device to ask for ``shared_mem_bytes`` bytes of dynamic shared memory.

        Raises:
            TypeError: ``shared_mem_bytes`` is not an integer.
            ValueError: ``shared_mem_bytes`` is negative.
            RuntimeError: The device has less shared memory. The message has the limit.
        """
        size = integer(shared_mem_bytes, "shared_mem_bytes", 0, (1 << 31) - 1)
        if size > MOST_SHARED:
            raise RuntimeError(
                f"Requested shared memory ({size} bytes) exceeds the limit of cuda:{cuda.getDevice()} for the kernel "
                f"{self._name} ({MOST_SHARED} bytes of dynamic shared memory)."
            )
        function = self._on_current_device()
        if size > function.max_dynamic_shared_size_bytes:
            function.set_max_dynamic_shared_size_bytes(size)

    def _on_current_device(self) -> Function:
        return self._functions.get(cuda.getDevice()) or self._load()

    def _load(self) -> Function:
        return self._functions.setdefault(cuda.getDevice(), self._module().get_function(self._name))

    def _module(self) -> Module:
        """Return the module with this kernel and, if possible, all others that need no template arguments."""
        names = tuple(untemplated_kernels(self._source))
        if self._name in names and len(names) > 1:
            with contextlib.suppress(CompileException):  # A name may be wrong, such as that of a kernel in #if 0.
                return load(self._source, self._options, names=names)
        try:
            return load(self._source, self._options, names=(self._name,))
        except CompileException as error:
            raise RuntimeError(f"Kernel compilation failed:\n{error}") from error

    def _launch(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        packed: bytes,
        args: tuple[Any, ...],
        shared: int,
        stream: Any,
    ) -> None:
        function = self._on_current_device()
        if shared > function.max_dynamic_shared_size_bytes:
            self.set_shared_memory_config(shared)
        function.launch(grid, block, packed, [array for array in args if isinstance(array, Strided)], shared, stream)
