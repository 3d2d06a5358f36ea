"""Passed marks: which results of a function on arrays come from memory that nothing has written."""

from __future__ import annotations

import functools
import itertools
import types
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda._base.user_code import calling_place
from tcuda.emulation.devices.operands import Operands, alias_of
from tcuda.emulation.names import catalogue
from tcuda.emulation.runtime.moves import Movable
from tcuda.emulation.work import accesses, selected_elements

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from tcuda.emulation.devices.strided import Strided
    from tcuda.emulation.runtime.moves import Mover
    from tcuda.emulation.runtime.unwritten import Marks, Region, Unwritten

    Function = Callable[..., Any]
    MarksOf = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
    Rule = Callable[[Function, Sequence[Any], Mapping[str, Any], MarksOf], Any]


DECIDING: dict[Any, Sequence[int | str]] = {
    **dict.fromkeys(catalogue.READING - {"nanmax", "nanmin"}, (0, 1, "a", "x", "ar1", "ar2")),
    **dict.fromkeys(["take", "take_along_axis", "delete"], (1, "indices", "obj")),
    **dict.fromkeys(["put", "put_along_axis", "place", "putmask"], (1, "ind", "indices", "mask")),
    **dict.fromkeys(["compress", "extract"], (0, "condition")),
    "bincount": (0, "x"),
    "choose": (0, "a"),
    "repeat": (1, "repeats"),
    "copyto": (3, "where"),
}
"""Functions in which some arguments decide which elements are used, or how many elements a result has.

The key is the function, or the name of a function of NumPy's. The value has the places and the names of the arguments.
"""


_INDEXING: set[Function] = set()
"""The functions whose second argument is an index of the first."""


def enter_indexed(function: Function) -> None:
    """Enter a function whose second argument is an index of the first."""
    DECIDING[function] = (1,)
    _INDEXING.add(function)


# Rules

RULES: dict[Any, Rule] = {}
"""The rules by the function, or by the name of a function of NumPy's. A rule returns the marks of the results.

A rule is called with the function, its arguments, and a function that returns the marks of the elements of an
array. The results of a function without a rule are unwritten if anything that the function reads is unwritten.
"""

_NOT_MOVED = frozenset(["out", "dtype", "casting"])


def _each(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any], marks_of: MarksOf) -> Any:
    """Return the marks for a function of each element."""
    found = [marks_of(array) for array in _arrays((args, {**kwargs, "out": None}))]
    return functools.reduce(np.maximum, found)


def _chosen(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any], marks_of: MarksOf) -> Any:
    """Return the marks for a function that takes each element from one of two arrays, by a condition."""
    condition, *sources = args
    marks = (marks_of(each) if isinstance(each, np.ndarray) else np.uint8(0) for each in (*sources, condition))
    first, second, decided = marks
    return np.maximum(np.where(condition, first, second), decided)


def _moved(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any], marks_of: MarksOf) -> Any:
    """Return the marks for a function that moves elements, and does not look at them."""
    options = {name: _replaced(value, marks_of) for name, value in kwargs.items() if name not in _NOT_MOVED}
    return function(*(_replaced(value, marks_of) for value in args), **options)


def moved_by(*places: int) -> Rule:
    """Return the rule for a function that moves the elements of the arguments at ``places`` by the other arguments."""

    def rule(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any], marks_of: MarksOf) -> Any:
        moved = [_replaced(value, marks_of) if place in places else value for place, value in enumerate(args)]
        return function(*moved, **{name: value for name, value in kwargs.items() if name not in _NOT_MOVED})

    return rule


def of_value(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any], marks_of: MarksOf) -> Any:
    """Return the marks for a function whose third argument is assigned."""
    return marks_of(args[2])


def _reduced(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any], marks_of: MarksOf) -> Any:
    """Return the marks for a function that reduces an array along axes."""
    default = 0 if getattr(function, "__name__", "") == "reduce" else None
    axis = args[1] if len(args) > 1 else kwargs.get("axis", default)
    return np.max(marks_of(args[0]), axis=axis, keepdims=bool(kwargs.get("keepdims", False)))


