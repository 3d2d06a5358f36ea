"""Accesses of operations on arrays: the regions of memory that a function reads and writes, for a race detector."""

from __future__ import annotations

import functools
import inspect
import threading
import types
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda import _core
from tcuda.emulation.devices.operands import Operands, alias_of
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.runtime.accesses import POSSIBLE, READ, READ_AND_WRITE, WRITE, Access
from tcuda.emulation.runtime.moves import Movable
from tcuda.emulation.work import selected_elements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    Regions = Mapping[int, Sequence[npt.NDArray[Any]]]
    """The regions that a function uses of an array, as NumPy arrays over the memory, by the ``id`` of the array."""

_MOST = 512
"""The most exact regions of selected elements. Beyond this number, the regions are a few ranges around the elements."""

_UFUNC_PARAMETERS = {1: ("x",), 2: ("x1", "x2")}
_METHOD_PARAMETERS = {"at": ("a", "indices", "b"), "reduceat": ("array", "indices")}
"""The parameters of compiled methods of universal functions; ``array`` is the only array of the other methods."""

PARTIAL: dict[Callable[..., Any], Callable[[Sequence[Any], Mapping[str, Any]], Regions]] = {}
"""Functions that use parts of their arguments only, each with a function that returns the parts for the arguments.

A function is missing here if it uses every element of its arguments. An argument that is missing in the regions is used
as a whole.
"""


def of_call(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None,
    reads: Sequence[Strided],
    writes: Sequence[Strided],
) -> list[Access]:
    """Return the accesses of a call of ``function``, each with the name of the parameter that takes the array.

    Args:
        function: The function of the host that computes.
        args: Its arguments, with arrays of a device.
        kwargs: Its keyword arguments, with arrays of a device.
        reads: The arrays that the function reads.
        writes: The arrays that the function writes. An array that is no argument is a result of the function.
    """
    options = kwargs or {}
    parts = PARTIAL.get(function, _whole)(args, options)
    accesses: dict[Any, Access] = {}
    for array, kind, label in _uses(function, args, options, reads, writes):
        _add(accesses, array, kind, label, parts)
    return list(accesses.values())


def _uses(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    reads: Sequence[Strided],
    writes: Sequence[Strided],
) -> Iterator[tuple[Strided, int, str]]:
    """Yield the arrays that ``function`` uses, each with the kind of the access and the name of the parameter."""
    if _overwrites_input(function, args, kwargs):
        writes = [*reads[:1], *writes]
    labels = _labels(function, args, kwargs)
    written = {id(array) for array in writes}
    read = {id(array) for array in reads}
    outs = kwargs.get("out")
    outputs = {id(out) for out in (outs if isinstance(outs, tuple) else (outs,))}
    for array in reads:
        if id(array) not in written:
            yield array, READ, labels.get(id(array), "")
    for array in writes:
        place = id(array)
        label = "out" if place in outputs else labels.get(place, "out")
        yield array, READ_AND_WRITE if place in read else WRITE, label


def _add(accesses: dict[Any, Access], array: Strided, kind: int, label: str, parts: Regions) -> None:
    """Add the accesses of the regions of ``array``. A view of the same elements is named once for each kind."""
    for host in parts.get(id(array), (array._host,)):
        if host.size:
            address, shape, strides = host.ctypes.data, host.shape, host.strides
            accesses.setdefault((address, shape, strides, kind), (address, host.itemsize, shape, strides, kind, label))


class Measured(Movable):
    """Work whose accesses depend on the contents of arrays, so that only a run of the work tells the accesses.

    Args:
        work: The work.
        watched: Returns whether a race detector watches now.
        call: The function that computes, its arguments and its keyword arguments, with arrays of a device.
        reads: The arrays that the function reads.
        writes: The arrays that the function writes.
    """

    def __init__(
        self,
        work: Callable[[], object],
        watched: Callable[[], bool],
        call: tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any]],
        reads: Sequence[Strided],
        writes: Sequence[Strided],
    ) -> None:
        function, args, kwargs = call
        operands = Operands(alias_of)  # A graph keeps the work, and the work must keep no memory alive.
        self._work = work
        self._watched = watched
        self._function = function
        self._arguments = operands.take(args, kwargs)
        hosts: dict[int, npt.NDArray[Any]] = {}
        for array, host in zip(operands.arrays, operands.hosts, strict=True):
            # If an array is two arguments, the function may use all elements of one of them.
            hosts[id(array)] = alias_of(array) if id(array) in hosts else host
        self._uses = [
            (hosts[id(array)] if id(array) in hosts else alias_of(array), kind, label)
            for array, kind, label in _uses(function, args, kwargs, reads, writes)
        ]
        self._found: dict[int, list[Access]] = {}
        """The accesses of the last run in each thread, until they are asked for."""

    def __call__(self) -> None:
        """Do the work."""
        if self._watched():
            self._found[threading.get_ident()] = self._measured()
        self._work()

    def accesses(self) -> list[Access]:
        """Return the accesses of the last run in this thread; all elements are possible if there was no run."""
        found = self._found.pop(threading.get_ident(), None)
        if found is None:
            found = [(*_whole_access(host, kind, label), POSSIBLE) for host, kind, label in self._uses if host.size]
        return found

    def _measured(self) -> list[Access]:
        used = selected_elements.selected(self._function, *self._arguments)
        found: list[Access] = []
        for host, kind, label in self._uses:
            addresses = used.get(id(host))
            if addresses is not None:
                found += _of_elements(addresses, host.itemsize, kind, label)
            elif host.size:
                found.append(_whole_access(host, kind, label))
        return found


