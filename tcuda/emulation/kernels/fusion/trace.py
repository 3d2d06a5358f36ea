"""Traces: the records of the operations of a function, made with placeholders of arrays and scalars."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.kernels.fusion.placeholders import Array, Variable
from tcuda.emulation.kernels.fusion.program import Place, Program, Shape, Step
from tcuda.emulation.kernels.parts.array_layouts import broadcast_shape
from tcuda.emulation.numbers import arithmetic, casts
from tcuda.emulation.numbers.floating_point import quietly
from tcuda.emulation.work.active_trace import tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_PYTHON = (bool, int, float, complex)
_CONSTANTS = (*_PYTHON, np.generic)
_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "all": np.all,
    "amax": np.max,
    "amin": np.min,
    "any": np.any,
    "max": np.max,
    "min": np.min,
    "nanprod": np.nanprod,
    "nansum": np.nansum,
    "prod": np.prod,
    "sum": np.sum,
}
_UNKNOWN = frozenset("GgMmO")
"""The types of NumPy that no kernel knows."""
_WITHOUT_DTYPE = frozenset(["all", "amax", "amin", "any", "max", "min"])


def _rounded(a: Any, decimals: int = 0) -> Any:
    return np.round(a, decimals)


def _real(val: Any) -> Any:
    return np.copy(np.real(val))


def _imag(val: Any) -> Any:
    return np.copy(np.imag(val))


def _copied(a: Any) -> Any:
    return np.copy(a)


_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "angle": np.angle,
    "around": _rounded,
    "clip": arithmetic.clip,
    "copy": _copied,
    "i0": np.i0,
    "imag": _imag,
    "real": _real,
    "round": _rounded,
    "sinc": np.sinc,
}


class SeveralShapes(Exception):
    """The function is more than an elementwise kernel with at most one reduction at its end."""


class FusionTrace:
    """The trace of a function that is fused.

    The function runs with placeholders. Each placeholder has a sample, which is an array with one element or a scalar.
    NumPy tells the types of results from the samples.

    Args:
        one_shape: Whether all arrays have the common shape of the arguments. Then the function has to fit in an
            elementwise kernel with one reduction at its end.

    Attributes:
        program: The recorded operations.
    """

    def __init__(self, one_shape: bool) -> None:
        self.program = Program(one_shape=one_shape)
        self._most_axes = 0

    def trace(self, function: Callable[..., Any], args: Sequence[Any]) -> Program:
        """Run ``function`` with placeholders for ``args``, and return the recorded operations.

        Raises:
            TypeError: The function asks for the value of an element, or calls a function that cannot be fused.
            ValueError: The function returns something other than arrays, or writes to a part of an array.
            NotImplementedError: The function asks for a shape, or uses an index or a reduction that cannot be fused.
            SeveralShapes: ``one_shape`` is true, and the function does not fit in such a kernel.
        """
        self._most_axes = max(arg.ndim for arg in args if isinstance(arg, Strided))
        placeholders: list[Variable | None] = []
        for place, arg in enumerate(args):
            self.program.count = place
            placeholders.append(None if arg is None else self._placeholder(_sample_of(arg), False))
        self.program.count = len(args)
        with tracing(self):
            result = quietly(function, *placeholders)
        self._finish(result)
        return self.program

    def call_ufunc(self, function: np.ufunc, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Record the call of a universal function.

        Raises:
            TypeError: An argument is neither a placeholder nor a scalar, or an option is unknown.
            ValueError: The number of arguments is wrong.
        """
        options = dict(kwargs)
        outs = [out for out in args[function.nin :] if out is not None]
        if options.get("out") is not None:
            if outs:
                raise ValueError("cannot specify 'out' as both a positional and keyword argument")
            outs = [options["out"]]
        options.pop("out", None)
        dtype = options.pop("dtype", None)
        if options:
            raise TypeError(f"Wrong arguments {sorted(options)}; a fused function takes out and dtype")
        inputs = args[: function.nin]
        if len(inputs) != function.nin or len(outs) > function.nout or function.signature is not None:
            raise ValueError(f"invalid number of arguments for {function.__name__}, or a function that is not fused")
        if not all(isinstance(out, Array) for out in outs):
            raise TypeError("return arrays must be of ArrayType")
        if dtype is not None:
            self._require_general()
            options["dtype"] = dtype
        return self._elementwise(function, inputs, outs, options)

    def call_function(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Record the call of another function of the namespace.

        Raises:
            TypeError: The function cannot be fused.
        """
        if name in _REDUCTIONS:
            return self._reduce(name, *args, **kwargs)
        if name == "copyto":
            return self._copy_to(*args, **kwargs)
        if name == "where":
            return self._where(*args, **kwargs)
        if name in _ELEMENTWISE:
            return self._call_elementwise(name, args, kwargs)
        raise TypeError(f"{name}() cannot be fused. Call the function outside of the fused function.")

    def call_method(self, name: str, placeholder: Variable, **kwargs: Any) -> Any:
        """Record a reduction that is called as a method."""
        self._require_general()
        return self._reduce(name, placeholder, **kwargs)

    def cast(self, placeholder: Variable, dtype: np.dtype[Any]) -> Any:
        """Record the conversion of ``placeholder`` to ``dtype``."""
        return self._elementwise(functools.partial(_as_type, dtype=dtype), (placeholder,), (), {})

    def assign(self, target: Array, value: Any) -> None:
        """Record the assignment of ``value`` to all elements of ``target``."""
        places = [self._place(value)]
        np.copyto(target._sample, _sample(value), casting="same_kind")
        self._write(target)
        self._read([value])
        self._record(np.copyto, (Place(target._index), places[0]), {"casting": "same_kind"}, (), broadcast_shape)

    def index(self, placeholder: Array, index: Any) -> Any:
        """Record a view of ``placeholder`` with some axes reversed, added, or reduced to one element.

        Raises:
            IndexError: There are too many indices, or an index is none.
            NotImplementedError: An index is a part of an axis.
        """
        indices = index if isinstance(index, tuple) else (index,)
        for part in indices:
            if isinstance(part, slice):
                if part.start is not None or part.stop is not None or part.step not in (None, 1, -1):
                    raise NotImplementedError(
                        "Only full range ``x[::]`` or reverse ``x[::-1]`` is supported for basic slicing in CuPy "
                        "fusion."
                    )
            elif not (isinstance(part, int) or part is None or part is Ellipsis):
                raise IndexError("Indices must be integers, slices, ellipsis or None in a fused function.")
        sample = placeholder._sample[tuple(0 if isinstance(part, int) else part for part in indices)]
        self._require_general()
        (view,) = self._results([np.asarray(sample)], placeholder._reduced)
        self.program.views[view._index] = self.program.views.get(placeholder._index, placeholder._index)

        def shape_of(shapes: Sequence[Shape]) -> Shape:
            return np.broadcast_to(np.empty(()), shapes[0])[indices].shape

        self._record(operator.getitem, (Place(placeholder._index), indices), {}, (view._index,), shape_of)
        return view

    def _require_general(self) -> None:
        if self.program.one_shape:
            raise SeveralShapes

    def _finish(self, result: Any) -> None:
        program = self.program
        if result is None:
            return
        values = result if isinstance(result, tuple) else (result,)
        for value in values:
            if not isinstance(value, Variable):
                raise ValueError(
                    f"The return value of fused functions must be `None`, an array or a tuple of arrays, not {value!r}."
                )
            if value._reduced != program.reduces:
                self._require_general()
        if not program.one_shape and not all(isinstance(value, Array) for value in values):
            raise ValueError("The return value of fused functions must be `None`, an array or a tuple of arrays.")
        program.returns = "tuple" if isinstance(result, tuple) else "single"
        program.results = [value._index for value in values]
        program.dtypes = [value.dtype for value in values]
        self._read(values)

    def _call_elementwise(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        named = dict(kwargs)
        out = named.pop("out", None)
        if name == "copy" and named.pop("order", "K") != "K":
            raise NotImplementedError("cupy.copy does not support `order` in fusion yet.")
        values = list(args)
        for parameter in ("a", "x", "z", "val", "a_min", "a_max", "decimals"):
            if parameter in named:
                values.append(named.pop(parameter))
        if named:
            raise TypeError(f"Wrong arguments {sorted(named)} for {name}()")
        if out is not None:
            raise TypeError(f"{name}() takes no output in a fused function")
        if any(value is None for value in values):
            raise TypeError(f"Unsupported type {type(None)}")
        return self._elementwise(_ELEMENTWISE[name], values, (), {})

    def _copy_to(self, dst: Any, src: Any, casting: str = "same_kind", where: Any = None) -> None:
        if not isinstance(dst, Array) or casting != "same_kind" or where is not None:
            raise TypeError("copyto() takes an array and a value only in a fused function")
        self.assign(dst, src)

    def _where(self, condition: Any, x: Any = None, y: Any = None) -> Any:
        if _sample_dtype(condition) != np.bool_:
            raise TypeError("The condition of where() must have dtype bool in a fused function.")
        return self._elementwise(np.where, (condition, x, y), (), {})

    def _reduce(
        self, name: str, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        if keepdims:
            raise NotImplementedError(f"cupy.{name} does not support `keepdims` in fusion yet.")
        if not isinstance(a, Array):
            raise NotImplementedError("Reduction for scalar arguments is not supported.")
        if out is not None or (dtype is not None and name in _WITHOUT_DTYPE):
            raise TypeError(f"{name}() takes an axis only in a fused function")
        if self.program.reduces:
            self._require_general()
        self.program.reduces = True
        axes = tuple(axis) if isinstance(axis, list) else axis
        options = {"axis": axes}
        if dtype is not None:  # With one shape, CuPy keeps the type of the elements, whatever the type asked for.
            options["dtype"] = a.dtype if self.program.one_shape else dtype
        widened = self.program.one_shape
        sample = np.broadcast_to(a._sample, (1,) * self._most_axes) if widened else a._sample
        reduced = np.asarray(_REDUCTIONS[name](sample, **options))
        (result,) = self._results([reduced], True)
        self._read([a])

        def shape_of(shapes: Sequence[Shape]) -> Shape:
            dropped = range(len(shapes[0])) if axes is None else axes if isinstance(axes, tuple) else (axes,)
            places = {place % max(len(shapes[0]), 1) for place in dropped}
            return tuple(length for place, length in enumerate(shapes[0]) if place not in places)

        self._record(_REDUCTIONS[name], (Place(a._index),), options, (result._index,), shape_of, widened=widened)
        return result

    def _elementwise(
        self, function: Callable[..., Any], inputs: Sequence[Any], outs: Sequence[Any], options: dict[str, Any]
    ) -> Any:
        placeholders = [value for value in (*inputs, *outs) if isinstance(value, Variable)]
        reduced = any(placeholder._reduced for placeholder in placeholders)
        if reduced and not all(placeholder._reduced for placeholder in placeholders):
            self._require_general()
        places = [self._place(value) for value in (*inputs, *outs)]
        samples = [_sample(value) for value in (*inputs, *outs)]
        if isinstance(function, np.ufunc):
            if outs:
                function = functools.partial(_into, function)
            elif self.program.one_shape and any(type(sample) in _PYTHON for sample in samples):
                function = functools.partial(_with_types, function, _loop_of(function, samples))
            else:
                function = arithmetic.of_device(function)
        made = function(*samples, **options)
        is_array = any(isinstance(placeholder, Array) for placeholder in placeholders)
        fresh = [
            np.asarray(sample) if is_array else sample for sample in (made if isinstance(made, tuple) else (made,))
        ]
        results = self._results(fresh, reduced)
        for out in outs:
            self._write(out)
        self._read(inputs)
        indices = tuple(placeholder._index for placeholder in results)
        self._record(function, tuple(places), options, indices, broadcast_shape, is_array=is_array)
        every = [*outs, *results]
        return every[0] if len(every) == 1 else tuple(every)

    def _record(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        results: tuple[int, ...],
        shape_of: Callable[[Sequence[Shape]], Shape],
        *,
        widened: bool = False,
        is_array: bool = True,
    ) -> None:
        self.program.steps.append(Step(function, args, kwargs, results, shape_of, widened, is_array))

    def _read(self, values: Iterable[Any]) -> None:
        self.program.read.update(value._index for value in values if isinstance(value, Variable))

    def _write(self, target: Array) -> None:
        self.program.written.add(target._index)

    def _results(self, samples: Sequence[Any], reduced: bool) -> list[Any]:
        return [self._placeholder(sample, reduced) for sample in samples]

    def _placeholder(self, sample: Any, reduced: bool) -> Variable:
        kind = Array if isinstance(sample, np.ndarray) else Variable
        placeholder = kind(self, self.program.count, sample, reduced)
        self.program.count += 1
        return placeholder

    def _place(self, value: Any) -> Any:
        """Return the place of a placeholder, or a constant.

        Raises:
            TypeError: ``value`` is neither a placeholder nor a scalar.
        """
        if isinstance(value, Variable):
            return Place(value._index)
        if isinstance(value, _CONSTANTS):
            return value
        if isinstance(value, (Strided, np.ndarray)):
            raise TypeError("Concrete ndarray is not supported in fusion. Pass the array as an argument.")
        raise TypeError(f"{type(value)} type is not supported in a fused function")


def _as_type(value: Any, dtype: np.dtype[Any]) -> Any:
    cast = casts.fitting(np.asarray(value), dtype).astype(dtype, copy=False)
    return cast if isinstance(value, np.ndarray) else cast[()]


def _loop_of(function: np.ufunc, samples: Sequence[Any]) -> str:
    """Return the types with which CuPy computes functions of one shape: the first types that hold arrays and scalars.

    A scalar of Python needs a type of its kind only. So int8 and 2.5 make float16, and 3 alone is an int8.

    Raises:
        TypeError: The function takes no such arguments.
    """
    for loop in function.types:
        types = loop.partition("->")[0]
        if _UNKNOWN.isdisjoint(types) and all(
            _holds(np.dtype(kind), sample) for kind, sample in zip(types, samples, strict=True)
        ):
            return str(types)
    raise TypeError(f"Invalid type cast in {function.__name__!r}: {samples}")


def _holds(dtype: np.dtype[Any], sample: Any) -> bool:
    if type(sample) in _PYTHON:
        return bool(np.result_type(type(sample)(), dtype) == dtype)
    return np.can_cast(sample.dtype, dtype)


def _with_types(function: np.ufunc, types: str, /, *args: Any, **options: Any) -> Any:
    typed = [np.asarray(arg).astype(kind, copy=False)[()] for arg, kind in zip(args, types, strict=True)]
    return arithmetic.of_device(function)(*typed, **options)


def _into(function: np.ufunc, /, *args: Any, **options: Any) -> tuple[Any, ...]:
    """Call ``function`` with outputs after its inputs, and return the outputs that were not given."""
    outs = args[function.nin :]
    compute = arithmetic.of_device(function)
    made = compute(*args[: function.nin], out=outs + (None,) * (function.nout - len(outs)), **options)
    return made[len(outs) :] if isinstance(made, tuple) else ()


def _sample(value: Any) -> Any:
    return value._sample if isinstance(value, Variable) else value


def _sample_dtype(value: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.asarray(_sample(value)).dtype
    return dtype


def _sample_of(argument: Any) -> Any:
    if isinstance(argument, Strided):
        return np.ones((1,) * argument.ndim, argument.dtype)
    return type(argument)(1) if not isinstance(argument, np.generic) else np.ones((), argument.dtype)[()]