def _along(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any], marks_of: MarksOf) -> Any:
    """Return the marks for a function that sorts along an axis."""
    axis = args[1] if len(args) > 1 else kwargs.get("axis", -1)
    marks = marks_of(args[0])
    return np.broadcast_to(np.max(marks, axis=axis, keepdims=axis is not None), marks.shape)


def _accumulated(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any], marks_of: MarksOf) -> Any:
    default = 0 if getattr(function, "__name__", "") == "accumulate" else None
    axis = args[1] if len(args) > 1 else kwargs.get("axis", default)
    marks = marks_of(args[0])
    return np.maximum.accumulate(marks.reshape(-1) if axis is None else marks, axis=axis or 0)


def _linear(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any], marks_of: MarksOf) -> Any:
    """Return the marks for a function that is linear in each of its arrays, such as a product."""
    options = {name: value for name, value in kwargs.items() if name not in _NOT_MOVED}
    result: Any = np.uint8(0)
    for place, chosen in enumerate(_arrays(args)):
        marks = marks_of(chosen)
        if marks.any():
            places = itertools.count()

            def ones(
                array: npt.NDArray[Any], place: int = place, marks: Any = marks, places: Any = places
            ) -> npt.NDArray[Any]:
                """Return the marks in the place of one argument, and ones in the places of all others."""
                return (marks != 0).astype(np.float32) if next(places) == place else np.ones(array.shape, np.float32)

            uses = function(*[_replaced(value, ones) for value in args], **options)
            result = np.maximum(result, np.where(np.asarray(uses) != 0, marks.max(), 0).astype(np.uint8))
    return result


def _arrays(value: Any) -> list[npt.NDArray[Any]]:
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, dict):
        return _arrays(list(value.values()))
    if isinstance(value, (tuple, list)):
        return [array for item in value for array in _arrays(item)]
    return []


