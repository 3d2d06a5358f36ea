"""Elementwise kernels, whose operation on one element is written in CUDA C++."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from tcuda.emulation.kernels.parts import call_arguments, generated_source
from tcuda.emulation.kernels.parts.array_layouts import Layout, reduce_axes
from tcuda.emulation.kernels.parts.parameters import Parameter
from tcuda.emulation.kernels.parts.type_inference import ParameterTypes, types_of
from tcuda.emulation.kernels.parts.user_kernel import UserKernel
from tcuda.emulation.rtc import headers
from tcuda.emulation.work import numpy_work

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from tcuda.emulation.devices.strided import Strided

_DECIDED_BY_ARRAYS = -1


class ElementwiseKernel(UserKernel):
    """A kernel that applies an operation in CUDA C++ to each element, as ``cupy.ElementwiseKernel``.

    The kernel is compiled at the first call with arrays of new types or numbers of axes.

    Args:
        in_params: The inputs, such as ``"T x, raw float32 y"``. A type of one character is a placeholder.
        out_params: The outputs.
        operation: The statements for one element. Each parameter is its element; ``i`` is the number of the element. A
            raw parameter is the whole array. ``_ind.size()`` is the number of elements.
        name: The name of the kernel.
        reduce_dims: Whether axes are joined where that changes no element.
        preamble: Declarations before the kernel.
        no_return: Whether a call returns None.
        return_tuple: Whether a call returns a tuple even for one output.
        kwargs: ``loop_prep`` and ``after_loop``, statements before and after the loop over elements; ``options``, a
            tuple of options of the compiler.

    Attributes:
        in_params: The parameters of the inputs.
        out_params: The parameters of the outputs.
        params: All parameters, and the index.
        nin: The number of inputs.
        nout: The number of outputs.
        nargs: The number of inputs and outputs.

    Raises:
        ValueError: ``name`` is not an identifier, or a parameter is called ``i``.
        TypeError: A string of parameters is no string, or names an unknown type.
        Exception: A string of parameters is malformed.
    """

    __module__ = "tcuda.emulation.xp"  # where users find the class

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        reduce_dims: bool = True,
        preamble: str = "",
        no_return: bool = False,
        return_tuple: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, in_params, out_params)
        self._arguments = self.in_params + self.out_params
        self.params = (*self._arguments, Parameter("_ind", None, "CIndexer", False, False))
        self.operation = operation
        self.reduce_dims = reduce_dims
        self.preamble = preamble
        self.no_return = no_return
        self.return_tuple = return_tuple
        self.kwargs = kwargs
        if any(parameter.name == "i" for parameter in self._arguments):
            raise ValueError("Can not use 'i' as a parameter name, because i is the number of the element")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel on the current device.

        Args:
            args: The inputs, which are arrays and scalars, and then the outputs, if any.
            kwargs: ``size``, the number of elements, if all arrays are raw; ``block_size``, the number of threads of a
                block (128); ``stream``, any object with ``ptr`` (the current stream).

        Returns:
            The output, or a tuple of the outputs; None if the kernel has ``no_return``.

        Raises:
            TypeError: An argument has a wrong type, or the number of arguments is wrong.
            ValueError: Shapes do not fit together, an array is on another device, or ``size`` is missing or not
                allowed.
            KeyError: No array tells the type of a placeholder.
            OverflowError: A scalar does not fit into the type of its parameter.

        Example:
            >>> square = xp.ElementwiseKernel("T x", "T y", "y = x * x", "square")
            >>> x = xp.arange(3.0)
            >>> square(x, x)  # the result goes to the second array
            array([0., 1., 4.])
        """
        size = operator.index(kwargs.pop("size", _DECIDED_BY_ARRAYS))
        stream = kwargs.pop("stream", None)
        block_size = kwargs.pop("block_size", 128)
        if kwargs:
            raise TypeError(f"Wrong arguments {sorted(kwargs)}; a call takes size, block_size and stream")
        if block_size <= 0:
            raise ValueError(f"block_size must be greater than zero; got {block_size}")
        if len(args) not in (self.nin, self.nargs):
            raise TypeError(
                f"Wrong number of arguments for {self.name!r}. It must be either {self.nin} or {self.nargs} (with "
                f"outputs), but given {len(args)}."
            )
        operands = call_arguments.operands_of(args)
        inputs, given = operands[: self.nin], operands[self.nin :]
        sized = size != _DECIDED_BY_ARRAYS
        shape = call_arguments.shape_of(operands, self._arguments, size if sized else None)
        types = types_of(
            self.in_params,
            self.out_params,
            [call_arguments.dtype_of(value) for value in inputs],
            [out.dtype for out in given],
        )
        outputs, fresh = call_arguments.outputs_of(given, self.out_params, types.outputs, shape, sized)
        result = None if self.no_return else outputs[0] if self.nout == 1 and not self.return_tuple else tuple(outputs)
        if call_arguments.is_empty(shape):
            return result
        try:
            self._launch(inputs, outputs, types, shape, block_size, stream)
        except BaseException:
            numpy_work.discard(fresh)
            raise
        return result

    def _launch(
        self,
        inputs: Sequence[call_arguments.Operand],
        outputs: Sequence[Strided],
        types: ParameterTypes,
        shape: tuple[int, ...],
        block_size: int,
        stream: Any,
    ) -> None:
        values = call_arguments.typed_of([*inputs, *outputs], self._arguments, types.inputs + types.outputs, shape)
        if self.reduce_dims:
            shape = reduce_axes(values, [parameter.raw for parameter in self._arguments], shape)
        forms = tuple(map(generated_source.form_of, values))
        loop = generated_source.loop_of("_ind", shape)
        key = (forms, loop, types.placeholders)
        function = self._kernels.find(key)
        if function is None:
            text = source_of(self, forms, loop, types.placeholders, **self.kwargs)
            arrays = tuple(value.array.dtype for value in values if isinstance(value, Layout))
            function = self._kernels.add(key, arrays, self.name, text, self.kwargs.get("options", ()))
        arguments = generated_source.arguments_of(values, [shape])
        function.kernel.linear_launch(math.prod(shape), arguments, 0, block_size, stream)


