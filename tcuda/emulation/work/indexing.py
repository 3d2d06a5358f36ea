"""Indexing: reading and writing the elements that the brackets of an array select."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from tcuda._process.lazy import cuda
from tcuda.emulation.devices import array_interface
from tcuda.emulation.devices.strided import ARRAYS, Strided
from tcuda.emulation.names import catalogue
from tcuda.emulation.numbers import casts, structured
from tcuda.emulation.work import accesses, copies, creation, numpy_work, passed_marks, refusals, selected_elements
from tcuda.emulation.work.filling import scalar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from tcuda.emulation.work.accesses import Regions


_LEAST, _MOST = -(2**63), 2**63 - 1
_ENDS = frozenset([int, type(None)])
"""The usual types of the ends of slices."""


def getitem(array: Strided, index: Any) -> Any:
    """Return ``array[index]``: a copy if the index contains an array, and a view otherwise."""
    cuda.name  # noqa: B018  # in a forked child of a process that has used devices, the runtime raises torch's error
    is_plain = type(array) is Strided.array_type
    if is_plain and type(index) is slice:  # the most frequent indices, which need no preparation and name no fields
        if type(index.start) not in _ENDS or type(index.stop) not in _ENDS or type(index.step) not in _ENDS:
            index = _with_numbers(index)
        view = ARRAYS.slice(array, index)
        return _refuse_integer() if view is None else view
    if is_plain and type(index) is int and _LEAST <= index <= _MOST:
        return Strided.array_type._part_of(array, array._host[index, ...])
    if array._host.dtype.fields is not None and _names_fields(index):
        return _field(array, index)
    items = prepare(index)
    for item in items:
        if isinstance(item, Strided):
            _wait_for_masks(items)
            if refusals.needs_contents(items):
                with numpy_work.with_contents():
                    return numpy_work.call(_select, (array, items))
            return numpy_work.call(_select, (array, items))
    return numpy_work.view(_select, (array, items))


def setitem(array: Strided, index: Any, value: Any) -> None:
    """Assign ``value`` to ``array[index]``.

    Raises:
        ValueError: ``value`` is on the host and has an axis, and the index contains no array. CuPy refuses such a
            value, too.
    """
    if array._host.dtype.fields is not None and _names_fields(index):
        array, index = _field(array, index), ...
    items = prepare(index)
    with_arrays = any(isinstance(item, Strided) for item in items)
    if with_arrays:
        _wait_for_masks(items)
    if not isinstance(value, Strided):
        given = array_interface.array_of(value)
        value = value if given is None else given
    if not isinstance(value, Strided):
        value = creation.array(value, dtype=array.dtype) if with_arrays else scalar(value, array.dtype)
    elif (
        not with_arrays
        and copies.is_between_devices(array, value)
        and copies.copy_between_devices(numpy_work.view(_select, (array, items)), value)
    ):
        return
    if refusals.needs_contents(items):
        with numpy_work.with_contents():
            numpy_work.modify(_assign, (array, items, value))
    else:
        numpy_work.modify(_assign, (array, items, value))


def prepare(index: Any) -> tuple[Any, ...]:
    """Return ``index`` as a tuple with an Ellipsis in it, with lists and NumPy arrays copied to the device.

    With the Ellipsis, NumPy returns a single element as an array without axes and not as a scalar.

    Raises:
        IndexError: An array in ``index`` has neither integers nor booleans.
        OverflowError: An integer in ``index`` does not fit into 64 bits.
        RuntimeError: An array in ``index`` has booleans, and the current stream captures.
    """
    given = index if isinstance(index, tuple) else (index,)
    refusals.require_indices(given)
    items = tuple(map(_item, given))
    for item in items:
        if item is Ellipsis:
            return items
    return *items, Ellipsis


def array_of_indices(indices: Any) -> Any:
    """Return ``indices`` as an array on the device; an integer stays an integer.

    Raises:
        IndexError: ``indices`` are neither integers nor booleans.
    """
    if isinstance(indices, (int, np.integer)) and not isinstance(indices, bool):
        return indices
    if not isinstance(indices, Strided) and (not isinstance(indices, np.ndarray) or indices.dtype.kind in "biu"):
        # An empty list has no type, and NumPy would make an array of floats from it.
        indices = creation.array(indices, dtype=np.intp if _is_empty(indices) else None)
    if indices.dtype.kind not in "biu":
        raise IndexError(
            f"arrays used as indices must be of integer or boolean type (actual: {indices.dtype.type.__name__})"
        )
    return indices


def _is_empty(indices: Any) -> bool:
    return isinstance(indices, (list, tuple)) and all(map(_is_empty, indices))


def _names_fields(index: Any) -> bool:
    return isinstance(index, str) or (isinstance(index, list) and all(isinstance(name, str) for name in index))


def _field(array: Strided, name: str | list[str]) -> Strided:
    """Return a view of a field, or of several fields, of the elements of ``array``.

    Raises:
        ValueError: There is no such field, the field is an array, or no kernel could read the field where it lies.
    """
    fields: Mapping[str, Any] = array.dtype.fields or {}
    if isinstance(name, str):
        if name not in fields:
            raise ValueError(f"no field name of {name}")
        kind = fields[name][0]
        if kind.shape:
            raise ValueError(
                "CuPy does not yet support accessing nested subarrays, please open an issue if you need this support."
            )
    host = array._host[name]
    view = type(array)._view_of(array, host)
    size = host.dtype.itemsize
    if (
        not structured.is_structured(host.dtype)
        and host.size
        and any(place % size for place in (host.ctypes.data, *host.strides))
    ):
        raise ValueError(
            f"The result array with dtype {host.dtype} and strides {host.strides} is not sufficiently aligned for GPU "
            "use. make_aligned_dtype() makes a dtype whose fields are aligned."
        )
    return view


def _wait_for_masks(items: Iterable[Any]) -> None:
    """Wait for the contents of a mask among ``items``, as CuPy does to count the elements that the mask selects."""
    if any(isinstance(item, Strided) and item.dtype == bool and item.size for item in items):
        copies.wait_for_contents("indexing with a mask")


def _item(item: Any) -> Any:
    if type(item) is int:
        if not _LEAST <= item <= _MOST:
            _refuse_integer()
        return item
    if type(item) is slice:
        item = _with_numbers(item)
        for end in _ends(item):
            if type(end) is int and not _LEAST <= end <= _MOST:
                _refuse_integer()
        return item
    if isinstance(item, (Strided, bool, np.bool_, list, tuple, np.ndarray)):
        return array_of_indices(item)
    given = array_interface.array_of(item)
    return item if given is None else array_of_indices(given)


def _with_numbers(given: slice) -> slice:
    """Return a slice whose ends are numbers; an end may be an array without axes, which is read."""
    return slice(*[int(cast("Any", end)) if isinstance(end, Strided) else end for end in _ends(given)])


def _ends(given: slice) -> tuple[Any, Any, Any]:
    return given.start, given.stop, given.step


def _refuse_integer() -> NoReturn:
    raise OverflowError("An index of an array is an integer of 64 bits; a larger one was given.")


def _select(a: npt.NDArray[Any], index: tuple[Any, ...]) -> npt.NDArray[Any]:
    selected: npt.NDArray[Any] = a[index]
    return selected


def _assign(a: npt.NDArray[Any], index: tuple[Any, ...], value: Any) -> None:
    a[index] = casts.fitting(value, a.dtype)


def _indexed(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Regions:
    """Return the elements that an index selects, which are the second argument and the first."""
    array, index = args[:2]
    return {id(array): (array._host[index],)}


for _function in (_select, _assign, *(getattr(np, name).at for name in catalogue.CHANGING)):
    accesses.PARTIAL[_function] = _indexed
    selected_elements.enter_indexed(_function)
    passed_marks.enter_indexed(_function)
passed_marks.RULES[_select] = passed_marks.moved_by(0)
passed_marks.RULES[_assign] = passed_marks.of_value
