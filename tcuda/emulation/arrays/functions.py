"""The functions of the catalogue, made from the functions of NumPy by one rule for each kind of function."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda._device import device
from tcuda.emulation.arrays import duck_arrays, solving, translation
from tcuda.emulation.arrays.signatures import OfOtherLibrary, signature_of
from tcuda.emulation.arrays.translation import IN_PLACE_OF, Translation
from tcuda.emulation.arrays.ufunc import ufunc
from tcuda.emulation.devices.strided import Strided, as_plain, of_class, template_among
from tcuda.emulation.names import catalogue
from tcuda.emulation.numbers import flops
from tcuda.emulation.work import active_trace, copies, creation, indexing, numpy_work, refusals
from tcuda.emulation.work.active_trace import Placeholder

if TYPE_CHECKING:
    from types import ModuleType


Function = Callable[..., Any]
_MANY = 1 << 24
_REDUCTIONS: dict[Function, Function] = {
    IN_PLACE_OF.get(getattr(np, name), getattr(np, name)): getattr(np.ndarray, name)
    for name in ("all", "any", "max", "mean", "min", "prod", "std", "sum", "var")
}
"""Functions that give one number for one array, and the methods of NumPy's arrays that do the same in less time."""
Work = Callable[[Sequence[Any], Mapping[str, Any]], Any]


def _viewing(function: Function) -> Work:
    if function is np.imag:
        return _imaginary
    if function is np.broadcast_arrays:
        return _broadcasting
    if function is np.moveaxis:
        return _moving
    if function in (np.atleast_1d, np.atleast_2d, np.atleast_3d):
        return _listing(functools.partial(numpy_work.view, function))
    if function in (np.array_split, np.hsplit, np.split, np.vsplit, np.dsplit):
        return _splitting(function)
    return functools.partial(numpy_work.view, function)