def source_of(
    kernel: ElementwiseKernel,
    forms: Sequence[generated_source.Form],
    loop: generated_source.Loop,
    placeholders: Sequence[tuple[str, np.dtype[Any]]],
    loop_prep: str = "",
    after_loop: str = "",
    options: tuple[str, ...] = (),
) -> str:
    """Return the source of ``kernel`` for arguments of the given forms.

    Args:
        kernel: The kernel.
        forms: The forms of the arguments.
        loop: The form of the loop.
        placeholders: The placeholders with their types.
        loop_prep: The statements before the loop.
        after_loop: The statements after the loop.
        options: The options of the compiler.

    Raises:
        TypeError: The options of the compiler are no tuple.
    """
    if not isinstance(options, tuple):
        raise TypeError(f"options is a tuple of strings, not {options!r}")
    params = kernel.in_params + kernel.out_params
    head = generated_source.head_of(params, forms, [loop])
    elements = "\n".join(
        generated_source.element_of(parameter, "_ind")
        for parameter, form in zip(params, forms, strict=True)
        if form.ndim is not None and not parameter.raw
    )
    name = kernel.name
    typedefs = generated_source.typedefs_of(placeholders)
    preamble = generated_source.user_part(kernel.preamble, name, "preamble")
    return f"""{headers.CUPY}{generated_source.includes_of(forms)}\
{typedefs}{preamble}{head.declarations}\
namespace _kernel {{
extern "C" __global__ void {name}({head.parameters}) {{
{head.variables}
{generated_source.user_part(loop_prep, name, "loop_prep")};
CUPY_FOR(i, _ind.size()) {{
_ind.set(i);
{elements}
{generated_source.user_part(kernel.operation, name, "operation")};
}}
{generated_source.user_part(after_loop, name, "after_loop")};
}}
}}
"""
