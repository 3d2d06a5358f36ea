"""Functions between arrays of a device and the host: NumPy's arrays, buffers, files and text."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.arrays.functions import IMPLEMENTATIONS
from tcuda.emulation.devices import array_interface
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.work import copies, creation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt


def asnumpy(
    a: Any,
    stream: Any = None,
    order: str = "C",
    out: npt.NDArray[Any] | None = None,
    *,
    blocking: bool = True,
) -> npt.NDArray[Any]:
    """Return ``a`` as a NumPy array.

    Args:
        a: An array of a device, which is copied, or an object from which NumPy can make an array.
        stream: The stream that copies; the current stream if None.
        order: The layout of the copy: ``"C"``, ``"F"``, or ``"A"`` for the layout of ``a``.
        out: The array to copy to.
        blocking: Whether to wait until the copy is complete.
    """
    given = array_interface.array_of(a)
    if given is not None:
        return copies.to_host(given, stream, order, out, blocking)
    converted = np.asarray(a, order=order)  # type: ignore[call-overload]
    if out is None:
        return converted  # type: ignore[no-any-return]
    out[...] = converted
    return out


def _from_host(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the NumPy function ``function`` with its result copied to the current device."""

    @functools.wraps(function)
    def make(*args: Any, **kwargs: Any) -> Any:
        return creation.array(function(*args, **kwargs))

    make.__module__ = __name__
    return make


def _to_host(function: Callable[..., Any], *, converts: bool = False) -> Callable[..., Any]:
    """Return the NumPy function ``function`` with the arrays among its arguments copied to the host.

    Args:
        function: The function.
        converts: Whether the first argument may be any object from which NumPy can make an array.
    """

    def get(value: Any) -> Any:
        return asnumpy(value) if isinstance(value, Strided) else value

    @functools.wraps(function)
    def write(*args: Any, **kwargs: Any) -> Any:
        if converts and args:
            args = (asnumpy(args[0]), *args[1:])
        return function(*map(get, args), **{name: get(value) for name, value in kwargs.items()})

    write.__module__ = __name__
    return write


frombuffer = _from_host(np.frombuffer)
fromfile = _from_host(np.fromfile)
fromfunction = _from_host(np.fromfunction)
fromiter = _from_host(np.fromiter)
fromstring = _from_host(np.fromstring)
genfromtxt = _from_host(np.genfromtxt)
loadtxt = _from_host(np.loadtxt)

array2string = _to_host(np.array2string, converts=True)
array_repr = _to_host(np.array_repr, converts=True)
array_str = _to_host(np.array_str, converts=True)
format_float_positional = _to_host(np.format_float_positional)
format_float_scientific = _to_host(np.format_float_scientific)
save = _to_host(np.save)
savetxt = _to_host(np.savetxt)
savez = _to_host(np.savez)
savez_compressed = _to_host(np.savez_compressed)


def load(file: Any, mmap_mode: Any = None, allow_pickle: bool | None = None) -> Any:
    """Return the array that :func:`save` wrote to ``file``, or a dict of the arrays that :func:`savez` wrote.

    Args:
        file: The file object, or the path of the file.
        mmap_mode: The argument of ``numpy.load`` with this name.
        allow_pickle: Whether the file may contain pickled objects, which can run any code; None means no.
    """
    loaded = np.load(file, mmap_mode, bool(allow_pickle))
    if isinstance(loaded, np.ndarray):
        return creation.array(loaded)
    with loaded:
        return {name: creation.array(loaded[name]) for name in loaded.files}


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Return whether NumPy's rule ``casting`` lets ``from_``, a type or an array, be cast to the type ``to``."""
    return np.can_cast(from_.dtype if isinstance(from_, Strided) else from_, to, casting)


def min_scalar_type(a: Any) -> np.dtype[Any]:
    """Return the smallest type that holds the scalar ``a``; the type of the elements if ``a`` has arrays."""
    dtypes = list(_dtypes_in(a))
    if dtypes and all(dtype is not None for dtype in dtypes):
        return np.result_type(*dtypes)
    return np.min_scalar_type(a)


def _dtypes_in(value: Any) -> Iterator[Any]:
    """Yield the type of each array in ``value``, and None for each other object."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _dtypes_in(item)
        return
    given = value if isinstance(value, np.ndarray) else array_interface.array_of(value)
    yield None if given is None else given.dtype


IMPLEMENTATIONS.update({np.can_cast: can_cast, np.min_scalar_type: min_scalar_type})
