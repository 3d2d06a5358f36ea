"""Selected elements: the elements of an array that a function uses, if the contents of an index or a mask decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.translation import IN_PLACE_OF

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


def addresses_of(host: npt.NDArray[Any]) -> Addresses:
    """Return the address of each element of ``host``, in an array of the same shape."""
    addresses = np.full(host.shape, host.ctypes.data, np.intp)
    for axis, (length, stride) in enumerate(zip(host.shape, host.strides, strict=True)):
        steps = np.arange(length, dtype=np.intp) * stride
        addresses += steps.reshape(length, *[1] * (host.ndim - axis - 1))
    return addresses


def of_index(host: npt.NDArray[Any], index: Any) -> Addresses:
    """Return the addresses of the elements of ``host[index]``."""
    selected: Addresses = addresses_of(host)[index]
    return selected


def of_mask(host: npt.NDArray[Any], mask: npt.NDArray[Any]) -> Addresses:
    """Return the addresses of the elements at which ``mask`` is true, of ``host`` in the shape of ``mask``."""
    return of_index(np.broadcast_to(host, mask.shape), mask)


def _moved(place: int, name: str) -> Callable[[Callable[..., Any]], None]:
    """Enter functions that return elements of one argument, wherever these come to lie in the result.

    The function is called with the addresses in the place of the elements.
    """

    def enter(function: Callable[..., Any]) -> None:
        def select(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Selected:
            options = {key: value for key, value in kwargs.items() if key != "out"}
            arguments = list(args)
            host = arguments[place] if place < len(args) else options[name]
            if place < len(args):
                arguments[place] = addresses_of(host)
            else:
                options[name] = addresses_of(host)
            return {id(host): np.asarray(function(*arguments, **options))}

        SELECTIONS[function] = select

    return enter


_moved(0, "a")(np.take)
_moved(0, "arr")(np.take_along_axis)
_moved(0, "arr")(np.delete)
_moved(1, "a")(np.compress)
_moved(1, "arr")(np.extract)


def _at_index(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Selected:
    return {id(args[0]): of_index(args[0], args[1])}


def _put(a: Any, ind: Any, v: Any, mode: str = "wrap") -> Selected:
    return {id(a): np.take(addresses_of(a), ind, mode=mode)}  # type: ignore[call-overload]


def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any = None) -> Selected:
    return {id(arr): np.take_along_axis(addresses_of(arr), indices, axis)}


def _place(arr: Any, mask: Any, vals: Any) -> Selected:
    used = {id(arr): np.extract(mask, addresses_of(arr))}
    if isinstance(vals, np.ndarray):
        used[id(vals)] = addresses_of(vals).reshape(-1)[: np.count_nonzero(mask)]
    return used


def _putmask(a: Any, mask: Any, values: Any) -> Selected:
    used = {id(a): np.extract(mask, addresses_of(a))}
    if isinstance(values, np.ndarray) and values.size:
        used[id(values)] = addresses_of(values).reshape(-1)[np.flatnonzero(mask) % values.size]
    return used


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> Selected:
    mask = np.broadcast_to(where, dst.shape)
    used = {id(dst): of_mask(dst, mask)}
    if isinstance(src, np.ndarray):
        used[id(src)] = of_mask(src, mask)
    return used


def _choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Selected:
    return {id(choices): np.choose(a, addresses_of(choices), mode=mode)}  # type: ignore[call-overload]


def _spread(function: Callable[..., Selected]) -> Callable[[Sequence[Any], Mapping[str, Any]], Selected]:
    return lambda args, kwargs: function(*args, **kwargs)


SELECTIONS[IN_PLACE_OF[np.put]] = _spread(_put)
SELECTIONS[np.put_along_axis] = _spread(_put_along_axis)
SELECTIONS[np.place] = _spread(_place)
SELECTIONS[np.putmask] = _spread(_putmask)
SELECTIONS[np.copyto] = _spread(_copyto)
SELECTIONS[np.choose] = _spread(_choose)


def enter_indexed(function: Callable[..., Any]) -> None:
    """Enter a function that uses the elements of its first argument at the index that is its second argument."""
    SELECTIONS[function] = _at_index


def depends_on_contents(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether the contents of arrays decide which elements ``function`` uses."""
    if function not in SELECTIONS:
        return False
    if function is np.copyto:
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
