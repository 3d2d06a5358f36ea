"""Kernels that are written in Python (``cupyx.jit.rawkernel``)."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tcuda.emulation.cupyx.jit.translator import Program, name_of
from tcuda.emulation.cupyx.jit.types import dtype_of_number
from tcuda.emulation.cupyx.jit.values import Code, Scope, Value, code_of
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.kernels.parts import generated_source
from tcuda.emulation.kernels.parts.array_layouts import Layout, layout_of
from tcuda.emulation.kernels.raw_module import RawModule
from tcuda.emulation.names.experimental import experimental

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcuda.emulation.kernels.raw_kernel import RawKernel as LaunchedKernel

_MODES = ("cuda", "numpy")


class RawKernel:
    """A kernel that is written in Python, as ``cupyx.jit.rawkernel()`` makes one.

    The first call with arguments of new types translates the function into CUDA C++. The source is compiled and
    launched like the source of any other kernel.

    Args:
        function: The function in Python.
        mode: The rules for the types of numbers.
        device: Whether only kernels can call the function.
    """

    def __init__(self, function: Callable[..., Any], mode: str, device: bool) -> None:
        self._function = function
        self._mode = mode
        self._device = device
        self._modules: dict[tuple[generated_source.Form, ...], RawModule] = {}
        self._kernels: dict[tuple[generated_source.Form, ...], LaunchedKernel] = {}

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: Sequence[Any],
        shared_mem: int = 0,
        stream: Any = None,
    ) -> None:
        """Launch the kernel on the current device.

        Args:
            grid: The number of blocks along each axis.
            block: The number of threads of a block along each axis.
            args: The arguments: arrays of the device, numbers of Python and scalars of NumPy.
            shared_mem: The bytes of dynamic shared memory of a block.
            stream: The stream; the current stream if None.

        Raises:
            CUDADriverError: The launch is beyond the limits (1), or the kernel fails.
            CompileException: The C++ compiler refuses the kernel.
            Exception: The function uses something that kernels do not have. The message has the line.
            TypeError: An argument is no array and no number.
        """
        values = [self._operand(arg) for arg in args]
        forms = tuple(map(generated_source.form_of, values))
        function = self._kernels.get(forms)
        if function is None:
            module = self._modules.get(forms)
            if module is None:
                program = Program(self._mode)
                source = program.kernel(self._function, forms)
                made = RawModule(code=source, enable_cooperative_groups=program.cooperative)
                module = self._modules.setdefault(forms, made)
            kernel = module.get_function(name_of(self._function))
            function = self._kernels.setdefault(forms, kernel)
        function(grid, block, generated_source.arguments_of(values, []), shared_mem=shared_mem, stream=stream)

    def __getitem__(self, grid_and_block: tuple[Any, Any]) -> Callable[..., None]:
        """Return a function that launches the kernel, as Numba's kernels do: ``kernel[grid, block](x, y)``."""
        grid, block = (size if isinstance(size, tuple) else (size, 1, 1) for size in grid_and_block)
        return lambda *args, **kwargs: self(grid, block, args, **kwargs)

    def translate_call(self, scope: Scope, *args: Value) -> Value:
        """Return the expression of a call in a kernel.

        Raises:
            TypeError: The function is a kernel.
        """
        if not self._device:
            raise TypeError(
                f"Calling __global__ function {self._function.__name__} from __global__ function is not allowed. Give "
                "the function the decorator cupyx.jit.rawkernel(device=True)."
            )
        codes = [code_of(arg, scope.mode) for arg in args]
        name, result = scope.add_function(self._function, tuple(code.type for code in codes))
        return Code(f"{name}({', '.join(code.text for code in codes)})", result)

    def _operand(self, arg: Any) -> Layout | np.generic:
        if isinstance(arg, Strided):
            return layout_of(arg)
        if isinstance(arg, (bool, int, float, complex, np.generic)):
            typed = np.empty((), dtype_of_number(arg, self._mode))
            typed[()] = arg
            return cast("np.generic", typed[()])
        raise TypeError(f"{type(arg)} is not supported for RawKernel")

    @property
    def cached_codes(self) -> dict[tuple[generated_source.Form, ...], str]:
        """The source in CUDA C++ for each combination of types of arguments, for looking at."""
        if not self._modules:
            warnings.warn(
                "No codes are cached because compilation is deferred until the first function call.", stacklevel=2
            )
        return {forms: module.code for forms, module in self._modules.items()}

    @property
    def cached_code(self) -> str:
        """The source of the first call."""
        if len(self._modules) > 1:
            warnings.warn(
                "The input types of the kernel could not be inferred. Please use `.cached_codes` instead.", stacklevel=2
            )
        return next(iter(self._modules.values())).code


def rawkernel(*, mode: str = "cuda", device: bool = False) -> Callable[[Callable[..., Any]], RawKernel]:
    """Return a decorator that makes a kernel of a function in Python.

    Args:
        mode: The rules for the types of numbers: ``"cuda"``, where ``1`` is an int32 and ``1.0`` a float32, or
            ``"numpy"``.
        device: Whether only kernels can call the function.

    Raises:
        ValueError: ``mode`` is another text.
    """
    experimental("cupyx.jit.rawkernel", stacklevel=3)
    if mode not in _MODES:
        raise ValueError(f"mode is 'cuda' or 'numpy', not {mode!r}.")

    def decorate(function: Callable[..., Any]) -> RawKernel:
        kernel = RawKernel(function, mode, device)
        functools.update_wrapper(kernel, function)
        return kernel

    return decorate
