"""Objects of SciPy, such as splines, trees and filters, with arrays of a device in the places of NumPy arrays."""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tcuda.emulation.devices.operands import SCALARS, Operands
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.work import copies, creation, numpy_work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_OF_PYTHON = frozenset([bool, int, float, complex])
_HOMES = ("scipy.", "tcuda.emulation.cupyx.scipy.definitions.")
_LEFT_OUT = frozenset(
    [
        "__class__",
        "__delattr__",
        "__dict__",
        "__dir__",
        "__doc__",
        "__eq__",
        "__getattr__",
        "__getattribute__",
        "__getstate__",
        "__hash__",
        "__init__",
        "__init_subclass__",
        "__module__",
        "__ne__",
        "__new__",
        "__reduce__",
        "__reduce_ex__",
        "__setattr__",
        "__setstate__",
        "__slots__",
        "__subclasshook__",
        "__weakref__",
    ]
)
"""Members of SciPy's classes that :class:`Held` has itself, or that are about the class and not about its objects."""


class Held:
    """An object of SciPy whose arguments, results and attributes are arrays of a device.

    SciPy's object has its numbers in memory of the device where SciPy keeps the arrays that it is given.
    """

    _kind: ClassVar[type]
    _object: Any
    _arrays: dict[int, tuple[Any, Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Let SciPy make its object, which may be one of a class below ``cls._kind``."""
        copies.wait_for_contents(cls.__name__)
        if numpy_work.defers():
            with numpy_work.with_contents():
                return call(cls._kind, args, kwargs)
        return call(cls._kind, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self._of_device(name)

    def __setattr__(self, name: str, value: Any) -> None:
        copies.wait_for_contents(name)
        call(setattr, (self._object, name, value), {})

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in dir(self._object) if not name.startswith("_"))})

    def __reduce__(self) -> Any:
        return _held_again, (self._object,)

    def __repr__(self) -> str:
        return repr(self._object)

    def _of_device(self, name: str) -> Any:
        """Return an attribute of SciPy's object. An array that can be assigned shares its memory with the object."""
        value = getattr(self._object, name)
        if not isinstance(value, np.ndarray) or value.dtype == object:
            return of_device(value)
        host, array = self._arrays.get(id(value), (None, None))
        if host is not value:
            array = creation.array(value.copy())  # the values may lie in memory of the device
            with contextlib.suppress(AttributeError, TypeError):  # some attributes can only be read
                setattr(self._object, name, array._host)
                value = getattr(self._object, name)
            self._arrays[id(value)] = value, array
        return array


def _held_again(held: Any) -> Any:
    return of_device(held)


def is_of_scipy(kind: type) -> bool:
    """Return whether objects of the class ``kind`` are held."""
    return kind.__module__.startswith(_HOMES) and not issubclass(kind, (BaseException, tuple, dict, np.generic))


@functools.cache
def class_of(kind: type) -> type[Held]:
    """Return the class of the objects that hold objects of SciPy's class ``kind``."""
    bases = tuple(class_of(base) for base in kind.__bases__ if is_of_scipy(base)) or (Held,)
    members = {name: _member(name, member) for name, member in vars(kind).items() if _is_for_users(name)}
    made = type(kind.__name__, bases, {**members, "_kind": kind, "__doc__": kind.__doc__})
    made.__module__ = __name__
    return made


def _is_for_users(name: str) -> bool:
    return name not in _LEFT_OUT and (not name.startswith("_") or (name.startswith("__") and "pyx" not in name))


def _member(name: str, member: Any) -> Any:
    if isinstance(member, (classmethod, staticmethod)):
        return classmethod(lambda cls, *args, **kwargs: computed(getattr(cls._kind, name), args, kwargs))
    if inspect.isdatadescriptor(member):
        return property(
            lambda self: self._of_device(name),
            lambda self, value: Held.__setattr__(self, name, value),
            doc=inspect.getdoc(member),
        )
    if callable(member):

        def method(self: Held, *args: Any, **kwargs: Any) -> Any:
            return computed(getattr(self._object, name), args, kwargs)

        method.__name__, method.__doc__ = name, member.__doc__
        return method
    return member


def computed(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return the results of a function of SciPy, which examines the contents of arrays, and refuses some zeros."""
    if numpy_work.defers() and not numpy_work.capturing():
        with numpy_work.with_contents():
            return call(function, args, kwargs)
    return call(function, args, kwargs)


def call(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call ``function`` of the host as work of the stream, and return its results for programs on a device."""
    if isinstance(kwargs.get("out"), Strided):
        return numpy_work.call(function, args, kwargs)
    makers: list[Callable[[Sequence[Any]], Any]] = []

    @functools.wraps(function, updated=())
    def flat(*args: Any, **kwargs: Any) -> list[Any]:
        leaves: list[Any] = []
        makers.append(_taken_apart(function(*args, **kwargs), leaves))
        return leaves

    made = numpy_work.call(flat, _given(tuple(args)), {name: _given(value) for name, value in kwargs.items()})
    return makers[0](made)


def of_device(value: Any) -> Any:
    """Return ``value`` of SciPy with arrays of the current device in the places of NumPy arrays."""
    leaves: list[Any] = []
    return _taken_apart(value, leaves)([creation.array(np.array(leaf)) for leaf in leaves])


def _given(value: Any) -> Any:
    """Return ``value`` with SciPy's objects and functions of NumPy arrays in the places of those for a device."""
    if isinstance(value, Held):
        return value._object
    if type(value) in (tuple, list):
        return type(value)(map(_given, value))
    if callable(value) and not isinstance(value, type) and not is_of_scipy(type(value)):
        return value.__cupy_get_ndarray__() if hasattr(value, "__cupy_get_ndarray__") else _for_scipy(value)
    return value


def _for_scipy(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` of the program, which works on arrays of the device, as a function of NumPy arrays."""

    @functools.wraps(function, updated=())
    def call_with_arrays(*args: Any, **kwargs: Any) -> Any:
        if numpy_work.capturing():
            raise NotImplementedError(
                f"SciPy calls the function {getattr(function, '__name__', function)!r} on the host, which a capture on "
                "emulated devices cannot record: call the function of cupyx.scipy before the capture."
            )
        result = function(*map(of_device, args), **{name: of_device(value) for name, value in kwargs.items()})
        return Operands().host(result)

    return call_with_arrays


def _taken_apart(value: Any, leaves: list[Any]) -> Callable[[Sequence[Any]], Any]:
    """Add the arrays in ``value`` to ``leaves``, and return a function that puts others in their places."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return _taken_apart(value.tolist(), leaves)
    if isinstance(value, (np.ndarray, *SCALARS)) and type(value) not in _OF_PYTHON:
        leaves.append(value)
        place = len(leaves) - 1
        return lambda arrays: arrays[place]
    if isinstance(value, dict):
        values = {key: _taken_apart(item, leaves) for key, item in value.items()}
        return lambda arrays: {key: item(arrays) for key, item in values.items()}
    if isinstance(value, (tuple, list)):
        items = [_taken_apart(item, leaves) for item in value]
        kind = getattr(value, "_make", type(value))
        return lambda arrays: kind([item(arrays) for item in items])
    if is_of_scipy(type(value)):
        return lambda _: _holding(value)
    return lambda _: value


def _holding(held: Any) -> Held:
    kind: Any = type(held)
    made: Held = object.__new__(class_of(kind))
    vars(made).update(_object=held, _arrays={})
    return made
