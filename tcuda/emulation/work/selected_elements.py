"""Selected elements: the elements of an array that a function uses, if the contents of an index or a mask decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.numbers import arithmetic, casts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    Addresses = npt.NDArray[np.intp]
    Selected = Mapping[int, Addresses]
    """The addresses of the elements that a function uses of an array, by the ``id`` of the NumPy array."""

SELECTIONS: dict[Callable[..., Any], Callable[[Sequence[Any], Mapping[str, Any]], Selected]] = {}
"""Functions that use some elements of their arguments, each with a function that finds the elements.

The arguments are NumPy arrays over memory of a device. The function uses all elements of the other arguments.
"""


def moved(host: npt.NDArray[Any], move: Callable[[npt.NDArray[Any]], Any]) -> Addresses:
    """Return the addresses of the elements of ``host`` in ``move(host)``, a function that only moves elements.

    The function is called with the distances along each axis, which are arrays without memory of their own. So a
    function that selects few elements of a large array takes little time.
    """
    return _moved(host, [np.arange(length) * stride for length, stride in _axes(host)], move)


def _moved(host: npt.NDArray[Any], steps: Sequence[Addresses], move: Callable[[npt.NDArray[Any]], Any]) -> Addresses:
    """Return what :func:`moved` does for the elements of ``host`` at some distances along each axis."""
    shape = tuple(map(len, steps))
    addresses = np.asarray(move(np.broadcast_to(np.intp(host.ctypes.data), shape)), np.intp)
    for axis, each in enumerate(steps):
        addresses = addresses + move(np.broadcast_to(each.reshape(-1, *[1] * (len(shape) - axis - 1)), shape))
    return addresses


def of_index(host: npt.NDArray[Any], index: Any) -> Addresses:
    """Return the addresses of the elements of ``host[index]``.

    Only the places that the index names are looked at, however long the axes are.

    Raises:
        IndexError: The index is wrong for the array.
    """
    steps: list[Addresses] = []
    items: list[Any] = []
    given = index if isinstance(index, tuple) else (index,)
    used = sum(map(_axes_of, given))
    if used > host.ndim:
        raise IndexError(f"too many indices: the array has {host.ndim} axes, and {used} are indexed")
    for item in given if any(item is Ellipsis for item in given) else (*given, Ellipsis):
        axis = len(steps)
        places, named = item, _axes_of(item)
        if item is Ellipsis:
            named = host.ndim - used
        elif isinstance(item, slice):
            chosen, places = np.arange(*item.indices(host.shape[axis])), slice(None)
        elif named == 1 and np.asarray(item).dtype.kind in "iu":
            chosen, places = _places(np.asarray(item, np.intp), host.shape[axis])
        if places is item:  # a mask, a new axis, or whole axes
            steps += [np.arange(length) * stride for length, stride in _axes(host)[axis : axis + named]]
        else:
            steps.append(chosen * host.strides[axis])
        items.append(places)
    return _moved(host, steps, lambda distances: distances[tuple(items)])


def _axes(host: npt.NDArray[Any]) -> list[tuple[int, int]]:
    return [*zip(host.shape, host.strides, strict=True)]


def _axes_of(item: Any) -> int:
    """Return how many axes an item of an index takes; 0 for an Ellipsis."""
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, slice):
        return 1
    array = np.asarray(item)
    return array.ndim if array.dtype.kind == "b" else 1


def _places(numbers: Addresses, length: int) -> tuple[Addresses, Any]:
    """Return the different places that ``numbers`` name, and the numbers as an index of these places.

    Numbers beyond the axis are beyond the places too. NumPy refuses such an index, unless it selects nothing.
    """
    if numbers.size and not -length <= int(numbers.min()) <= int(numbers.max()) < length:
        return np.zeros(1, np.intp), np.ones(numbers.shape, np.intp)[()]
    chosen, places = np.unique(np.where(numbers < 0, numbers + length, numbers), return_inverse=True)
    return chosen, places.reshape(numbers.shape)[()]


def of_mask(host: npt.NDArray[Any], mask: npt.NDArray[Any]) -> Addresses:
    """Return the addresses of the elements at which ``mask`` is true, of ``host`` in the shape of ``mask``."""
    return of_index(np.broadcast_to(host, mask.shape), mask)


def _enter_moving(place: int, name: str) -> Callable[[Callable[..., Any]], None]:
    """Enter functions that return elements of one argument, wherever these come to lie in the result.

    Args:
        place: The place of the argument among the positional arguments.
        name: The name of the argument.
    """

    def enter(function: Callable[..., Any]) -> None:
        def select(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Selected:
            options = {key: value for key, value in kwargs.items() if key != "out"}
            by_place = place < len(args)
            host = args[place] if by_place else options[name]

            def move(places: npt.NDArray[Any]) -> Any:
                if by_place:
                    return function(*args[:place], places, *args[place + 1 :], **options)
                return function(*args, **{**options, name: places})

            return {id(host): moved(host, move)}

        SELECTIONS[function] = select

    return enter


_enter_moving(0, "a")(np.take)
_enter_moving(0, "arr")(np.take_along_axis)
_enter_moving(0, "arr")(np.delete)
_enter_moving(1, "a")(np.compress)
_enter_moving(1, "arr")(np.extract)


def _at_index(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Selected:
    return {id(args[0]): of_index(args[0], args[1])}


def _of_flat(host: npt.NDArray[Any], numbers: npt.NDArray[Any]) -> Addresses:
    """Return the addresses of the elements with the given numbers in row-major order."""
    return moved(host, lambda places: np.take(places, numbers))


_NOTHING: Addresses = np.zeros(0, np.intp)


def _put(a: Any, ind: Any, v: Any, mode: str = "wrap") -> Selected:
    if np.size(v) == 0:
        return {id(a): _NOTHING}
    if mode == "wrap":
        ind = arithmetic.wrapped(ind, a.size)
    return {id(a): moved(a, lambda places: np.take(places, ind, mode=mode))}  # type: ignore[call-overload]


def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any = None) -> Selected:
    return {id(arr): moved(arr, lambda places: np.take_along_axis(places, indices, axis))}


def _place(arr: Any, mask: Any, vals: Any) -> Selected:
    used = {id(arr): moved(arr, lambda places: np.extract(mask, places))}
    if isinstance(vals, np.ndarray):
        used[id(vals)] = _of_flat(vals, np.arange(min(vals.size, int(np.count_nonzero(mask)))))
    return used


def _putmask(a: Any, mask: Any, values: Any) -> Selected:
    if np.size(values) == 0:
        return {id(a): _NOTHING}
    used = {id(a): moved(a, lambda places: np.extract(mask, places))}
    if isinstance(values, np.ndarray):
        used[id(values)] = _of_flat(values, np.flatnonzero(mask) % values.size)
    return used


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> Selected:
    mask = np.broadcast_to(where, dst.shape)
    used = {id(dst): of_mask(dst, mask)}
    if isinstance(src, np.ndarray):
        more = max(0, src.ndim - dst.ndim)  # axes of one element, which NumPy leaves out
        used[id(src)] = of_mask(src.reshape(src.shape[more:]), mask)
    return used


def _choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Selected:
    if mode == "wrap":
        a = arithmetic.wrapped(a, len(choices))
    return {id(choices): moved(choices, lambda places: np.choose(a, places, mode=mode))}  # type: ignore[call-overload]


def _spread(function: Callable[..., Selected]) -> Callable[[Sequence[Any], Mapping[str, Any]], Selected]:
    return lambda args, kwargs: function(*args, **kwargs)


SELECTIONS[np.put_along_axis] = _spread(_put_along_axis)
SELECTIONS[np.place] = _spread(_place)
SELECTIONS[np.putmask] = _spread(_putmask)
SELECTIONS[casts.copyto] = _spread(_copyto)


def enter_put(function: Callable[..., Any]) -> None:
    """Enter a function with the parameters of ``numpy.put``."""
    SELECTIONS[function] = _spread(_put)


def enter_choose(function: Callable[..., Any]) -> None:
    """Enter a function with the parameters of ``numpy.choose``."""
    SELECTIONS[function] = _spread(_choose)


def enter_indexed(function: Callable[..., Any]) -> None:
    """Enter a function that uses the elements of its first argument at the index that is its second argument."""
    SELECTIONS[function] = _at_index


def depends_on_contents(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether the contents of arrays decide which elements ``function`` uses."""
    if function not in SELECTIONS:
        return False
    if function is casts.copyto:
        return "where" in kwargs or len(args) > 3
    if SELECTIONS[function] is _at_index:
        return any(hasattr(item, "shape") for item in args[1])
    return True


def selected(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Selected:
    """Return the addresses of the elements that ``function`` uses, without an entry if the arguments are wrong."""
    try:
        return SELECTIONS[function](args, kwargs)
    except (ArithmeticError, IndexError, TypeError, ValueError):
        return {}  # The function itself raises the error.
