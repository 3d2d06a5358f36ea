"""Functions of the namespace that take a Python function: ``vectorize``, ``piecewise`` and ``apply_along_axis``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tcuda.emulation.arrays.functions import FUNCTIONS, IMPLEMENTATIONS
from tcuda.emulation.devices.operands import SCALARS
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.numbers import arithmetic, casts
from tcuda.emulation.work import active_trace, creation, numpy_work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt


class vectorize:
    """A function that applies a Python function to each element of arrays, as ``cupy.vectorize``.

    CuPy translates the Python function into a kernel. Here Python runs the function, once for each element, with
    scalars of NumPy's. The types of the results are found in the source, as in CuPy, which also refuses statements that
    it cannot translate. If Python has no source of the function, the results have the types of the values that the
    function returns.

    Args:
        pyfunc: The function of one element of each array, which returns a scalar or a tuple of scalars.
        otypes: The types of the results; CuPy takes them, but cannot call such a function.
        doc: The docstring; that of ``pyfunc`` if None.
        excluded: Must be None.
        cache: Ignored.
        signature: Must be None.

    Raises:
        NotImplementedError: ``excluded`` or ``signature`` is given, which CuPy refuses, too.
    """

    __module__ = "tcuda.emulation.xp"

    _types_of_results: ClassVar[Callable[[Any, Sequence[Any]], Any]]
    """Finds the types of the results of a function in its source; :mod:`tcuda.emulation.xp` sets the function."""

    def __init__(
        self,
        pyfunc: Callable[..., Any],
        otypes: Any = None,
        doc: str | None = None,
        excluded: Any = None,
        cache: bool = False,
        signature: str | None = None,
    ) -> None:
        self.pyfunc = pyfunc
        self.__doc__ = doc or pyfunc.__doc__
        self.excluded = excluded
        self.cache = cache
        self.signature = signature
        self._types: dict[tuple[np.dtype[Any], ...], Any] = {}
        self.otypes = None if otypes is None else "".join([np.dtype(kind).char for kind in otypes])
        for name, value in (("excluded", excluded), ("signature", signature)):
            if value is not None:
                raise NotImplementedError(f"cupy.vectorize does not support `{name}` option currently.")

    def __call__(self, *args: Any) -> Any:
        """Apply the function to each element of ``args``, which are arrays and scalars.

        Raises:
            NotImplementedError: The types of the results were given.
            TypeError: An argument is neither an array of a device nor a scalar, or the function returns something else
                than scalars, or scalars of different types, or computes with types that do not fit together.
            ValueError: No argument is an array, or there are other functions in the lines of a ``lambda``.
        """
        if self.otypes is not None:
            raise NotImplementedError("CuPy cannot call a vectorized function with `otypes`: leave them out.")
        if not any(isinstance(arg, Strided) for arg in args):
            raise ValueError("Loop size is undecided: a vectorized function takes at least one array of the device.")
        operands = [arg if isinstance(arg, Strided) else _typed(arg) for arg in args]
        kinds = tuple(operand.dtype for operand in operands)
        if kinds not in self._types:
            self._types[kinds] = vectorize._types_of_results(self.pyfunc, kinds)
        # Deferred work must not raise an error. If the source tells no types, the type of the first result counts then.
        strict = not numpy_work.defers()
        return numpy_work.call(_each_element, (self.pyfunc, strict, self._types[kinds], *operands))


def _typed(arg: Any) -> Any:
    """Return the scalar ``arg`` with the type that an array of it has.

    Raises:
        TypeError: ``arg`` is no scalar.
    """
    if isinstance(arg, np.generic):
        return arg
    if isinstance(arg, SCALARS):
        kind: Any = np.dtype(type(arg)).type
        return kind(arg)
    raise TypeError(f"Unsupported type {type(arg)}: a vectorized function takes arrays of the device and scalars.")


class _Scalars:
    """The trace during which universal functions of the namespace compute with scalars of NumPy's."""

    def call_ufunc(self, function: np.ufunc, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call the NumPy function ``function``."""
        return arithmetic.of_device(function)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a vectorized function works with scalars, which have no {name}()")


def _each_element(function: Callable[..., Any], strict: bool, types: Any, /, *operands: Any) -> Any:
    """Return the results of ``function`` for each element of ``operands``, arrays and scalars of NumPy's.

    Args:
        function: The function.
        strict: Whether to refuse results of different types.
        types: The type of the results, or the types of the items of the results; None if not known.
        operands: The arrays and scalars.
    """
    arrays = np.broadcast_arrays(*operands)
    shape = arrays[0].shape
    with active_trace.tracing(_Scalars()):
        results = [function(*elements) for elements in zip(*(array.ravel() for array in arrays), strict=True)]
        if types is None:
            sample = results[0] if results else function(*(array.dtype.type(1) for array in arrays))
    if types is not None:
        if not isinstance(types, tuple):
            return _cast(results, types).reshape(shape)
        columns = _columns(results, len(types))
        return tuple([_cast(values, dtype).reshape(shape) for values, dtype in zip(columns, types, strict=True)])
    if not isinstance(sample, tuple):
        return _joined(results, sample, shape, strict)
    columns = _columns(results, len(sample))
    return tuple([_joined(values, first, shape, strict) for values, first in zip(columns, sample, strict=True)])


def _columns(results: list[tuple[Any, ...]], count: int) -> list[list[Any]]:
    """Return, for each of the ``count`` items of the ``results``, the values of the item."""
    return [[result[place] for result in results] for place in range(count)]


def _cast(values: list[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return ``values`` as an array with elements of ``dtype``, into which a kernel casts each value."""
    if all(isinstance(value, dtype.type) for value in values):
        return np.array(values, dtype)
    made = np.empty(len(values), dtype)
    for place, value in enumerate(values):
        casts.copyto(made[place : place + 1], np.asarray(value), "unsafe")
    return made


def _joined(values: list[Any], sample: Any, shape: tuple[int, ...], strict: bool) -> npt.NDArray[Any]:
    """Return ``values``, results for the elements of an array of ``shape``, as an array.

    Raises:
        TypeError: A value is no scalar, or the values have different types.
    """
    kinds = {value.dtype for value in values or [sample] if isinstance(value, np.generic)}
    weak = {type(value) for value in values or [sample] if not isinstance(value, np.generic)}
    unknown = weak - {bool, int, float, complex}
    if unknown:
        raise TypeError(f"Invalid return type: {unknown.pop()}. A vectorized function returns scalars.")
    if len(kinds) > 1 and strict:
        raise TypeError(f"A vectorized function returns scalars of one type, and not of {sorted(map(str, kinds))}.")
    dtype = np.result_type(*kinds, *[kind(0) for kind in weak]) if kinds else np.result_type(*weak)
    return np.array(values, dtype).reshape(shape)


def piecewise(x: Any, condlist: Any, funclist: Any) -> Any:
    """Return an array like ``x`` with the values of ``funclist`` where the conditions of ``condlist`` hold.

    Args:
        x: The array, of which only the shape and the type count.
        condlist: The conditions, which are arrays of bools or bools. A later condition wins.
        funclist: The values, one for each condition, and one more for elements without a condition, which are 0
            otherwise.

    Raises:
        NotImplementedError: An item of ``funclist`` is a function; CuPy takes scalars only.
        ValueError: The number of values does not fit the number of conditions.
    """
    if np.isscalar(condlist):
        condlist = [condlist]
    count = len(condlist)
    if len(funclist) not in (count, count + 1):
        raise ValueError(
            f"with {count} condition(s), either {count} or {count + 1} functions are expected; got {len(funclist)}"
        )
    values = list(funclist)
    if any(map(callable, values)):
        raise NotImplementedError("Callable functions are not supported currently: piecewise() takes scalars.")
    result = creation.full(x.shape, values[count] if len(values) > count else 0, x.dtype)
    for condition, value in zip(condlist, values, strict=False):
        if isinstance(condition, Strided) and condition.dtype != bool:
            raise TypeError(f"Type is mismatched: a condition of piecewise() has bools, not {condition.dtype}.")
        numpy_work.modify(_set_where, (result, condition, value), reads_target=True)
    return result


def _set_where(target: npt.NDArray[Any], condition: Any, value: Any) -> None:
    casts.copyto(target, value, "unsafe", condition)


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the results of ``func1d`` for the slices of ``arr`` along ``axis``.

    Args:
        func1d: The function, called with an array of one axis and with ``args`` and ``kwargs``.
        axis: The axis, which the axes of the results replace.
        arr: The array.
        args: More arguments of ``func1d``.
        kwargs: More arguments of ``func1d`` by name.

    Raises:
        AxisError: ``arr`` has no axis ``axis``.
        ValueError: ``arr`` has no slice.
    """
    place = np.lib.array_utils.normalize_axis_index(axis, arr.ndim)
    slices = FUNCTIONS["moveaxis"](arr, place, -1)
    outer = slices.shape[:-1]
    if 0 in outer:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    result: Any = None
    first: Any = None
    for index in np.ndindex(*outer):
        part: Any = creation.asarray(func1d(slices[index], *args, **kwargs))
        if result is None:
            first = part
            result = creation.empty((*outer, *first.shape), first.dtype)
        result[index] = part
    inner = range(len(outer), result.ndim)
    return FUNCTIONS["moveaxis"](result, list(inner), range(place, place + len(inner)))


def apply_over_axes(func: Callable[[Any, int], Any], a: Any, axes: Any) -> Any:
    """Return ``a`` after a call of ``func`` for each of ``axes``, with the result of the call before.

    Args:
        func: The function, called with an array and an axis. The axis may be missing in the result.
        a: The array.
        axes: The axis, or the axes.

    Raises:
        AxisError: ``a`` has no such axis.
        ValueError: A result has another number of axes.
    """
    value: Any = creation.asarray(a)
    for axis in (axes,) if np.ndim(axes) == 0 else axes:
        place = np.lib.array_utils.normalize_axis_index(axis, a.ndim)
        result = func(value, place)
        if result.ndim != value.ndim:
            result = FUNCTIONS["expand_dims"](result, place)
        if result.ndim != value.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        value = result
    return value


FUNCTIONAL: dict[str, Any] = {
    "apply_along_axis": apply_along_axis,
    "apply_over_axes": apply_over_axes,
    "piecewise": piecewise,
    "vectorize": vectorize,
}
"""The functions of the namespace that take Python functions, by name."""

for _name in ("apply_along_axis", "apply_over_axes", "piecewise"):
    FUNCTIONAL[_name].__module__ = "tcuda.emulation.xp"  # The functions are pickled by their public names.
    IMPLEMENTATIONS[getattr(np, _name)] = FUNCTIONAL[_name]
