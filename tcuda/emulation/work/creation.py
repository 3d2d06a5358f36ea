"""Functions that make arrays on the current device: new ones, and copies of arrays of the host and of devices."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tcuda._process.lazy import backend, cuda
from tcuda.emulation.devices import array_interface
from tcuda.emulation.devices.operands import SCALARS
from tcuda.emulation.devices.strided import Strided, supported, template_among
from tcuda.emulation.names import tensor_names
from tcuda.emulation.numbers import casts, structured
from tcuda.emulation.work import copies, dlpack, filling, numpy_work

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt
    from typing_extensions import Never

    Shape = int | Sequence[int]

_OF_HOST = (Strided, np.ndarray, list, tuple, str, bytes, *SCALARS)
"""The types of objects that are no foreign arrays of a device."""
_NUMBERS = frozenset([bool, int, float, complex])


def empty(shape: Shape, dtype: npt.DTypeLike = float, order: str = "C", **others: Never) -> Strided:
    """Return a new array with uninitialised elements."""
    if others:
        _refuse("empty", others)
    return numpy_work.new(shape, dtype, order)


def zeros(shape: Shape, dtype: npt.DTypeLike = float, order: str = "C", **others: Never) -> Strided:
    """Return a new array of zeros."""
    if others:
        _refuse("zeros", others)
    return _cleared(empty(shape, dtype, order))


def ones(shape: Shape, dtype: npt.DTypeLike | None = float, order: str = "C", **others: Never) -> Strided:
    """Return a new array of ones."""
    if others:
        _refuse("ones", others)
    return full(shape, 1, float if dtype is None else dtype, order)


def full(shape: Shape, fill_value: Any, dtype: npt.DTypeLike | None = None, order: str = "C") -> Strided:
    """Return a new array of ``fill_value``, a scalar or an array that fits; ``dtype`` is its type by default."""
    if dtype is None:
        dtype = fill_value.dtype if isinstance(fill_value, Strided) else np.array(fill_value).dtype
    return _filled(empty(shape, dtype, order), fill_value)


def empty_like(
    prototype: Any, dtype: npt.DTypeLike | None = None, order: str = "K", subok: None = None, shape: Any = None
) -> Strided:
    """Return a new array with the shape, type and layout of ``prototype``, unless an argument sets them."""
    if subok is not None:
        raise TypeError("subok is not supported yet")
    if isinstance(prototype, np.generic):
        prototype = array(prototype)
    if not isinstance(prototype, Strided):
        raise TypeError(f"Unsupported type {type(prototype)}")
    kind = supported(prototype.dtype if dtype is None else dtype)
    # NumPy has the rules for the layout. The model costs nothing, because no code writes to its memory.
    model = np.empty_like(prototype._host, kind, order, shape=shape)  # type: ignore[call-overload]
    # Without elements, the strides are those of any new array.
    return Strided.array_type(model.shape, kind, strides=model.strides if model.size else None)


def zeros_like(
    a: Strided, dtype: npt.DTypeLike | None = None, order: str = "K", subok: None = None, shape: Any = None
) -> Strided:
    """Return a new array of zeros with the shape, type and layout of ``a``, unless an argument sets them."""
    return _cleared(empty_like(a, dtype, order, subok, shape))


def ones_like(
    a: Strided, dtype: npt.DTypeLike | None = None, order: str = "K", subok: None = None, shape: Any = None
) -> Strided:
    """Return a new array of ones with the shape, type and layout of ``a``, unless an argument sets them."""
    return full_like(a, 1, dtype, order, subok, shape)


def full_like(
    a: Strided,
    fill_value: Any,
    dtype: npt.DTypeLike | None = None,
    order: str = "K",
    subok: None = None,
    shape: Any = None,
) -> Strided:
    """Return a new array of ``fill_value`` with the shape, type and layout of ``a``, unless an argument sets them."""
    return _filled(empty_like(a, dtype, order, subok, shape), fill_value)


def array(
    obj: Any,
    dtype: npt.DTypeLike | None = None,
    copy: bool | None = True,
    order: str | None = "K",
    subok: bool = False,
    ndmin: int = 0,
    *,
    blocking: bool = False,
    **others: Never,
) -> Strided:
    """Return an array on the current device with the elements of ``obj``.

    Args:
        obj: An array of any device, a NumPy array, a scalar, or a sequence of any of these.
        dtype: The type of the elements; the type of the elements of ``obj`` if None.
        copy: Whether to copy an array that has the right device, type and layout already. False: raise an error if an
            array of a device must be copied. None: copy only if a copy is needed.
        order: The layout, ``"C"``, ``"F"``, ``"A"`` or ``"K"``.
        subok: Must be false.
        ndmin: The minimum number of axes; missing axes are added at the front.
        blocking: Whether to wait until a copy from the host is complete.
        others: Nothing. A parameter of torch is refused with the words of what to write.

    Raises:
        RuntimeError: The current stream captures, and ``obj`` is on the host and has an axis.
        AssertionError: ``obj`` is a sequence of arrays of a subclass, for which CuPy raises this error, too.
        NotImplementedError: ``subok`` is true, which CuPy refuses, too.
        TypeError: ``obj`` is a sequence of arrays of several classes, or of arrays and objects of the host; or a
            keyword is unknown.
        ValueError: The kernels do not know the dtype of ``obj``, or ``copy`` is False and ``obj`` must be copied.
    """
    if others:
        _refuse("array", others)
    if subok:
        raise NotImplementedError("array() makes arrays of one class only; leave subok out.")
    order = order.upper() if order else "K"
    if not isinstance(obj, _OF_HOST):
        given = array_interface.array_of(obj)
        obj = obj if given is None else given
    if isinstance(obj, Strided):
        made = _from_array(obj, dtype, copy, order)
    elif _has_arrays(obj):
        made = _from_sequence(obj, dtype, order)
        if blocking:
            copies.synchronize(made, "array")
    else:
        host = np.asarray(obj, dtype=dtype)
        host = host.astype(host.dtype.newbyteorder("="), copy=False)
        supported(host.dtype)
        column_major = order == "F" or (order in "AK" and host.flags.fnc)
        made = copies.from_host(host, "F" if column_major else "C")
        if blocking and host.ndim:
            copies.synchronize(made, "array")
    if made.ndim < ndmin:
        padded: Strided = numpy_work.view(_with_axes, (made, ndmin - made.ndim))
        return padded
    return made


def asarray(
    a: Any,
    dtype: npt.DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    blocking: bool = False,
    **others: Never,
) -> Strided:
    """Return ``a`` as an array on the current device, and copy only if needed; see :func:`array`."""
    if others:
        _refuse("asarray", others)
    return array(a, dtype, copy, order, blocking=blocking)


asanyarray = asarray


def ascontiguousarray(a: Strided, dtype: npt.DTypeLike | None = None) -> Strided:
    """Return ``a`` in row-major order and with at least one axis; copy only if needed."""
    return _contiguous(a, dtype, "C")


def asfortranarray(a: Strided, dtype: npt.DTypeLike | None = None) -> Strided:
    """Return ``a`` in column-major order and with at least one axis; copy only if needed."""
    return _contiguous(a, dtype, "F")


def copy(a: Any, order: str = "K") -> Strided:
    """Return a copy of ``a`` on the current device, whichever device ``a`` is on."""
    return array(a, order=order)


def astype(x: Strided, dtype: npt.DTypeLike, /, *, copy: bool = True) -> Strided:
    """Return ``x`` with elements of ``dtype``; ``x`` itself if no copy is needed and ``copy`` is false."""
    return array(x, dtype, copy or None)


def from_dlpack(array: Any, *, device: None = None, copy: bool | None = None) -> Strided:
    """Return an array with the memory of ``array``, an object with the DLPack protocol, on its device.

    Args:
        array: An array of a device, or a capsule.
        device: Must be None.
        copy: Must not be true: the protocol copies to the host only.

    Raises:
        BufferError: ``copy`` is true.
        NotImplementedError: ``device`` is given, which CuPy refuses, too.
        TypeError: ``array`` is on the host.
    """
    if device is not None:
        raise NotImplementedError("from_dlpack() does not support device yet.")
    return dlpack.array_from(array, copy)


def item(array: Strided) -> Any:
    """Return the only element of ``array`` as a Python scalar; waits for the current stream.

    Raises:
        ValueError: ``array`` has no element, or more than one.
    """
    if array.size != 1:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    return copies.to_host(array, None, "C", None, True).item()


def _with_axes(host: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """Return ``host`` with ``count`` axes of length 1 in front."""
    return host[(None,) * count]


def _cleared(array: Strided) -> Strided:
    nbytes = array._host.nbytes
    if not nbytes:
        return array
    # NumPy fills no elements of bytes with a number.
    begun = None if structured.is_structured(array._host.dtype) else numpy_work.WORK.begin()
    if begun is not None:
        array._host.fill(0)
        numpy_work.WORK.end(begun[0], nbytes)
    else:
        with numpy_work.unfinished(array):
            cuda.memsetAsync(array.data.ptr, 0, nbytes, backend.current_stream().ptr)
    return array


def _filled(array: Strided, value: Any) -> Strided:
    with numpy_work.unfinished(array):
        if isinstance(value, Strided) and value.ndim:  # CuPy copies here, unlike the method fill()
            numpy_work.modify(casts.copyto, (array, value), {"casting": "unsafe"})
        else:
            filling.fill(array, value)
    return array


def _from_array(source: Strided, dtype: npt.DTypeLike | None, copy: bool | None, order: str) -> Strided:
    kind = source.dtype if dtype is None else supported(dtype)
    elsewhere = source._block.device != cuda.getDevice()
    if not copy and not elsewhere and kind == source.dtype and _is_laid_out(source, order):
        return source
    if elsewhere:
        copied = copies.to_current_device(source, order)
        return copied if kind == copied.dtype else _from_array(copied, kind, None, order)
    if copy is False:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    if structured.is_structured(kind) and source.size and (kind != source.dtype or not source.flags.forc):
        structured.require_layout(kind)
        structured.require_layout(source.dtype)
    target = empty_like(source, kind, order)
    casting = {"casting": "unsafe"}
    numpy_work.launch(
        casts.copyto, (target, source), casting, reads=[source], fresh=[target], rehearsed=not numpy_work.capturing()
    )
    return target


def _is_laid_out(array: Strided, order: str) -> bool:
    flags = array.flags
    return {"K": True, "A": flags.forc, "C": flags.c_contiguous, "F": flags.f_contiguous}[order]


def _has_arrays(obj: Any) -> bool:
    """Return whether ``obj`` is a sequence that contains an array of a device, at any depth."""
    if not isinstance(obj, (list, tuple)):
        return False
    return any(type(item) not in _NUMBERS and (array_interface.is_array(item) or _has_arrays(item)) for item in obj)


def _has_arrays_only(obj: Any) -> bool:
    return array_interface.is_array(obj) or (isinstance(obj, (list, tuple)) and all(map(_has_arrays_only, obj)))


def _arrays_in(obj: Any) -> Iterator[Strided]:
    """Yield the arrays of this library in a sequence, at any depth."""
    if isinstance(obj, Strided):
        yield obj
    elif isinstance(obj, (list, tuple)):
        for item in obj:
            yield from _arrays_in(item)


def _with_own_arrays(obj: Any) -> Any:
    """Return ``obj`` with arrays of this library in the places of foreign arrays of a device."""
    if isinstance(obj, (list, tuple)):
        return tuple(map(_with_own_arrays, obj))
    return array_interface.array_of(obj)


def _from_sequence(obj: Sequence[Any], dtype: npt.DTypeLike | None, order: str) -> Strided:
    if not _has_arrays_only(obj):
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed: a sequence has either arrays of the device or "
            "objects of the host. Make arrays of the device from the objects of the host with asarray() first."
        )

    arrays = list(_arrays_in(obj))
    if any(type(array) is not type(arrays[0]) for array in arrays):
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed: the arrays of a sequence are all of one class, and "
            "these are not. Join the arrays with stack()."
        )
    if template_among(arrays) is not None:
        raise AssertionError(
            f"CuPy makes no array of a sequence of arrays of the subclass {type(arrays[0]).__name__}. Join the arrays "
            "with stack()."
        )

    def gather(*parts: Any) -> npt.NDArray[Any]:
        return np.array(parts, dtype, order="F" if order == "F" else "C")

    made: Strided = numpy_work.call(gather, _with_own_arrays(obj))
    return made


def _contiguous(a: Strided, dtype: npt.DTypeLike | None, order: str) -> Strided:
    if not isinstance(a, Strided):
        raise TypeError(f"Unsupported type {type(a)}")
    return array(a, dtype, None, order, ndmin=1)


def _refuse(function: str, others: dict[str, Any]) -> NoReturn:
    """Refuse a keyword argument that a function lacks, in Python's words, and say what to write for one of torch."""
    name = next(iter(others))
    more = tensor_names.about_keyword(name)
    raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{f'.{more}' if more else ''}")


def _hide_others(function: Any) -> None:
    """Give a function CuPy's parameters for tools that ask, without the one that only takes what is refused."""
    found = inspect.signature(function)
    function.__signature__ = found.replace(parameters=[*found.parameters.values()][:-1])


for _function in (empty, zeros, ones, array, asarray):
    _hide_others(_function)
