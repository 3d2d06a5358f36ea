"""Fused functions, whose operations on arrays run as one kernel."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.kernels.fusion.trace import FusionTrace
from tcuda.emulation.kernels.names import is_valid_kernel_name
from tcuda.emulation.kernels.parts.array_layouts import broadcast_shape
from tcuda.emulation.rtc.errors import CompileException
from tcuda.emulation.work import active_trace, numpy_work, passed_marks

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda.emulation.kernels.fusion.program import Program

_SCALARS = (bool, int, float, complex, np.generic, type(None))


class Fusion:
    """A fused function, as ``cupy.fuse`` returns. Its operations on arrays of the device run as one kernel.

    The function is run once or twice for each combination of types and numbers of axes, with placeholders of the
    arguments, and its operations are recorded. Without an array of the device among the arguments, the function runs
    as always.

    Args:
        func: The function.
        name: The name of the kernel; that of ``func`` if None.
    """

    def __init__(self, func: Callable[..., Any], name: str | None = None) -> None:
        self.func = func
        self.name = name or func.__name__
        self._programs: dict[tuple[Any, ...], Program] = {}
        self._one_shape = True
        self._of_each_element = functools.wraps(func)(lambda *args: func(*args))
        passed_marks.enter_of_each_element(self._of_each_element)

    def __repr__(self) -> str:
        return f"<Fusion {self.name!r}>"

    def clear_cache(self) -> None:
        """Forget the recorded operations, so that the next call runs the function again."""
        self._programs = {}

    def __call__(self, *args: Any) -> Any:
        """Call the function, with one kernel for all of its operations on arrays.

        Raises:
            CompileException: The name is no name for a kernel, such as the name of a lambda expression.
            TypeError: An argument is neither an array of the device nor a scalar nor None, or the function cannot be
                fused.
            ValueError: An array is not on the current device, or the shapes do not fit together.
        """
        arrays = [arg for arg in args if isinstance(arg, Strided)]
        if active_trace.current() is not None or not arrays:
            return self.func(*args)
        if not all(isinstance(arg, (Strided, *_SCALARS)) for arg in args):
            listed = ", ".join(repr(type(arg)) for arg in args)
            raise TypeError(f"Invalid argument type for {self.name!r}: ({listed})")
        numpy_work.require_current_device(arrays)
        key = tuple((arg.dtype, arg.ndim) if isinstance(arg, Strided) else type(arg) for arg in args)
        program = self._programs.get(key)
        if program is None:
            program = self._programs.setdefault(key, self._traced(args))
        return self._run(program, args, arrays)

    def _traced(self, args: tuple[Any, ...]) -> Program:
        """Return the operations of the function; a function that once needs several shapes stays so, as in CuPy."""
        has_name = is_valid_kernel_name(self.name)
        if self._one_shape and has_name:
            try:
                return FusionTrace(True).trace(self.func, args)
            except Exception:
                self._one_shape = False
        program = FusionTrace(False).trace(self.func, args)
        if not has_name:  # as CuPy, whose compiler refuses the name after the function has run
            message = f"{self.name!r} is no name of a kernel. Give a name: cupy.fuse(kernel_name='fused')(function)."
            raise CompileException(message, "", "kernel.cu", ())
        return program

    def _run(self, program: Program, args: tuple[Any, ...], arrays: list[Strided]) -> Any:
        common = broadcast_shape([array.shape for array in arrays]) if program.one_shape else ()
        shapes = program.shapes(args, common)
        fresh = numpy_work.new_each([(shape, dtype, "C") for shape, dtype in zip(shapes, program.dtypes, strict=True)])
        numpy_work.launch(
            program.run,
            (common, args, tuple(fresh)),
            reads=[array for array in program.among(program.read, args) if isinstance(array, Strided)],
            writes=program.among(program.written, args),
            fresh=fresh,
            flops=len(program.steps) * max((array.size for array in arrays), default=0),
            name=self.name,
            rehearsed=True,
            told=(self._of_each_element if program.one_shape and not program.reduces else self.func, args, {}),
        )
        if program.returns == "none":
            return None
        if program.one_shape and program.reduces:
            return fresh[0]  # CuPy makes a reduction kernel of the function, which returns its first output.
        results = list(fresh)
        if not program.one_shape:
            for place, index in enumerate(program.results):
                if index < len(args):
                    results[place] = args[index]
        return tuple(results) if program.returns == "tuple" else results[0]


def fuse(*args: Any, **kwargs: Any) -> Any:
    """Fuse the operations of a function into one kernel: a decorator, with or without arguments.

    Args:
        args: The function, or the name of the kernel.
        kwargs: ``kernel_name``, the name of the kernel (that of the function).
    """

    def wrapper(function: Callable[..., Any], kernel_name: str | None = None) -> Any:
        return functools.update_wrapper(Fusion(function, kernel_name), function)

    if len(args) == 1 and not kwargs and callable(args[0]):
        return wrapper(args[0])
    return lambda function: wrapper(function, *args, **kwargs)