def _listing(work: Work) -> Work:
    """Return ``work`` with a list in the place of a tuple of several results."""

    def compute(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        made = work(args, kwargs)
        return list(made) if isinstance(made, tuple) else made

    return compute


def _imaginary(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return the imaginary parts. In CuPy, the result gets the class of the array and none of its attributes."""
    array = args[0] if args else kwargs["val"]
    if not isinstance(array, Strided):
        return numpy_work.view(np.imag, args, kwargs)
    parts = numpy_work.view(np.imag, (as_plain(array),))
    return (
        parts if type(array) is Strided.array_type else type(array)._made(parts._block, parts._host, parts._base, None)
    )


def _broadcasting(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Broadcast arrays against each other. CuPy returns other arguments as they are."""
    parts = numpy_work.view(np.broadcast_arrays, args, kwargs)
    made = [part if isinstance(given, Strided) else given for part, given in zip(parts, args, strict=True)]
    return type(parts)(made)


def _moving(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Move axes. In CuPy, an array whose axes stay where they are is returned as it is."""
    view = numpy_work.view(np.moveaxis, args, kwargs)
    array = args[0] if args else kwargs["a"]
    return array if (view.shape, view.strides) == (array.shape, array.strides) else view


def _splitting(function: Function) -> Work:
    """Return the work of a function that splits an array, and that returns the array itself as the only part."""

    def split(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        parts = numpy_work.view(function, args, kwargs)
        return parts if len(parts) > 1 or not args else [args[0]]

    return split


def _of_class(name: str, work: Work) -> Work:
    """Return ``work`` with results of the class of the first operand of a subclass."""

    def compute(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        made = work(args, kwargs)
        operands = (*args, *kwargs.values())
        template = template_among(operands)
        if name == "ediff1d" and len(operands) > 1:  # CuPy joins three arrays
            return made
        if template is None or not isinstance(made, Strided) or any(made is operand for operand in operands):
            return made
        if name in ("iscomplex", "isreal"):  # CuPy compares the imaginary parts
            if template.dtype.kind != "c":
                return made
            template = _imaginary((template,), {})
        return of_class(template, made)

    return compute


def _computing(function: Function) -> Work:
    if function is np.nan_to_num:
        return _cleaning(function)
    if function is translation.einsum:
        return _contracting(function)
    if function is np.lexsort:
        return _sorting_by_keys(function)
    if function is np.meshgrid:
        return _meshing
    if function is np.pad:
        return _padding(function)
    if function is translation.poly:
        return _expanding(function)
    estimate = flops.ESTIMATES.get(function)

    def compute(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return numpy_work.call(function, args, kwargs, flops=estimate)

    return _listing(compute) if function is np.gradient else compute


def _contracting(function: Function) -> Work:
    """Return the work of ``einsum``, whose result may be a view of a single array."""
    estimate = flops.ESTIMATES[np.einsum]

    def contract(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        arrays = [arg for arg in args if isinstance(arg, Strided)]
        if len(arrays) == 1 and not arrays[0].size and kwargs.get("out") is None:
            # The address of an array without elements does not tell whether the result is a view.
            base = getattr(function(*map(_host, args), **kwargs), "base", None)
            if base is arrays[0]._host or (base is not None and base is arrays[0]._host.base):
                return numpy_work.view(function, args, kwargs)
        return numpy_work.call(function, args, kwargs, flops=estimate)

    return contract


def _sorting_by_keys(function: Function) -> Work:
    def sort(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        keys = args[0] if args else kwargs.get("keys")
        if isinstance(keys, Strided) and keys.ndim > 2:
            raise NotImplementedError("Keys with the rank of three or more is not supported in lexsort")
        return numpy_work.call(function, args, kwargs)

    return sort


def _meshing(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if any(not isinstance(array, Strided) or array.ndim != 1 for array in args):
        raise ValueError("input has to be 1d: meshgrid() takes arrays of the device with one axis.")
    if len(args) <= 1:
        return tuple(args)
    return numpy_work.call(np.meshgrid, args, kwargs)


def _expanding(function: Function) -> Work:
    """Return the work of ``poly``, whose result for no roots is a number of Python."""

    def expand(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        roots = args[0] if args else kwargs["seq_of_zeros"]
        return 1.0 if roots.shape == (0,) else numpy_work.call(function, args, kwargs)

    return expand


def _padding(function: Function) -> Work:
    """Return the work of ``pad``, whose mode may be a function that fills the borders of each line of an array."""

    def pad(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        names = ("array", "pad_width", "mode")
        options = {**dict(zip(names, args, strict=False)), **kwargs}
        fill = options.pop("mode", None)
        if not callable(fill):
            return numpy_work.call(function, args, kwargs)
        array, width = options.pop("array"), options.pop("pad_width")
        padded: Any = numpy_work.call(function, (array, width))
        for axis, pair in enumerate(np.broadcast_to(width, (padded.ndim, 2)).tolist()):
            lines: Any = numpy_work.view(np.moveaxis, (padded, axis, -1))
            for place in np.ndindex(lines.shape[:-1]):
                fill(lines[place], tuple(pair), axis, options)
        return padded

    return pad


def _cleaning(function: Function) -> Work:
    """Return the work of ``nan_to_num``, which changes its first argument if the argument ``copy`` is false."""

    def clean(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        wants_copy = args[1] if len(args) > 1 else kwargs.get("copy", True)
        if wants_copy or not args:
            return numpy_work.call(function, args, kwargs)
        numpy_work.modify(function, args, kwargs, reads_target=True)
        return args[0]

    return clean


def _solving(function: Function) -> Work:
    name = function.__name__.strip("_")
    if name in catalogue.SOLVING or name in ("matrix_power", "norm"):
        work = solving.work_of(function)
        # CuPy's tuples have no names for their parts.
        return lambda args, kwargs: tuple(made) if isinstance(made := work(args, kwargs), tuple) else made
    return _computing(function)


def _generating(function: Function) -> Work:
    size = catalogue.GENERATING[function.__name__]

    def generate(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        _require_room(size, args, kwargs)
        return numpy_work.call(function, args, kwargs)

    return generate


def _require_room(size: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse a result for which the device has no room, before NumPy makes the result in memory of the host.

    Raises:
        OutOfMemoryError: The device has no room for the result.
    """
    try:
        length = size(*args, **kwargs)
    except (ArithmeticError, TypeError, ValueError):
        return  # The NumPy function raises the error of the wrong arguments.
    if length > _MANY:
        numpy_work.new(math.ceil(length), float)


def _indexed(function: Function) -> Work:
    place = catalogue.INDEXED[function.__name__]

    def compute(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if function is np.take:
            _require_same_dtype(args[0] if args else kwargs.get("a"), kwargs.get("out"))
        elif function is np.compress and args:
            condition = args[0] if isinstance(args[0], Strided) else creation.array(args[0], dtype=int)
            return numpy_work.call(function, (condition, *args[1:]), kwargs)
        elif function is np.unravel_index and isinstance(args[0], Strided):  # NumPy refuses floating-point indices
            return numpy_work.call(function, args, kwargs)
        return numpy_work.call(function, *_with_indices(args, kwargs, place))

    return compute


def _require_same_dtype(a: Any, out: Any) -> None:
    if isinstance(a, Strided) and isinstance(out, Strided) and a.dtype != out.dtype:
        raise TypeError(f"Output dtype mismatch: the elements are of {a.dtype}, and the output is of {out.dtype}")


def _sorting(function: Function) -> Work:
    def sort(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        a, axis, kind = _sorted(*args, **kwargs)
        if kind not in (None, "stable"):
            raise ValueError(f"kind can only be None or 'stable', not {kind!r}")
        if isinstance(a, Strided) and a.dtype.kind == "V":
            raise NotImplementedError(f"Sorting arrays with dtype '{a.dtype}' is not supported")
        return numpy_work.call(function, (a,), {"axis": axis, "kind": "stable"})

    return sort


def _sorted(a: Any, axis: int | None = -1, kind: str | None = None) -> tuple[Any, int | None, str | None]:
    return a, axis, kind


def _writing(function: Function) -> Work:
    def write(args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        numpy_work.modify(function, args, kwargs)

    return write


def _copying(function: Function) -> Work:
    """Return the work of a function that copies, also between devices."""
    write = _writing(function)

    def copy(args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        target, source, casting, where = _copied(*args, **kwargs)
        if where is not None or not copies.is_between_devices(target, source):
            write(args, kwargs)
        elif not copies.copy_between_devices(target, source):
            with device(target._block.device):
                write((target, copies.to_current_device(source, "C")), {"casting": casting})

    return copy


def _copied(dst: Any, src: Any, casting: str = "same_kind", where: Any = None) -> tuple[Any, Any, str, Any]:
    return dst, src, casting, where


def _writing_indexed(function: Function) -> Work:
    place = catalogue.WRITING_INDEXED[function.__name__.strip("_")]

    def write(args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        numpy_work.modify(function, *_with_indices(args, kwargs, place))

    return write


def _asking(function: Function) -> Work:
    if function is np.shares_memory:
        function = _shares_memory

    def ask(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return function(*map(_host, args), **{name: _host(value) for name, value in kwargs.items()})

    return ask


def _shares_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Call NumPy's function with its number for a name that CuPy allows as ``max_work``."""
    if isinstance(max_work, str) and max_work == "MAY_SHARE_BOUNDS":
        return np.may_share_memory(a, b)
    if isinstance(max_work, str) and max_work == "MAY_SHARE_EXACT":
        return np.shares_memory(a, b)
    return np.shares_memory(a, b, max_work)


def _host(value: Any) -> Any:
    return value._host if isinstance(value, Strided) else value


def _with_indices(
    args: Sequence[Any], kwargs: Mapping[str, Any], place: int
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return the arguments with the indices, which are the argument at ``place``, as an array on the device."""
    arguments = list(args)
    if not isinstance(arguments[place], slice):
        arguments[place] = indexing.array_of_indices(arguments[place])
    return arguments, kwargs


_KINDS: tuple[tuple[Iterable[str], Callable[[Function], Work]], ...] = (
    (catalogue.VIEWS, _viewing),
    (catalogue.COMPUTING, _computing),
    (catalogue.GENERATING, _generating),
    (catalogue.INDEXED, _indexed),
    (catalogue.SORTING, _sorting),
    (catalogue.COPYING, _copying),
    (catalogue.WRITING, _writing),
    (catalogue.WRITING_INDEXED, _writing_indexed),
    (catalogue.ASKING, _asking),
)

IMPLEMENTATIONS: dict[Any, Any] = {}
"""The functions for devices by the NumPy functions that do the same; NEP 13 and NEP 18 dispatch to them."""

_WORKS: dict[str, tuple[Function, Work]] = {}
"""By name: the function of the host that computes, and the work that runs this function on the device."""


def _bound(name: str, function: Function, work: Work, rules: str = "", *, is_method: bool = False) -> Function:
    """Return ``work`` as the function or method ``name``, with CuPy's parameters.

    Args:
        name: The name of the row in the table of signatures.
        function: The function of the host that computes.
        work: Called with the positional arguments and the keyword arguments.
        rules: The name of the function whose rules say which calls read the contents of arrays. Such a call waits
            before ``work``, and is refused while the current stream captures.
        is_method: Whether a method of the array calls the function, which then calls no methods itself.
    """
    signature = signature_of(name)
    admit = signature.admit
    translation = Translation(signature, function)
    translated = translation.arguments
    guard, reads = refusals.guard_of(rules), refusals.condition_to_read(rules)
    calls_methods, changed = name in duck_arrays.CALLS and not is_method, duck_arrays.CHANGED
    takes_array_alone = guard is None and reads is None and signature.takes_array_alone and translation.keeps_first

    def work_on_array(array: Any) -> Any:
        return work((array,), {})

    if function in _REDUCTIONS:
        work_on_array = numpy_work.at_once(_REDUCTIONS[function], work_on_array)

    def call(*args: Any, **kwargs: Any) -> Any:
        if changed and calls_methods and duck_arrays.has_other_methods(args, kwargs):
            return duck_arrays.call_methods(signature, args, kwargs)
        if takes_array_alone and len(args) == 1 and not kwargs and isinstance(args[0], Strided):
            return work_on_array(args[0])  # the most frequent call of a method, which needs no translation
        trace = active_trace.current()
        if trace is not None and any(isinstance(value, Placeholder) for value in (*args, *kwargs.values())):
            return trace.call_function(name, args, kwargs)
        try:
            admitted = admit(args, kwargs)
        except OfOtherLibrary as found:
            return duck_arrays.call(signature, found, args, kwargs)
        if admitted is None:
            arguments, options = translated(args, kwargs)
            return function(*arguments, **options)
        if guard is not None and numpy_work.defers() and guard(*admitted):
            if reads is not None and reads(*admitted):
                copies.wait_for_contents(name)
            with numpy_work.with_contents():
                return work(*translated(*admitted))
        if reads is not None and reads(*admitted):
            copies.wait_for_contents(name)
        return work(*translated(*admitted))

    call.__signature__ = signature.described  # type: ignore[attr-defined]
    return call


def named(function: Function, module: str, name: str, doc: str | None) -> Function:
    """Return ``function`` with a name, by which it can be pickled."""
    function.__module__, function.__name__, function.__qualname__ = module, name.rpartition(".")[2], name
    function.__doc__ = doc
    return function


def emulated(module: ModuleType, names: Iterable[str], works: Callable[[Function], Work]) -> dict[str, Any]:
    """Return, by name, the functions that ``works`` makes of the functions of ``module``, a module of NumPy.

    Names that the installed version of NumPy does not have are left out.
    """
    made = {}
    prefix = module.__name__.removeprefix("numpy").lstrip(".")
    for name in names:
        original = getattr(module, name, None)
        if original is None:
            continue
        if original not in IMPLEMENTATIONS:  # A function with two names is made once.
            full_name = f"{prefix}.{name}" if prefix else name
            function = IN_PLACE_OF.get(original, original)
            work = _of_class(name, works(function)) if name in catalogue.OF_CLASS else works(function)
            bound = _bound(full_name, function, work, name)
            _WORKS[full_name] = function, work
            home = f"tcuda.emulation.arrays.{prefix}" if prefix else "tcuda.emulation.xp"
            IMPLEMENTATIONS[original] = named(bound, home, name, original.__doc__)
        made[name] = IMPLEMENTATIONS[original]
    return made


def method(name: str) -> Function:
    """Return the function ``name`` of the namespace as a method of arrays, with the parameters of CuPy's method."""
    function, work = _WORKS[name]
    bound = _bound(f"ndarray.{name}", function, work, name)
    return named(bound, "tcuda.emulation", f"ndarray.{name}", function.__doc__)


def for_method(name: str) -> Function:
    """Return the function ``name`` of the namespace for a method of arrays with other parameters than the function."""
    function, work = _WORKS[name]
    return _bound(name, function, work, name, is_method=True)


def _created(name: str) -> Function:
    """Return the function ``name`` of :mod:`~tcuda.emulation.work.creation` for the arguments that CuPy takes."""
    function: Function = getattr(creation, name)
    bound = _bound(name, getattr(np, name), lambda args, kwargs: function(*args, **kwargs))
    return named(bound, "tcuda.emulation.xp", name, function.__doc__)


def _table() -> dict[str, Any]:
    table: dict[str, Any] = {}
    for name in catalogue.UFUNCS:
        function = getattr(np, name, None)
        if function is not None:
            table[name] = IMPLEMENTATIONS[function] = ufunc(function)
    for names, works in _KINDS:
        table.update(emulated(np, names, works))
    table.update({alias: table[name] for alias, name in catalogue.ALIASES.items() if name in table})
    for name in catalogue.OF_ARRAYS:
        table[name] = _created(name)
        if name != "astype":
            IMPLEMENTATIONS[getattr(np, name)] = table[name]
    return table


FUNCTIONS = _table()
"""The functions of :mod:`tcuda.emulation.xp` that run a NumPy function on memory of a device, by name."""

LINALG = emulated(np.linalg, catalogue.LINALG, _solving)
"""The functions of :mod:`tcuda.emulation.arrays.linalg`, by name."""
