"""Placeholders: the objects that a traced function gets in place of arrays and scalars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tcuda.emulation.work.active_trace import Placeholder

if TYPE_CHECKING:
    from tcuda.emulation.work.active_trace import Trace

_NO_VALUE = (
    "Cannot convert to Python scalar in cupy.fuse: a fused function runs once for all elements, so that the function "
    "cannot depend on their values. Use where()."
)


class Variable(Placeholder):
    """The placeholder of a scalar.

    Attributes:
        dtype: The type of the scalar.
        ndim: The number of axes.
    """

    __slots__ = ("_index", "_reduced", "_sample", "_trace")

    __hash__ = None  # type: ignore[assignment]  # Like that of an array, the comparison returns an array.

    def __init__(self, trace: Trace, index: int, sample: Any, reduced: bool) -> None:
        self._trace = trace
        self._index = index
        self._sample = sample
        self._reduced = reduced

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        dtype: np.dtype[Any] = np.asarray(self._sample).dtype
        return dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return np.ndim(self._sample)

    @property
    def shape(self) -> NoReturn:
        """Refused, because a fused function runs with arrays of other shapes, too."""
        raise NotImplementedError("`shape` is not supported, currently.")

    def __repr__(self) -> str:
        return f"<variable of a fused function, dtype={self.dtype}, ndim={self.ndim}>"

    def _refuse_value(self) -> NoReturn:
        raise TypeError(_NO_VALUE)

    __bool__ = __int__ = __float__ = __complex__ = __index__ = _refuse_value

    def copy(self) -> Any:
        """Return a copy."""
        return self._trace.call_function("copy", (self,), {})

    def astype(self, dtype: Any, order: Any = None, casting: Any = None, subok: Any = None, copy: bool = True) -> Any:
        """Return the elements as ``dtype``.

        Raises:
            TypeError: ``order``, ``casting`` or ``subok`` is given.
        """
        for name, value in (("order", order), ("casting", casting), ("subok", subok)):
            if value is not None:
                raise TypeError(f"{name} is not supported yet")
        return self if not copy and self.dtype == dtype else self._trace.cast(self, np.dtype(dtype))

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Return the sum along ``axis``."""
        return self._trace.call_method("sum", self, axis=axis, dtype=dtype, out=out, keepdims=keepdims)

    def prod(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Return the product along ``axis``."""
        return self._trace.call_method("prod", self, axis=axis, dtype=dtype, out=out, keepdims=keepdims)

    def max(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Return the maximum along ``axis``."""
        return self._trace.call_method("max", self, axis=axis, out=out, keepdims=keepdims)

    def min(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Return the minimum along ``axis``."""
        return self._trace.call_method("min", self, axis=axis, out=out, keepdims=keepdims)

    def all(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Return whether all elements along ``axis`` are true."""
        return self._trace.call_method("all", self, axis=axis, out=out, keepdims=keepdims)

    def any(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Return whether any element along ``axis`` is true."""
        return self._trace.call_method("any", self, axis=axis, out=out, keepdims=keepdims)


class Array(Variable):
    """The placeholder of an array."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        return self._trace.index(self, index)

    def __iter__(self) -> NoReturn:
        raise TypeError("A fused function cannot iterate over an array, because it does not know the length.")

    def __setitem__(self, index: Any, value: Any) -> None:
        if index is not Ellipsis and not (isinstance(index, slice) and index == slice(None)):
            raise ValueError("The fusion supports `[...]` or `[:]`.")
        self._trace.assign(self, value)


_BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_COMPARISONS = {
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _forward(function: np.ufunc) -> Any:
    return lambda self, other: self._trace.call_ufunc(function, (self, other), {})


def _reflected(function: np.ufunc) -> Any:
    return lambda self, other: self._trace.call_ufunc(function, (other, self), {})


def _in_place(function: np.ufunc) -> Any:
    return lambda self, other: self._trace.call_ufunc(function, (self, other, self), {})


def _unary(function: np.ufunc) -> Any:
    return lambda self: self._trace.call_ufunc(function, (self,), {})


for _name, _function in _BINARY.items():
    setattr(Variable, f"__{_name}__", _forward(_function))
    if _name != "pow":  # CuPy has no reflected power.
        setattr(Variable, f"__r{_name}__", _reflected(_function))
    setattr(Array, f"__i{_name}__", _in_place(_function))
for _name, _function in _COMPARISONS.items():
    setattr(Variable, f"__{_name}__", _forward(_function))
for _name, _single in {"neg": np.negative, "invert": np.invert}.items():
    setattr(Variable, f"__{_name}__", _unary(_single))
