"""Universal functions on arrays of emulated devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.arrays.signatures import Setting
from tcuda.emulation.devices import array_interface
from tcuda.emulation.devices.operands import SCALARS
from tcuda.emulation.devices.strided import NUMBERS, Strided, as_plain, shortened, template_among
from tcuda.emulation.names import catalogue
from tcuda.emulation.numbers import arithmetic, casts, flops, structured
from tcuda.emulation.numbers.bfloat16 import is_bfloat16
from tcuda.emulation.numbers.floating_point import quietly
from tcuda.emulation.work import active_trace, creation, indexing, numpy_work, refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_OPTIONS = {"out", "dtype", "casting"}
_OPTIONS_OF_PRODUCTS = _OPTIONS | {"axes", "axis", "keepdims", "order", "signature"}
_UNKNOWN = frozenset("GgMmO")
"""The types of NumPy that no kernel knows."""
_AXIS = Setting("ufunc.reduce", "axis")
_KNOWN = (Strided, *SCALARS)
_OF_NUMPY = (np.ndarray, np.generic)
_LEAST, _BEYOND = -(2**63), 2**64
_OF_BYTES: dict[np.ufunc, Callable[..., Any]] = {np.equal: structured.equal, np.not_equal: structured.not_equal}
"""The functions that compare structured elements, which NumPy does without its universal functions."""
_COMPARING = frozenset([*_OF_BYTES, np.greater, np.greater_equal, np.less, np.less_equal])
_OF_SINGLE = frozenset([np.degrees, np.radians])
"""The functions that NumPy computes in single precision for bfloat16, and whose results are bfloat16 in CuPy."""
_MOST_SIGNED = 2**63 - 1
_WEAK = frozenset([int, float, complex])
"""The types of Python scalars. Such a type, and not the number, decides the type of a result."""


class ufunc:
    """A universal function, like ``cupy.ufunc``, with NumPy's arithmetic and types, on arrays and scalars only.

    Args:
        function: The NumPy function with the same name.

    Attributes:
        nin: The number of inputs.
        nout: The number of outputs.
        nargs: The number of inputs and outputs.
        apply: Applies the function to each element, without options. The arguments are the inputs and then the outputs.
    """

    def __init__(self, function: np.ufunc) -> None:
        self._function = function
        self._compute = arithmetic.of_device(function)
        self.__name__ = self.name = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = "tcuda.emulation.xp"
        self._public_name = function.__name__  # CuPy has other names than NumPy in __name__
        self._options = _OPTIONS if function.signature is None else _OPTIONS_OF_PRODUCTS
        self.nin = function.nin
        self.nout = function.nout
        self.nargs = function.nargs
        self._kinds: dict[tuple[Any, ...], np.dtype[Any]] = {}
        """The type of the result by the types of the inputs, for functions with one result."""
        self.apply = self._apply_any
        if function.signature is None and function.nout == 1 and function.nin <= numpy_work.MOST_INPUTS:
            self.apply = numpy_work.at_once(self._compute, self._apply_any, function.nin, self._kinds)

    @property
    def types(self) -> list[str]:
        """The types of the inputs and of the outputs, as NumPy writes them."""
        return list(dict.fromkeys(loop for loop in self._function.types if _UNKNOWN.isdisjoint(loop)))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the function to each element.

        Args:
            args: The inputs, which are arrays or scalars, and then the outputs, if any.
            kwargs: ``out``, an array or a tuple of arrays; ``dtype``, the type of the computation; ``casting``.
        """
        trace = active_trace.state.trace
        if trace is not None:
            return trace.call_ufunc(self._function, args, kwargs)
        if not kwargs and self.nin <= len(args) <= self.nargs and self._function.signature is None:
            return self.apply(*args)
        inputs: Sequence[Any] = args[: self.nin]
        outs = args[self.nin :]
        unknown = kwargs.keys() - self._options
        if unknown:
            raise TypeError(f"Wrong arguments {sorted(unknown)} for {self.name!r}; it takes {sorted(self._options)}.")
        if outs and kwargs.get("out") is not None:
            raise ValueError("Cannot specify 'out' as both a positional and keyword argument")
        if len(inputs) != self.nin or len(outs) > self.nout:
            raise TypeError(
                f"Wrong number of arguments for {self.name!r}. It must be either {self.nin} or {self.nargs} (with "
                f"outputs), but given {len(args)}."
            )
        if self._function.signature is not None:  # The function is matmul, which does not work element by element.
            inputs = require_operands(inputs)
            for operand in inputs:
                if not isinstance(operand, Strided):
                    raise TypeError(f"{self.name}() takes arrays of the device, and no scalars.")
            if outs:
                kwargs["out"] = outs
            return numpy_work.call(self._function, inputs, kwargs, flops=flops.ESTIMATES.get(self._function))
        out = kwargs.pop("out", None)
        if out is not None:
            outs = out if isinstance(out, tuple) else (out,)
        if not kwargs:
            return self.apply(*inputs, *outs)
        return self._elementwise(require_operands(inputs), outs, kwargs)

    def _apply_any(self, *operands: Any) -> Any:
        """Apply the function to ``operands``, the inputs and then the outputs, which may be None."""
        trace = active_trace.current()
        if trace is not None:
            return trace.call_ufunc(self._function, operands, {})
        return self._elementwise(require_operands(operands[: self.nin]), operands[self.nin :], {})

    def _elementwise(self, inputs: Sequence[Any], outs: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """Apply the function in one kernel that writes to the memory of the results."""
        function = self._function
        template = template_among(inputs)
        if function is np.sign and not options.get("dtype"):
            inputs = [_as_bytes(value) for value in inputs]
        arrays, given = [], []
        for value in inputs:
            if isinstance(value, Strided):
                arrays.append(value)
        for out in outs:
            if isinstance(out, Strided):
                given.append(out)
            elif out is not None:
                raise TypeError("Output arguments type must be an array of the device")
        operands = [*arrays, *given]
        numpy_work.require_current_device(operands)

        if function in _COMPARING:
            elements = [array._host.dtype for array in arrays]
            if function in _OF_BYTES and any(map(structured.is_structured, elements)):
                return _compared(function, inputs, outs)
            if (
                np.dtype(bool) in elements
            ):  # NumPy compares booleans with integers of C, and CuPy with all integers of 64 bits.
                inputs = [_sized(value) if type(value) is int else value for value in inputs]
        shape = operands[0]._host.shape if operands else ()
        for array in operands:
            if array._host.shape != shape:
                shape = np.broadcast_shapes(*[operand._host.shape for operand in operands])
                break
        results = [*outs, *[None] * (function.nout - len(outs))]
        missing = [place for place, result in enumerate(results) if result is None]
        dtypes = self._dtypes(inputs, options)
        fresh = numpy_work.new_each([(shape, dtypes[place], "C") for place in missing], template)
        for place, result in zip(missing, fresh, strict=True):
            results[place] = result
        everything = {**options, "out": tuple(results)}
        told = function, inputs, everything
        compute = casts.unsafely(self._compute) if options.get("casting") == "unsafe" else self._compute
        numpy_work.launch(
            compute, inputs, everything, reads=arrays, writes=given, fresh=fresh, rehearsed=True, told=told
        )
        return results[0] if len(results) == 1 else tuple(results)

    def _dtypes(self, inputs: Sequence[Any], options: Mapping[str, Any]) -> Sequence[np.dtype[Any]]:
        """Return the types of the results."""
        function = self._function
        if not options:
            kinds: list[Any] = []
            arrays = 0
            for value in inputs:
                if isinstance(value, Strided):
                    kinds.append(value._host.dtype)
                    arrays += 1
                elif type(value) in _WEAK:
                    kinds.append(type(value))
                else:
                    break
            else:
                if function in _OF_SINGLE and arrays and is_bfloat16(kinds[0]):
                    return kinds
                if arrays:
                    try:
                        dtypes = function.resolve_dtypes((*kinds, *[None] * function.nout))[function.nin :]
                    except TypeError:
                        pass  # The call of the function below raises a better message.
                    else:
                        if len(dtypes) == 1 and dtypes[0] in NUMBERS:
                            self._kinds[tuple(kinds)] = dtypes[0]
                        return dtypes
        samples = [np.empty(0, value.dtype) if isinstance(value, Strided) else value for value in inputs]
        results = quietly(self._compute, *samples, **options)
        return [np.asarray(result).dtype for result in (results if function.nout > 1 else (results,))]

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Reduce ``array`` along ``axis`` (``numpy.ufunc.reduce``)."""
        self._require("reduce", catalogue.REDUCING)
        if isinstance(array, _OF_NUMPY):
            return self._function.reduce(array, axis, dtype, out, keepdims=keepdims)
        _require_array(array)
        along = _AXIS.admit(axis)
        return numpy_work.call(
            self._function.reduce, (_cast(array, dtype), along, dtype), {"out": _single(out), "keepdims": keepdims}
        )

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """Accumulate the results along ``axis`` (``numpy.ufunc.accumulate``)."""
        self._require("accumulate", catalogue.REDUCING)
        if isinstance(array, _OF_NUMPY):
            return self._function.accumulate(array, axis, dtype, out)
        _require_array(array)
        along = _AXIS.admit(axis)
        return numpy_work.call(self._function.accumulate, (_cast(array, dtype), along, dtype), {"out": _single(out)})

    def reduceat(self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """Reduce the slices of ``array`` that start at ``indices`` (``numpy.ufunc.reduceat``)."""
        self._require("reduceat", catalogue.REDUCING_SLICES)
        _require_array(array)
        arguments = (_cast(array, dtype), indexing.array_of_indices(indices), _AXIS.admit(axis), dtype)
        return numpy_work.call(self._function.reduceat, arguments, {"out": _single(out)})

    def outer(self, A: Any, B: Any, **kwargs: Any) -> Any:  # noqa: N803  # CuPy's names
        """Apply the function to all pairs of an element of ``A`` and an element of ``B`` (``numpy.ufunc.outer``)."""
        first, second = as_plain(creation.asarray(A)), as_plain(creation.asarray(B))
        apart = numpy_work.view(np.ndarray.reshape, (first, first.shape + (1,) * second.ndim))
        return self(apart, second, **kwargs)

    def at(self, a: Any, indices: Any, b: Any = None) -> None:
        """Change the elements of ``a`` at ``indices`` in place, once for each index (``numpy.ufunc.at``)."""
        self._require("at", catalogue.CHANGING)
        _require_array(a)
        if is_bfloat16(a.dtype):
            raise TypeError(f"cupy.{self.name}.at has no atomic function for bfloat16: convert the array to float32.")
        if isinstance(b, (list, tuple, np.ndarray)):
            b = creation.array(b, a.dtype)
        (b,) = require_operands([b])
        items = indexing.prepare(indices)
        if refusals.needs_contents(items):
            with numpy_work.with_contents():
                numpy_work.modify(self._function.at, (a, items, b), reads_target=True)
        else:
            numpy_work.modify(self._function.at, (a, items, b), reads_target=True)

    def __reduce__(self) -> str:
        return str(self._public_name)

    def _require(self, method: str, names: Sequence[str]) -> None:
        if self.name not in names:
            raise NotImplementedError(
                f"`{self.name}.{method}` is not supported, as in CuPy, which has it for {', '.join(names)} only."
            )

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__!r}>"


def require_operands(operands: Sequence[Any]) -> Sequence[Any]:
    """Refuse operands that are neither arrays of a device nor scalars.

    Returns:
        The operands, with arrays of this library in the places of foreign arrays of a device.

    Raises:
        TypeError: An operand is of another type, such as a list or a NumPy array.
        OverflowError: An operand is an integer that fits into no element.
    """
    for operand in operands:
        if not isinstance(operand, _KNOWN):
            if array_interface.is_array(operand):
                own = [
                    array_interface.array_of(value) if array_interface.is_array(value) else value for value in operands
                ]
                return require_operands(own)
            raise TypeError(
                f"Unsupported type {type(operand)}: operands are arrays of the device and scalars. Make an array of "
                "the device with asarray() first."
            )
        if type(operand) is int and not _LEAST <= operand < _BEYOND:
            raise OverflowError(f"Python integer {shortened(operand)} does not fit into an element of an array.")
    return operands


def _require_array(operand: Any) -> None:
    if not isinstance(operand, Strided):
        raise AttributeError(f"a method of a universal function takes an array of the device, not {type(operand)}.")


def _cast(array: Strided, dtype: Any) -> Strided:
    """Return ``array`` with integers of ``dtype``, if the elements are other numbers."""
    if dtype is None or np.dtype(dtype).kind not in "iu" or array.dtype.kind not in "fc":
        return array
    return creation.astype(array, dtype)


def _single(out: Any) -> Any:
    """Return the array in ``out``, which NumPy passes on as a tuple of one array."""
    return out[0] if isinstance(out, tuple) else out


def _compared(function: np.ufunc, inputs: Sequence[Any], outs: Sequence[Any]) -> Any:
    """Compare structured elements, or bytes, for equality."""
    structured.require_comparable(
        *[value.dtype if isinstance(value, Strided) else np.asarray(value).dtype for value in inputs]
    )
    named = {"out": outs[0]} if outs and outs[0] is not None else {}
    return numpy_work.call(_OF_BYTES[function], inputs, named)


def _as_bytes(value: Any) -> Any:
    """Return ``value``, or booleans as integers of 8 bits: CuPy has no signs of booleans, and casts them."""
    if isinstance(value, Strided):
        return creation.astype(value, np.int8) if value.dtype == np.bool_ else value
    return np.int8(value) if isinstance(value, (bool, np.bool_)) else value


def _sized(value: int) -> Any:
    return np.uint64(value) if value > _MOST_SIGNED else np.int64(value)
