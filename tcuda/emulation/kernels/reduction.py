"""Reduction kernels, whose expressions are written in CUDA C++."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from numpy.exceptions import AxisError

from tcuda.emulation.kernels.parts import call_arguments, generated_source
from tcuda.emulation.kernels.parts.array_layouts import Layout, layout_of, reduce_axes
from tcuda.emulation.kernels.parts.type_inference import types_of
from tcuda.emulation.kernels.parts.user_kernel import UserKernel
from tcuda.emulation.rtc import headers
from tcuda.emulation.work import numpy_work

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from tcuda.emulation.devices.strided import Strided

_BLOCK = 512
_LONGEST = 0x7FFFFFFF
_KEYWORDS = ("out", "axis", "keepdims", "stream")


class ReductionKernel(UserKernel):
    """A kernel that reduces arrays along axes by expressions in CUDA C++, as ``cupy.ReductionKernel``.

    Each element is mapped by ``map_expr``. Pairs of mapped values are combined by ``reduce_expr``, in an order that
    depends on the shapes only, until one value is left, from which ``post_map_expr`` makes the output.

    Args:
        in_params: The inputs, such as ``"T x, T y"``. A type of one character is a placeholder.
        out_params: The outputs.
        map_expr: The value for an element; the inputs are the elements.
        reduce_expr: The combination of two values ``a`` and ``b``.
        post_map_expr: The expression that assigns to the output; ``a`` is the reduced value.
        identity: The value with which the reduction starts; None for the default value of the type.
        name: The name of the kernel.
        reduce_type: The type of the values; that of the first output if None.
        reduce_dims: Whether axes are joined where that changes no element.
        preamble: Declarations before the kernel.
        options: The options of the compiler.

    Attributes:
        in_params: The parameters of the inputs.
        out_params: The parameters of the outputs.
        nin: The number of inputs.
        nout: The number of outputs.
        nargs: The number of inputs and outputs.
        params: None, as in CuPy, which declares the attribute and does not set it.

    Raises:
        ValueError: ``name`` is not an identifier.
        TypeError: A string of parameters is no string, or names an unknown type.
        Exception: A string of parameters is malformed.
    """

    __module__ = "tcuda.emulation.xp"  # where users find the class

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: Any,
        name: str = "reduce_kernel",
        reduce_type: str | None = None,
        reduce_dims: bool = True,
        preamble: str = "",
        options: tuple[str, ...] = (),
    ) -> None:
        super().__init__(name, in_params, out_params)
        self.params = None
        self.map_expr = map_expr
        self.reduce_expr = reduce_expr
        self.post_map_expr = post_map_expr
        self.identity = "" if identity is None else str(identity)
        self.reduce_type = self.out_params[0].ctype if reduce_type is None else reduce_type
        self.reduce_dims = reduce_dims
        self.preamble = preamble
        self.options = options

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel on the current device.

        Args:
            args: The inputs, which are arrays and scalars, and then the outputs, if any.
            kwargs: ``out``, the output; ``axis``, the axis or the axes to reduce (all); ``keepdims``, whether the
                reduced axes stay with length 1; ``stream``, any object with ``ptr`` (the current stream).

        Returns:
            The first output.

        Raises:
            TypeError: An argument has a wrong type, or the number of arguments is wrong.
            ValueError: Shapes or axes do not fit, an array is on another device or structured, or there is nothing to
                reduce and no identity.
            AxisError: The arrays have no such axis.
            KeyError: No array tells the type of a placeholder.
            OverflowError: A scalar does not fit into the type of its parameter.
            NotImplementedError: An array is raw, and the axes to reduce are not the first axes.

        Example:
            >>> total = xp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
            >>> total(xp.ones((2, 3)), axis=0, keepdims=True)
            array([[2., 2., 2.]])
        """
        out, axis = kwargs.pop("out", None), kwargs.pop("axis", None)
        keepdims, stream = kwargs.pop("keepdims", False), kwargs.pop("stream", None)
        if kwargs:
            raise TypeError(f"Wrong arguments {sorted(kwargs)}; a call takes {', '.join(_KEYWORDS)}")
        if len(args) not in (self.nin, self.nargs):
            raise TypeError(
                f"Wrong number of arguments for {self.name}. It must be either {self.nin} or {self.nargs} (with "
                f"outputs), but given {len(args)}."
            )
        outs = args[self.nin :]
        if out is not None:
            if self.nout != 1:
                raise NotImplementedError(f"out= is for kernels with one output; {self.name} has {self.nout}")
            if outs:
                raise ValueError("cannot specify 'out' as both a positional and keyword argument")
            outs = (out,)
        inputs, given = call_arguments.operands_of(args[: self.nin]), call_arguments.operands_of(outs)
        shape = call_arguments.shape_of(inputs, self.in_params, None)
        types = types_of(
            self.in_params,
            self.out_params,
            [call_arguments.dtype_of(value) for value in inputs],
            [value.dtype for value in given],
        )
        if any(dtype.names is not None for _, dtype in types.placeholders):
            raise ValueError(
                "Unsupported dtype: a ReductionKernel takes no structured array. An ElementwiseKernel does."
            )
        reduced, kept = _split_axes(axis, len(shape))
        values = call_arguments.typed_of(inputs, self.in_params, types.inputs, shape)
        if len(values) == 1 and len(kept) <= 1 and isinstance(values[0], Layout):
            reduced = _by_stride(reduced, values[0])
        lengths = [1 if place in reduced else length for place, length in enumerate(shape)]
        out_shape = tuple(lengths if keepdims else [shape[place] for place in kept])
        outputs, fresh = call_arguments.outputs_of(given, self.out_params, types.outputs, out_shape, False)
        if call_arguments.is_empty(outputs[0].shape):
            return outputs[0]
        try:
            if not self.identity and call_arguments.is_empty(shape):
                raise ValueError(f"zero-size array to reduction operation {self.name} which has no identity")
            in_shape = self._move_reduced_first(values, reduced + kept, shape)
            self._launch(values, in_shape, outputs, out_shape, types.placeholders, stream)
        except BaseException:
            numpy_work.discard(fresh)
            raise
        return outputs[0]

    def _move_reduced_first(self, values: list[Any], axes: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
        if axes == tuple(range(len(shape))):
            return shape
        if any(parameter.raw for parameter in self.in_params):
            raise NotImplementedError("Illegal conditions: raw arrays are reduced along their first axes only")
        for place, value in enumerate(values):
            if isinstance(value, Layout):
                values[place] = value.transposed(axes)
        return tuple(shape[axis] for axis in axes)

    def _launch(
        self,
        values: list[Any],
        in_shape: tuple[int, ...],
        outputs: Sequence[Strided],
        out_shape: tuple[int, ...],
        placeholders: tuple[tuple[str, np.dtype[Any]], ...],
        stream: Any,
    ) -> None:
        length = math.prod(in_shape) // math.prod(out_shape)
        targets: list[Any] = [layout_of(output) for output in outputs]
        if self.reduce_dims:
            in_shape = reduce_axes(values, [parameter.raw for parameter in self.in_params], in_shape)
            out_shape = reduce_axes(targets, [parameter.raw for parameter in self.out_params], out_shape)
        forms = tuple(map(generated_source.form_of, [*values, *targets]))
        loops = (generated_source.loop_of("_in_ind", in_shape), generated_source.loop_of("_out_ind", out_shape))
        key = (forms, loops, placeholders, length > _LONGEST)
        function = self._kernels.find(key)
        if function is None:
            text = source_of(self, forms, loops, placeholders, "long long" if length > _LONGEST else "int")
            arrays = tuple(value.array.dtype.char for value in [*values, *targets] if isinstance(value, Layout))
            function = self._kernels.add(key, arrays, self.name, text, self.options)
        arguments = generated_source.arguments_of([*values, *targets], [in_shape, out_shape])
        function.kernel.linear_launch(math.prod(out_shape), arguments, 0, _BLOCK, stream)


def _split_axes(axis: Any, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes to reduce and the other axes, both sorted.

    Raises:
        AxisError: There is no such axis.
        TypeError: An axis is no integer.
        ValueError: An axis is named twice.
    """
    if axis is None:
        return tuple(range(ndim)), ()
    reduced = []
    for number in map(operator.index, axis if isinstance(axis, (tuple, list)) else (axis,)):
        if not -ndim <= number < ndim:
            raise AxisError(number, ndim)
        reduced.append(number % ndim)
    if len(set(reduced)) < len(reduced):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(reduced)), tuple(place for place in range(ndim) if place not in reduced)


def _by_stride(axes: tuple[int, ...], layout: Layout) -> tuple[int, ...]:
    """Return ``axes`` in the order in which the elements lie in memory, so that the axes can be joined."""
    if layout.c_contiguous:
        return axes
    return tuple(sorted(axes, key=lambda axis: -abs(layout.strides[axis])))


def source_of(
    kernel: ReductionKernel,
    forms: Sequence[generated_source.Form],
    loops: Sequence[generated_source.Loop],
    placeholders: Sequence[tuple[str, np.dtype[Any]]],
    index_type: str,
) -> str:
    """Return the source of ``kernel`` for arguments of the given forms.

    Each thread computes one output. The thread reduces runs of elements, and combines the results of runs in pairs, as
    in a tree, so that sums of floating-point numbers are as exact as those of a block of many threads.

    Args:
        kernel: The kernel.
        forms: The forms of the arguments.
        loops: The forms of the loops over the inputs and over the outputs.
        placeholders: The placeholders with their types.
        index_type: The type that holds the number of an element within a reduction.
    """
    params = kernel.in_params + kernel.out_params
    head = generated_source.head_of(params, forms, loops)
    elements = [
        generated_source.element_of(parameter, "_in_ind" if place < kernel.nin else "_out_ind")
        if form.ndim is not None and not parameter.raw
        else ""
        for place, (parameter, form) in enumerate(zip(params, forms, strict=True))
    ]
    inputs = "\n".join(elements[: kernel.nin])
    outputs = "\n".join(elements[kernel.nin :])
    name = kernel.name
    return f"""{headers.CUPY}{generated_source.includes_of(forms)}\
{generated_source.typedefs_of(placeholders)}typedef {index_type} IndexT;
{generated_source.user_part(kernel.preamble, name, "preamble")}{head.declarations}\
typedef {kernel.reduce_type} _type_reduce;
#define REDUCE(a, b) ({kernel.reduce_expr})
#define POST_MAP(a) ({kernel.post_map_expr})
namespace _kernel {{
extern "C" __global__ void {name}({head.parameters}) {{
{head.variables}
const ptrdiff_t _j_stride = _out_ind.size();
CUPY_FOR(_i, _out_ind.size()) {{
  // The results of runs, which wait for a result of as many runs to be combined with.
  alignas(_type_reduce) char _waiting_raw[64 * sizeof(_type_reduce)];
  _type_reduce *_waiting = reinterpret_cast<_type_reduce *>(_waiting_raw);
  int _levels = 0;
  _type_reduce _s = _type_reduce({kernel.identity});
  IndexT _J = 0;
  for (ptrdiff_t _j = _i; _j < _in_ind.size(); _j += _j_stride, ++_J) {{
    _in_ind.set(_j);
{inputs}
    _type_reduce _a = static_cast<_type_reduce>(
{generated_source.user_part(kernel.map_expr, name, "map_expr")}    );
    _s = REDUCE(_s, _a);
    if ((_J + 1) % 128 == 0) {{
      for (IndexT _runs = _J / 128; _runs % 2 != 0; _runs /= 2) {{
        --_levels;
        _s = REDUCE(_waiting[_levels], _s);
      }}
      _waiting[_levels++] = _s;
      _s = _type_reduce({kernel.identity});
    }}
  }}
  while (_levels > 0) {{
    --_levels;
    _s = REDUCE(_waiting[_levels], _s);
  }}
  _out_ind.set(_i);
{outputs}
  POST_MAP(_s);
}}
}}
}}
"""