def _whole_access(
    host: npt.NDArray[Any], kind: int, label: str
) -> tuple[int, int, tuple[int, ...], tuple[int, ...], int, str]:
    return host.ctypes.data, host.itemsize, host.shape, host.strides, kind, label


def _of_elements(addresses: npt.NDArray[np.intp], itemsize: int, kind: int, label: str) -> Iterator[Access]:
    places = np.sort(addresses, axis=None).astype(np.int64, copy=False).tobytes()
    for address, size, shape, strides, exact in _core.regions_of_items(places, itemsize, _MOST):
        access: Access = (address, size, shape, strides, kind, label)
        yield access if exact else (*access, POSSIBLE)


def _overwrites_input(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether ``function`` may use the memory of its first argument as it likes."""
    names, _ = _parameters(function)
    if "overwrite_input" not in names:
        return False
    place = names.index("overwrite_input")
    return bool(args[place] if place < len(args) else kwargs.get("overwrite_input"))


def _whole(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Regions:
    return {}


def _labels(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[int, str]:
    """Return the names of the arguments that are arrays, by the ``id`` of the array; the first name of each array."""
    names, rest = _parameters(function)
    found: dict[int, str] = {}
    for place, value in enumerate(args):
        if place < len(names):
            _name(value, names[place], found)
        else:
            _name(value, f"{rest}[{place - len(names)}]" if rest else "", found)
    for name, value in kwargs.items():
        _name(value, name, found)
    return found


def _name(value: Any, name: str, found: dict[int, str]) -> None:
    if isinstance(value, Strided):
        found.setdefault(id(value), name)
    elif isinstance(value, (tuple, list)):
        for place, item in enumerate(value):
            _name(item, f"{name}[{place}]", found)


def _parameters(function: Callable[..., Any]) -> tuple[tuple[str, ...], str]:
    """Return the names of the parameters that take positional arguments, and of the parameter that takes the rest."""
    if isinstance(function, np.ufunc):
        return _UFUNC_PARAMETERS.get(function.nin, ()), ""
    if isinstance(function, functools.partial):
        return (), ""
    if isinstance(function, types.FunctionType):  # a closure, which may hold arrays, must not get into a cache
        if hasattr(function, "__wrapped__"):
            return _parameters(function.__wrapped__)
        code = function.__code__
        names = code.co_varnames
        rest = names[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & inspect.CO_VARARGS else ""
        return names[: code.co_argcount], rest
    return _parameters_of_numpy(function)


@functools.lru_cache(maxsize=1024)
def _parameters_of_numpy(function: Callable[..., Any]) -> tuple[tuple[str, ...], str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        owner = getattr(function, "__objclass__", None)
        if owner is np.ndarray:
            return ("a",), ""
        if isinstance(getattr(function, "__self__", None), np.ufunc):
            return _METHOD_PARAMETERS.get(function.__name__, ("array",)), ""
        return (), ""
    names = tuple(each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD))
    rest = next((each.name for each in parameters if each.kind == each.VAR_POSITIONAL), "")
    return names, rest


def _diagonal(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Regions:
    a = args[0] if args else kwargs["a"]
    options = dict(zip(("offset", "axis1", "axis2"), args[1:4], strict=False))
    options.update({name: kwargs[name] for name in ("offset", "axis1", "axis2") if name in kwargs})
    return {id(a): (a._host.diagonal(**options),)}


def _main_diagonal(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Regions:
    """Return the elements that ``fill_diagonal`` writes, in each block of rows if the diagonal wraps."""
    a = args[0] if args else kwargs["a"]
    host = a._host
    wrap = kwargs.get("wrap", args[2] if len(args) > 2 else False)
    if host.ndim != 2 or (wrap and host.shape[0] > host.shape[1]):
        return {}
    return {id(a): (host.diagonal(),)}


PARTIAL[np.trace] = _diagonal
PARTIAL[np.fill_diagonal] = _main_diagonal