def _replaced(value: Any, marks_of: MarksOf) -> Any:
    """Return ``value`` with marks in the places of arrays."""
    if isinstance(value, np.ndarray):
        return marks_of(value)
    if isinstance(value, (tuple, list)):
        items = [_replaced(item, marks_of) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    return value


for _rule, _names in (
    (
        _each,
        "clip nan_to_num around round isclose angle i0 sinc real_if_close iscomplex isreal isneginf isposinf copyto",
    ),
    (
        _moved,
        "concatenate stack hstack vstack dstack column_stack tile roll flip fliplr flipud rot90 append tril triu diag "
        "diagonal diagflat ravel reshape transpose swapaxes moveaxis rollaxis squeeze expand_dims atleast_1d "
        "atleast_2d atleast_3d broadcast_to array copy flatten resize",
    ),
    (_chosen, "where"),
    (moved_by(0), "take take_along_axis delete repeat"),
    (moved_by(1), "compress extract"),
    (
        _reduced,
        "sum prod max min amax amin mean all any argmax argmin std var median ptp count_nonzero nansum nanprod nanmax "
        "nanmin nanmean nanstd nanvar nanmedian nanargmax nanargmin",
    ),
    (_along, "sort argsort partition argpartition"),
    (_accumulated, "cumsum cumprod nancumsum nancumprod"),
    (_linear, "matmul dot inner outer tensordot vdot kron einsum convolve correlate"),
):
    RULES.update(dict.fromkeys(_names.split(), _rule))


_OF_EACH_ELEMENT: weakref.WeakSet[Function] = weakref.WeakSet()
"""Functions of the program that are functions of each element."""


def enter_of_each_element(function: Function) -> None:
    """Enter a function of each element, which is forgotten when nobody else refers to the function."""
    _OF_EACH_ELEMENT.add(function)


def _entry(table: Mapping[Any, Any], function: Function) -> Any:
    """Return the entry of ``function``, or of the function of NumPy's in whose place it is; None if there is none."""
    try:
        found = table.get(function)
    except TypeError:  # a function without a hash
        return None
    if found is None and (getattr(function, "__module__", None) or "numpy").startswith(("numpy", "tcuda.")):
        found = table.get(getattr(function, "__name__", "").strip("_"))
    return found


def _rule_of(function: Function) -> Rule | None:
    if isinstance(function, np.ufunc) and function.signature is None:
        return _each
    if isinstance(function, types.FunctionType) and function in _OF_EACH_ELEMENT:
        return _each
    if isinstance(getattr(function, "__self__", None), np.ufunc):
        return {"reduce": _reduced, "accumulate": _accumulated}.get(function.__name__)
    rule: Rule | None = _entry(RULES, function)
    return rule


# Work


class Passing(Movable):
    """Work that refuses unwritten memory where the memory decides, and else passes the marks on.

    Args:
        unwritten: The unwritten bytes.
        work: The work.
        call: The function that computes, its arguments and its keyword arguments, with arrays of a device.
        reads: The arrays that the function reads.
        writes: The arrays that the function writes.
        deferred: Whether the work is done later, and so must keep no memory alive.
    """

    passes_marks = True

    def __init__(
        self,
        unwritten: Unwritten,
        work: Callable[[], object],
        call: tuple[Function, Sequence[Any], Mapping[str, Any]],
        reads: Sequence[Strided],
        writes: Sequence[Strided],
        *,
        deferred: bool,
    ) -> None:
        function, args, kwargs = call
        operands = Operands(alias_of) if deferred else Operands()
        self._unwritten = unwritten
        self._work = work
        self._function = function
        self._arguments = operands.take(args, kwargs)
        hosts: dict[int, npt.NDArray[Any]] = {}
        for array, host in zip(operands.arrays, operands.hosts, strict=True):
            hosts.setdefault(id(array), host)  # an output may be an input, too
        make = alias_of if deferred else _host_of
        self._reads = [hosts[id(array)] if id(array) in hosts else make(array) for array in reads]
        self._writes = [hosts[id(array)] if id(array) in hosts else make(array) for array in writes]
        self._selects = selected_elements.depends_on_contents(function, args, kwargs)
        parts: Mapping[int, Sequence[npt.NDArray[Any]]] = {}
        if not self._selects and function in accesses.PARTIAL:
            parts = accesses.PARTIAL[function](args, kwargs)
        self._parts = {
            id(hosts.get(key)): [_region(part) for part in regions if part.size] for key, regions in parts.items()
        }
        self._line = None if _entry(DECIDING, function) is None else calling_place()

    def moved(self, mover: Mover) -> Passing:
        """Return a copy of the work whose arrays are moved."""
        made: Passing = super().moved(mover)
        hosts = {id(host): host for host in (*self._reads, *self._writes)}
        made._parts = {id(mover.moved(hosts.get(key))): regions for key, regions in made._parts.items()}
        return made

    def __call__(self) -> None:
        """Do the work."""
        unwritten = self._unwritten
        if not unwritten.open:
            self._work()
            return
        if self._line is not None:
            require_decided(unwritten, self._function, *self._arguments, self._line)
        used: Mapping[int, npt.NDArray[Any]] = {}
        if self._selects and any(unwritten.may_have(_region(host)) for host in (*self._reads, *self._writes)):
            used = selected_elements.selected(self._function, *self._arguments)
        source = self._source(used)
        found = self._found(source)
        if source is not None:
            results = self._taken(source, used[id(source)], found)
        else:
            results = self._passed(found) if found else None
        self._work()
        for place, host in enumerate(self._writes):
            marks = None if results is None else results[place]
            addresses = used.get(id(host))
            if addresses is not None:
                unwritten.store_items(addresses, host.itemsize, marks)
            elif host.size:
                for region in self._parts.get(id(host)) or [_region(host)]:
                    shape = (*region[2], 1)
                    unwritten.store(region, None if marks is None else np.broadcast_to(marks[..., None], shape))

    def _source(self, used: Mapping[int, npt.NDArray[Any]]) -> npt.NDArray[Any] | None:
        """Return the array from which the function only takes elements, whose addresses are in ``used``."""
        if len(used) != 1 or any(id(host) in used for host in self._writes):
            return None
        return next((host for host in self._reads if id(host) in used and host.dtype.names is None), None)

    def _taken(
        self, source: npt.NDArray[Any], addresses: npt.NDArray[Any], found: Mapping[Region, Marks]
    ) -> list[Any] | None:
        """Return the marks of each array that is written with elements of ``source``, which are looked at alone."""
        marks = self._unwritten.items(addresses, source.itemsize)
        if marks is None and not found:
            return None
        most = np.uint8(max(0 if each is None else int(each.max()) for each in (marks, *found.values())))
        alone = marks is not None and not found
        return [marks if alone and host.shape == addresses.shape else most for host in self._writes]

    def _found(self, source: npt.NDArray[Any] | None) -> dict[Region, Marks]:
        """Return the marks of the elements of each region that is read and not wholly written.

        Args:
            source: An array that is left out.
        """
        found = {}
        for host in self._reads:
            if host.size and host is not source:
                marks = self._unwritten.marks(_region(host))
                if marks is not None:
                    each = _of_elements(marks, host.dtype)
                    if each.any():
                        found[_region(host)] = each
        return found

    def _passed(self, found: Mapping[Region, Marks]) -> list[Any]:
        """Return the marks of each array that is written."""
        rule = _rule_of(self._function)
        if rule is not None:

            def marks_of(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
                marks = found.get(_region(array))
                return np.zeros(array.shape, np.uint8) if marks is None else marks

            try:
                result = rule(self._function, *self._arguments, marks_of)
                results = list(result) if isinstance(result, (tuple, list)) else [result] * len(self._writes)
                if len(results) == len(self._writes):
                    return [
                        self._fitted(np.asarray(marks), host) for marks, host in zip(results, self._writes, strict=True)
                    ]
            except (ArithmeticError, IndexError, TypeError, ValueError):
                pass  # The arguments are of a form that the rule does not know.
        first = max(int(marks.max()) for marks in found.values())
        return [np.uint8(first)] * len(self._writes)

    def _fitted(self, marks: npt.NDArray[Any], host: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return ``marks`` in the shape of ``host``; the marks of a part of an array keep their shape.

        Raises:
            ValueError: The marks have another shape.
        """
        if self._selects or id(host) in self._parts:
            return marks
        return np.broadcast_to(marks, host.shape)


def require_decided(
    unwritten: Unwritten, function: Function, args: Sequence[Any], kwargs: Mapping[str, Any], line: Any = None
) -> None:
    """Refuse unwritten elements in the arguments that decide which elements ``function`` uses.

    Raises:
        UnwrittenMemoryError: There are such elements.
    """
    for place in _entry(DECIDING, function) or ():
        for host in _arrays(args[place : place + 1] if isinstance(place, int) else kwargs.get(place)):
            marks = unwritten.marks(_region(host)) if host.size else None
            each = None if marks is None else _of_elements(marks, host.dtype).reshape(-1)
            if each is not None and each.any():
                first = np.flatnonzero(each)
                name = "indexing" if function in _INDEXING else f"{function.__name__.strip('_')}()"
                what = f"element {first[0]} of {host.size} {host.dtype} elements that decide what is used"
                number = int(each[first[0]])
                unwritten.refuse(name, name, what, first.size, number, line or calling_place())


def _of_elements(marks: Marks, dtype: np.dtype[Any]) -> Marks:
    """Return a mark for each element, without the padding of structures."""
    if dtype.names is not None:
        from tcuda.emulation.runtime.unwritten import padding_of

        marks = marks * ~padding_of(dtype)
    each: Marks = marks.max(-1)
    return each


def _host_of(array: Strided) -> npt.NDArray[Any]:
    return array._host


def _region(host: npt.NDArray[Any]) -> Region:
    return host.__array_interface__["data"][0], host.itemsize, host.shape, host.strides
